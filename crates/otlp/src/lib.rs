//! Forwarding spans and log records to an OpenTelemetry collector, while programs run.
//!
//! [`forward_otlp`] sends the spans and log records of rings by OTLP over HTTP, with Protocol Buffers. The recording
//! program never waits: while the collector is slow or unreachable, the events stay in the rings. Events that are
//! overwritten there are lost, and the loss is reported to the collector.
//!
//! `docs/OTLP.md` describes the mapping.
//!
//! | file | idea |
//! |---|---|
//! | `endpoint` | the address of a collector |
//! | `forward` | reading rings, and filling batches |
//! | `sender` | sending batches, and sending them again |
//! | `post` | one request |
//! | `tls` | certificates |
//! | `error` | problems with the settings |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod endpoint;
mod error;
mod forward;
#[cfg(test)]
mod live_tests;
pub mod messages;
mod post;
mod sender;
#[cfg(test)]
mod tests;
mod tls;

pub use endpoint::OtlpEndpoint;
pub use error::OtlpError;
pub use forward::{OtlpOptions, forward_otlp};
pub use sender::OtlpSummary;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
