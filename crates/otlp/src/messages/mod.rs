//! OpenTelemetry: spans and log records as messages of OTLP, and files of such messages as JSON.
//!
//! `docs/OTLP.md` says what becomes what.
//!
//! | file | idea |
//! |---|---|
//! | `ids` | ids of traces and spans |
//! | `attributes` | named values |
//! | `happenings` | log records, typed events, marks, losses |
//! | `held` | the happenings of open spans |
//! | `batch` | messages that leave together |
//! | `mapper` | messages, made of what is recorded |
//! | `of_capture` | the messages of a capture, as lines of JSON |
//! | `of_live` | the messages of running programs |

mod attributes;
mod batch;
mod happenings;
mod held;
mod ids;
mod mapper;
mod of_capture;
mod of_live;

#[cfg(test)]
mod tests;

pub(crate) use batch::OtlpRequests;
pub(crate) use mapper::NotInSpans;
pub use of_capture::write;
pub(crate) use of_live::LiveMapper;
