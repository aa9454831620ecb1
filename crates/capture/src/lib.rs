//! Captures: compressed files with the events of one or more rings. A capture takes the events that the rings hold
//! when it begins, and the events that are recorded while it runs.
//!
//! [`capture`] writes one file, or several numbered files, from the rings of live or dead programs. [`CaptureFile`]
//! reads such a file, even a truncated one, and trusts nothing in it. `docs/FORMAT.md`, "Capture file", describes the
//! bytes.
//!
//! Three kinds of threads make a capture, so that a slow disk or a high level of compression costs no events:
//!
//! ```text
//! rings ── copy ──▶ encoding (one or more threads) ──▶ run, output ──▶ files
//!            ▲                                            │
//!            └──────────── slots, used again ─────────────┘
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `format` | constants, file header, block header, footer |
//! | `filter_bits` | bits in a block's header: which types, call sites and threads it cannot have |
//! | `columns/` | the content of a block of events |
//! | `wire` | decoding numbers and texts from untrusted bytes |
//! | `ring` | the description of a ring: identity, sizes, schema, clock |
//! | `record` | a record of a capture: an event or a gap |
//! | `tables` | the tables of call sites and threads |
//! | `stats` | counts of each ring's events: captured, lost and so on |
//! | `end` | the last block of a file: why the file ended, and the counts of its rings |
//! | `process_end` | the end of a program, as its rings in a capture show it |
//! | `write` | writing blocks, index and footer |
//! | `output_entry` | making a file under a name, and the rules about which files are never replaced |
//! | `read_files` | the files that this program reads, and so never writes over |
//! | `parts` | where the files of a capture go |
//! | `rotation` | when the next file of a row is begun, and which of the old ones go |
//! | `row`, `ends` | the files of a row, and going on after the newest |
//! | `sources` | the rings that are captured, also those that are made during the capture |
//! | `copy`, `pace` | the copying thread: what it copies, and when |
//! | `overlaps` | refusing payloads that share bytes with other payloads: only a damaged ring has such payloads |
//! | `stop` | the decided end of a capture, and the check that all events before this end are copied |
//! | `slots` | the messages from one thread to the next |
//! | `encoding` | the encoding threads |
//! | `options`, `summary` | the settings of a capture, and its progress and result |
//! | `run` | the writing thread: rings, progress, the end |
//! | `output` | the file that is being written: its size limits, the table entries that are not written yet, its end |
//! | `rolling`, `cut` | a capture that keeps only the last seconds, and cutting files out of it |
//! | `batches` | a capture into small whole files, which are sent away |
//! | `present` | a capture of what rings hold now |
//! | `batch_filter` | the events that a capture into batches leaves out |
//! | `received` | a capture file that grows by batches |
//! | `fit` | the part of a block that fits into the rest of a file |
//! | `block` | reading one block, and checking it |
//! | `read` | opening a capture file, or the readable part of a truncated one |
//! | `several` | opening several files as one capture |
//! | `events`, `ahead` | the events of a capture file in the order of time, from blocks that are decoded ahead |
//! | `damage` | losses by damage: the events of a block that cannot be read are a gap in their ring |
//! | `content` | all events of a capture, or those of a selection |
//! | `other_schemas` | perf rings of other versions, whose spans cannot be read |
//! | `selection` | what a user selects: times, threads, rings, spans |
//! | `window` | checking the time window of a selection |
//! | `sieve` | which blocks a selection needs, and which of their records |
//! | `roots` | the spans with which a selection of spans begins |

#![forbid(unsafe_code)]

mod ahead;
mod batch_filter;
#[doc(hidden)]
pub mod batches;
mod block;
mod columns;
mod content;
mod copy;
mod cut;
mod damage;
mod encoding;
mod end;
mod ends;
mod error;
mod events;
mod filter_bits;
mod fit;
mod format;
mod options;
mod other_schemas;
mod output;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "output_entry_unsupported.rs")]
mod output_entry;
mod overlaps;
mod pace;
mod parts;
mod present;
mod process_end;
mod read;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "read_files_unsupported.rs")]
mod read_files;
#[doc(hidden)]
pub mod received;
mod record;
pub mod recording;
mod ring;
mod rolling;
mod roots;
mod rotation;
mod row;
mod run;
#[doc(hidden)]
pub mod secret;
mod selection;
mod several;
mod sieve;
mod slots;
mod sources;
mod stats;
mod stop;
mod summary;
mod tables;
mod window;
mod wire;
mod workers;
mod write;

#[doc(hidden)]
pub use batch_filter::BatchFilter;
#[doc(hidden)]
pub use batches::follow_rings;
#[doc(hidden)]
pub use batches::host_name;
pub use cut::{CutSummary, Shortfall};
pub use end::{CaptureEnd, EndReason};
pub use error::{CaptureError, CaptureErrorKind};
pub use events::CaptureEvents;
pub use options::CaptureOptions;
#[doc(hidden)]
pub use present::capture_now;
// Public for the program `eventring`, which makes its other files (exports and snapshots) in the same way.
#[doc(hidden)]
pub use events::{ContentRef, RecordRef};
#[doc(hidden)]
pub use output_entry::{OutputEntry, OutputKind, UnfinishedFile};
#[doc(hidden)]
pub use process_end::CapturedLife;
pub use read::CaptureFile;
#[doc(hidden)]
pub use read_files::ReadFiles;
pub use record::{CapturedContent, CapturedPayload, CapturedRecord};
pub use ring::{CapturedRing, RingRole};
pub use rolling::{RollingCapture, RollingOptions, RollingState};
pub use rotation::RotationOptions;
pub use row::CaptureRow;
pub use run::{capture, capture_rings, capture_rings_to, capture_to};
pub use selection::Selection;
pub use stats::{CaptureStats, RingStats};
pub use summary::{CaptureProgress, CaptureSummary, NextRing};
#[doc(hidden)]
pub use workers::worker_threads;

#[cfg(test)]
mod batch_filter_tests;
#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests of the crates above")]
pub mod fixtures;
#[cfg(test)]
mod selection_tests;
#[cfg(test)]
mod tests;
