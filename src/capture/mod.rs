//! Saved rings: everything that one or more rings hold and go on to record, in one compressed file.
//!
//! [`capture`] writes a file, or a row of files, from live rings or those of dead programs; [`CaptureFile`] reads one, whole or
//! truncated, trusting nothing in it. `docs/FORMAT.md`, "Capture file", has the bytes.
//!
//! | file | idea |
//! |---|---|
//! | `format` | constants, file header, block header, footer |
//! | `wire` | taking numbers and texts out of untrusted bytes |
//! | `ring` | what is kept of a ring: identity, sizes, schema, clock |
//! | `item` | an event or a gap |
//! | `tables` | call sites and threads |
//! | `account` | how many events each ring gave and lost |
//! | `write` | blocks, index, footer |
//! | `place` | where files are written, and what is never written over |
//! | `parts` | the files of a capture that is rotated |
//! | `overlaps` | payloads that name the same bytes, which no ring has |
//! | `sources` | the rings that are read, shards too, as they appear |
//! | `options`, `told` | what a capture is asked for, and what it tells |
//! | `run` | from rings to files: when to look, when to stop |
//! | `stop` | when a capture that is to end is complete |
//! | `output` | the file that is being written: its limits, what waits for it, its end |
//! | `read` | opening a file, or what is left of it |
//! | `events` | its events, in the order of time |

mod account;
mod error;
mod events;
mod format;
mod item;
mod options;
mod output;
mod overlaps;
mod parts;
#[cfg_attr(not(all(target_os = "linux", not(eventring_unsupported))), path = "place_unsupported.rs")]
mod place;
mod read;
mod ring;
mod run;
mod sources;
mod stop;
mod tables;
mod told;
mod wire;
mod write;

pub use account::{CaptureAccount, CaptureEnd, EndReason, RingAccount};
pub use error::{CaptureError, CaptureErrorKind};
pub use events::CaptureEvents;
pub use item::{CapturedContent, CapturedItem, CapturedPayload, LossCause};
pub use options::CaptureOptions;
// For the program `eventring`, whose other files are made as captures are.
#[doc(hidden)]
pub use place::{OutputPlace, OutputTarget, ReadFiles, UnfinishedFile, nameless_file};
pub use read::CaptureFile;
pub use ring::{CapturedRing, RingRole};
pub use run::{capture, capture_rings, capture_rings_to, capture_to};
pub use told::{CaptureProgress, CaptureSummary, NextRing};

#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod tests;
