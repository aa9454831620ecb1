//! Captures: the events of one or more rings, those that the rings hold and those that they go on to record, in one
//! compressed file.
//!
//! [`capture`] writes a file, or a row of files, from live rings or from rings of dead programs. [`CaptureFile`] reads
//! such a file, whole or truncated, and trusts nothing in it. `docs/FORMAT.md`, "Capture file", describes the bytes.
//!
//! | file | idea |
//! |---|---|
//! | `format` | constants, file header, block header, footer |
//! | `wire` | taking numbers and texts out of untrusted bytes |
//! | `ring` | the description of a ring: identity, sizes, schema, clock |
//! | `record` | an event or a gap |
//! | `tables` | call sites and threads |
//! | `stats` | the number of events that each ring gave and lost |
//! | `end` | the reason why a file ends, and the counts of its rings |
//! | `write` | blocks, index, footer |
//! | `output_entry` | making a file under a name, and which files are never replaced |
//! | `read_files` | the files that are read, which are never written over |
//! | `parts` | the files of a capture that is rotated |
//! | `overlaps` | refusing payloads that share bytes with others, which no sound ring has |
//! | `sources` | the rings that are read, with shards that appear later |
//! | `options`, `summary` | the settings of a capture, and its progress and result |
//! | `run` | from rings to files: when to look, when to stop |
//! | `stop` | when a capture that is to end is complete |
//! | `output` | the file that is being written: its limits, its waiting tables, its end |
//! | `read` | opening a file, or the readable part of a truncated file |
//! | `events` | the events of a file, in the order of time |

mod end;
mod error;
mod events;
mod format;
mod options;
mod output;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "output_entry_unsupported.rs")]
mod output_entry;
mod overlaps;
mod parts;
mod read;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "read_files_unsupported.rs")]
mod read_files;
mod record;
mod ring;
mod run;
mod sources;
mod stats;
mod stop;
mod summary;
mod tables;
mod wire;
mod write;

pub use end::{CaptureEnd, EndReason};
pub use error::{CaptureError, CaptureErrorKind};
pub use events::CaptureEvents;
pub use options::CaptureOptions;
// The program `eventring` makes its other files in the same way.
#[doc(hidden)]
pub use output_entry::{OutputEntry, OutputKind, UnfinishedFile, nameless_file};
pub use read::CaptureFile;
#[doc(hidden)]
pub use read_files::ReadFiles;
pub use record::{CapturedContent, CapturedPayload, CapturedRecord};
pub use ring::{CapturedRing, RingRole};
pub use run::{capture, capture_rings, capture_rings_to, capture_to};
pub use stats::{CaptureStats, RingStats};
pub use summary::{CaptureProgress, CaptureSummary, NextRing};

#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod tests;
