//! OpenTelemetry: spans and log records as messages of OTLP, and files of such messages as JSON.
//!
//! `docs/OTLP.md` describes the mapping.
//!
//! | file | idea |
//! |---|---|
//! | `ids` | ids of traces and spans |
//! | `attributes` | named values |
//! | `happenings` | log records, typed events, marks, losses |
//! | `open_span_events` | the happenings of open spans |
//! | `batch` | messages that are sent together |
//! | `mapper` | making messages from records |
//! | `otel_fields` | the fields that set the name, kind and status of a span |
//! | `consumer` | the consumer of a recording that passes everything to the mapper |
//! | `lines` | the messages of a capture, as lines of JSON |

mod attributes;
mod batch;
mod consumer;
mod happenings;
mod ids;
mod lines;
mod mapper;
mod open_span_events;
mod otel_fields;

#[cfg(test)]
mod tests;

pub(crate) use batch::{BATCH_BYTES, OtlpRequests};
pub(crate) use consumer::OtlpConsumer;
pub use lines::write;
pub(crate) use mapper::OtlpMapper;
