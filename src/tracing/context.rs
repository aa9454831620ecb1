//! One trace across services. The headers of a request carry the context of the caller: its trace and its span.
//!
//! A service reads the context of its caller from the headers of a request ([`extract`]) and stores it with the span of
//! the request (`RemoteContext::attach`), before this span has children. The span and all its descendants then belong
//! to the caller's trace.
//!
//! A service that calls another service writes the context of its own span into the headers (`inject`). Exports (OTLP,
//! lines of JSON, Parquet, Perfetto) show the ids of the headers.
//!
//! ```
//! # #[cfg(feature = "context")] {
//! use eventring::tracing::context;
//! use eventring::tracing::{PerfRecorder, RecorderSubscriber};
//! use std::collections::HashMap;
//!
//! let recorder = PerfRecorder::builder().anonymous().build()?;
//! let _guard = tracing::subscriber::set_default(RecorderSubscriber::new(recorder));
//!
//! let headers = HashMap::from([("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]);
//! let span = tracing::info_span!("request");
//! if let Some(caller) = context::extract(|name| headers.get(name)) {
//!     caller.attach(&span);
//! }
//! let mut outgoing = HashMap::new();
//! context::inject(&span, |name, value| {
//!     outgoing.insert(name.to_owned(), value.to_owned());
//! });
//! assert!(outgoing["traceparent"].starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Only storing and writing contexts needs the feature `context`. With `context`, each open span takes 24 to 48 bytes
//! more, and a new span copies its parent's trace.

pub use super::trace_context::ids::{ProcessIds, SpanIdText, TraceIds};
pub use super::trace_context::remote::{RemoteContext, TRACEPARENT, TRACESTATE, extract};
pub use crate::span_slab::{RemoteTrace, TraceId};
#[cfg(feature = "context")]
pub use crate::tracing::record::caller::{inject, inject_current};
