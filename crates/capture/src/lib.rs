//! Captures: compressed files of events of one or more rings. A capture takes what the rings hold when it begins, and
//! what they record while it runs.
//!
//! [`capture`] writes one or several files from the rings of live or dead programs.
//!
//! [`CaptureFile`] reads a file, even a truncated file, and trusts nothing in it. For the bytes, see "Capture file" in
//! `docs/FORMAT.md`.
//!
//! Three kinds of threads make a capture, so that a slow disk or strong compression seldom delays the copying of
//! events:
//!
//! ```text
//! rings ── copy ──▶ encoding (one or more threads) ──▶ run, output ──▶ files
//!            ▲                                            │
//!            └──────────── slots, used again ─────────────┘
//! ```
//!
//! | folder | idea |
//! |---|---|
//! | `format/` | the bytes of a capture file |
//! | `condition/` | conditions on spans and events |
//! | `select/` | selecting a part of the events |
//! | `read/` | reading captures |
//! | `files/` | making files under a name |
//! | `engine/` | copying events out of rings, encoding and writing them |
//! | `sinks/` | where captures go: files, the last seconds, batches |
//! | `received/` | a capture file that grows by batches |
//! | `recording/` | replaying recordings (captures or rings) |
//! | `numbers` | numbers for people |
//! | `text` | making untrusted text safe for a terminal |
//! | `wall_times` | the durations of many spans, and their percentiles |
//!
//! With few exceptions, a folder uses only folders above it in this table.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::exit, clippy::print_stderr, clippy::print_stdout))]

pub mod condition;
mod engine;
mod error;
mod files;
mod format;
#[doc(hidden)]
pub mod numbers;
mod read;
#[doc(hidden)]
pub mod received;
pub mod recording;
#[doc(hidden)]
pub mod secret;
mod select;
mod sinks;
#[doc(hidden)]
pub mod text;
mod wall_times;

pub use condition::pattern::names_span;
pub use engine::options::CaptureOptions;
pub use engine::rotation::RotationOptions;
pub use engine::summary::{CaptureProgress, CaptureSummary, NextRing};
pub use error::{CaptureError, CaptureErrorKind};
pub use format::end::{CaptureEnd, EndReason};
pub use format::record::{CapturedContent, CapturedPayload, CapturedRecord};
pub use format::ring::{CapturedRing, RingRole};
pub use format::stats::{CaptureStats, RingStats};
pub use read::events::CaptureEvents;
pub use read::file::CaptureFile;
pub use select::selection::Selection;
pub use sinks::cut::{CutSummary, Shortfall};
pub use sinks::file::{capture, capture_rings, capture_rings_to, capture_to};
pub use sinks::rolling::{RollingCapture, RollingOptions, RollingState};
pub use sinks::rotation_set::RotatedCapture;

// For the tools above, which make their other files (exports and snapshots) in the same way, and send batches.
#[doc(hidden)]
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub use files::foreign;
#[doc(hidden)]
pub use files::output_entry::{OutputEntry, OutputKind, UnfinishedFile};
#[doc(hidden)]
pub use files::read_files::ReadFiles;
#[doc(hidden)]
pub use format::values::block_test::BlockTest;
#[doc(hidden)]
pub use format::values::key::NameKey;
#[doc(hidden)]
pub use read::events::{ContentRef, RecordRef};
#[doc(hidden)]
pub use read::matching_blocks::{MatchingBlocks, RingLoss};
#[doc(hidden)]
pub use read::present::CapturedPresent;
#[doc(hidden)]
pub use read::process_end::CapturedLife;
#[doc(hidden)]
pub use read::workers::worker_threads;
#[doc(hidden)]
pub use recording::now::SelectedNow;
#[doc(hidden)]
pub use select::batch_filter::BatchFilter;
#[doc(hidden)]
pub use select::events::EventSelection;
#[doc(hidden)]
pub use sinks::batches::{self, follow_rings, host_name};
#[doc(hidden)]
pub use sinks::present::capture_now;
#[doc(hidden)]
pub use wall_times::{SpanTimes, WallTimes};

#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests of the crates above")]
pub mod fixtures;
#[cfg(test)]
mod tests;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
