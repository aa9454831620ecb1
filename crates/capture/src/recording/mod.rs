//! The decoded events of a recording. A recording is a capture, or rings.
//!
//! [`RecordingReplay`] replays the spans of a recording. It calls a consumer ([`ReplayConsumer`]) with each entry (an
//! event or a loss). Exports, summaries, tables, OTLP messages and the live engine are consumers.
//!
//! | file | idea |
//! |---|---|
//! | `entry`, `of_capture`, `of_rings` | one entry; the entries of a capture, and of live rings |
//! | `replay`, `replay_capture` | the engine, and a capture that it gives to a consumer |
//! | `consumer` | the interface of its consumers |
//! | `parts` | what a replay follows in addition to spans, and its state |
//! | `counts` | the counts of a replay |
//! | `tables` | the rings, and the names of call sites and threads |
//! | `rings` | the rings of a recording: their names, programs, recorders, schemas |
//! | `present` | tables of the present, as records |
//! | `tabled` | the open spans in tables of the present, also a million of them are read in little time |
//! | `looks` | the content of tables of the present while a capture was made |
//! | `descriptions` | facts about call sites and threads |
//! | `memory_limit` | the limit on the memory that an export takes |
//! | `select`, `find` | selecting a part of a capture, and finding the spans and events that fulfil conditions |
//! | `now` | the selection of live events, by what the replay knows when an event is read |
//! | `self_times` | the time in which a span existed and none of its children did |

mod consumer;
mod counts;
mod descriptions;
mod entry;
pub(crate) mod find;
mod looks;
mod memory_limit;
pub(crate) mod now;
mod of_capture;
mod of_rings;
mod parts;
mod present;
mod replay;
mod replay_capture;
mod rings;
mod select;
mod self_times;
mod tabled;
mod tables;

pub use crate::read::payloads::PayloadLosses;
pub use consumer::{OverSpan, ReplayConsumer, ReplayNeeds, SpanOver};
pub use counts::ReplayCounts;
pub use descriptions::PerDescription;
pub use entry::{EntryContent, RecordingEntry};
pub use of_capture::{CaptureEntries, CaptureRecording};
pub use of_rings::RingEntries;
pub use parts::{ReplayPart, ReplayParts, ReplayState};
#[doc(hidden)]
pub use present::PresentRecord;
pub use replay::{CHECK_BYTES, RecordingReplay, ReplayBounds, is_certainly_open, write_error};
pub use replay_capture::replay_capture;
#[doc(hidden)]
pub use replay_capture::replay_presents;
pub use rings::{NewRing, RecordedProgram, RecordedRings, RingOrigin, ShardOrigin};
#[doc(hidden)]
pub use tabled::{TabledSpan, TabledSpans, both};
pub use tables::RecordingTables;
