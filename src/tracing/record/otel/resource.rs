//! The resource of this process, as the message `ProcessContext` of the proposal.

use crate::tracing::trace_context::ids::{ProcessIds, SpanIdText};

/// The field of `ProcessContext` with the resource, and the one with further attributes.
const RESOURCE: u8 = 1;
const ATTRIBUTES: u8 = 2;
/// The kinds of values in `AnyValue`.
const STRING_VALUE: u8 = 1;
const ARRAY_VALUE: u8 = 5;
/// The field of the attributes in `Resource`.
const RESOURCE_ATTRIBUTES: u8 = 1;

/// Returns the message. The attributes are those of the resource in OTLP.
pub(in crate::tracing::record) fn encode(program: &str, ids: &ProcessIds) -> Vec<u8> {
    let program = if program.is_empty() { "unknown_service" } else { program };
    let instance = SpanIdText(ids.instance()).to_string();
    let attributes = [
        ("service.name", program),
        ("service.instance.id", &instance),
        ("telemetry.sdk.name", "eventring"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    let text = |text: &str| message(STRING_VALUE, text.as_bytes());
    let of_resource = attributes.map(|(key, value)| message(RESOURCE_ATTRIBUTES, &key_value(key, &text(value))));
    [
        message(RESOURCE, &of_resource.concat()),
        message(ATTRIBUTES, &key_value("threadlocal.schema_version", &text("tlsdesc_v1_dev"))),
        message(ATTRIBUTES, &key_value("threadlocal.attribute_key_map", &message(ARRAY_VALUE, &[]))),
    ]
    .concat()
}

fn key_value(key: &str, value: &[u8]) -> Vec<u8> {
    [message(1, key.as_bytes()), message(2, value)].concat()
}

/// Returns a field with bytes: a text, or another message.
fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u8 = 2;
    let mut encoded = vec![field << 3 | LENGTH_DELIMITED];
    let mut length = bytes.len();
    while length >= 0x80 {
        encoded.push(length as u8 | 0x80);
        length >>= 7;
    }
    encoded.push(length as u8);
    encoded.extend_from_slice(bytes);
    encoded
}
