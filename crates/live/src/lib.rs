//! The present of a program, seen from outside: its open spans, and the rates of its spans and events.
//!
//! [`Live`] reads the rings of running or dead programs, and calls a function with each [`Observation`]: a closed span,
//! a log record, a typed event, a loss, the end of a program, and a tick some ten times a second.
//!
//! Between the calls, [`LiveState`] has the open spans, and the counts of spans and events of the last seconds. The
//! engine begins with the oldest events in the rings, so its state includes spans that were created earlier.
//!
//! The memory of the engine is bounded ([`LiveOptions`]). If there is no room for a span or a name, it is only counted.
//!
//! ```
//! use eventring_live::{Live, LiveOptions, Observation};
//! use eventring::reader::RingSet;
//! use eventring::tracing::{PerfRecorder, RecorderSubscriber};
//! use std::time::Duration;
//!
//! let recorder = PerfRecorder::builder().anonymous().build()?;
//! let mut live = Live::new(RingSet::options().from_readers(recorder.open_readers()?), &LiveOptions::new());
//! tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
//!     let _request = tracing::info_span!("request", path = "/").entered();
//!     tracing::info_span!("query").in_scope(|| ());
//!
//!     let mut closed = Vec::new();
//!     live.read(Duration::from_millis(100), |observation, _| {
//!         if let Observation::SpanClosed(span) = observation {
//!             closed.push(span.name().into_owned());
//!         }
//!     });
//!     assert_eq!(closed, ["query"]);
//!     let open = live.state().open_spans().to_vec();
//!     let open: Vec<String> = open.iter().map(|span| span.name().into_owned()).collect();
//!     assert_eq!(open, ["request"]);
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `options` | the limits |
//! | `core/` | counts, tables of the present, the order of open spans |
//! | `state/` | questions about the present: open spans, threads, what tasks do |
//! | `observation` | observations: the events that the engine reports to its caller |
//! | `conditions/` | conditions that are tested on each occurrence, and at ages of open spans and tasks |
//! | `engine/` | reading rings without end, a capture up to a time, or nothing but tables of the present (`looks`) |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::exit, clippy::print_stderr, clippy::print_stdout))]

#[cfg(test)]
mod bounds_tests;
mod conditions;
mod core;
mod engine;
#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests of the crates above")]
pub mod fixture;
#[cfg(all(test, target_os = "linux"))]
mod memory_tests;
mod observation;
mod options;
#[cfg(test)]
mod rates_tests;
mod state;
#[cfg(test)]
mod times_tests;

pub use conditions::ConditionSet;
pub use conditions::occurrence::Occurrence;
pub use core::series::{SeriesKind, SeriesView};
pub use core::window::WindowStats;
pub use engine::{Live, LiveProgress};
#[doc(no_inline)]
pub use eventring_capture::condition::{
    Compare, Condition, ConditionError, Integer, LiveFields, NameKind, NamePattern, Operand, RateOf, Subject, Tokens,
    Truth, has_typed_field, is_field_of, may_have_field, time_nanos, write_path, write_word,
};
pub use eventring_capture::recording::RecordedProgram;
pub use eventring_tasks::TaskState;
pub use observation::{ClosedSpan, Observation, ProgramEnd, SeenEvent, SeenLoss, SeenMark, SeenRecord};
pub use options::LiveOptions;
pub use state::LiveState;
pub use state::locks::{LockUser, ThreadLocks, WaitForLock};
#[doc(hidden)]
pub use state::open::OpenFields;
#[doc(hidden)]
pub use state::open::OpenList;
pub use state::open::{OpenSpan, OpenSpans};
pub use state::task_phase::TaskPhase;
pub use state::threads::LiveThread;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
