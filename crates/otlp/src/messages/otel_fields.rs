//! The fields that set the name, kind and status of a span for OpenTelemetry, as defined by the crate
//! `tracing-opentelemetry`.

use super::attributes::Attributes;
use eventring::tracing::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{Status, status::StatusCode};

/// Returns `otel.name`, or else the name of the span.
pub(super) fn name(attributes: &Attributes, span: &Span) -> String {
    let name = attributes.text("otel.name").filter(|name| !name.is_empty());
    name.map_or_else(|| span.name(), str::to_owned)
}

/// Returns the kind that `otel.kind` names.
pub(super) fn kind(attributes: &Attributes) -> SpanKind {
    match attributes.text("otel.kind").map(str::to_ascii_lowercase).as_deref() {
        Some("server") => SpanKind::Server,
        Some("client") => SpanKind::Client,
        Some("producer") => SpanKind::Producer,
        Some("consumer") => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}

/// Returns the status of `otel.status_code`: `ok`, `error` or `unset`. Without one of these, a text of
/// `otel.status_description` or `otel.status_message` is that of an error, and so is `error`, the text of a log record.
pub(super) fn status(attributes: &Attributes, error: Option<String>) -> Option<Status> {
    let texts = ["otel.status_description", "otel.status_message"];
    let text = texts.into_iter().find_map(|name| attributes.text(name)).map(str::to_owned);
    let (code, message) = match attributes.text("otel.status_code").map(str::to_ascii_lowercase).as_deref() {
        // A good status has no text.
        Some("ok") => (StatusCode::Ok, String::new()),
        Some("error") => (StatusCode::Error, text.or(error).unwrap_or_default()),
        // A span without a status has none of a log record, if the program says so.
        Some("unset") => return None,
        _ => (StatusCode::Error, text.or(error)?),
    };
    Some(Status { message, code: code.into() })
}
