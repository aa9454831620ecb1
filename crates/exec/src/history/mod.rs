//! Execution events that were stored by other programs: EVCAP_01 files, and archives of final blocks.
//!
//! | file | idea |
//! |---|---|
//! | `sections` | the two headers with the same magic, and the sections of a file |
//! | `eventcap` | reading a file and its events |
//! | `write` | writing a file of the newer kind |
//! | `archive` | a directory with a file for each final block |
//! | `archiver` | writing final blocks of a ring into an archive |

mod archive;
mod archiver;
mod eventcap;
mod sections;
mod write;

pub(crate) use archive::ArchiveEvents;
pub use archive::BlockArchive;
pub use archiver::{Archived, Archiver};
pub use eventcap::{Bundle, BundleEvents, EventcapFile};
pub(crate) use eventcap::{EventcapEvents, Stored};
pub use sections::EventcapHeader;
pub use write::write_bundle;
