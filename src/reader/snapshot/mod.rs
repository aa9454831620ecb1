//! Snapshots: one zstd frame that holds the image of a whole ring file.
//!
//! | file | idea |
//! |---|---|
//! | `collect` | copying the events of a ring, live or dead |
//! | `spool` | the copies, in files without a name |
//! | `numbers` | the new seqnos of the events |
//! | `starts` | the table of start records |
//! | `image` | making a small ring file with the events |
//! | `write` | compressing this small ring file |
//! | `counted` | a writer that counts its bytes |

mod collect;
pub(crate) mod counted;
mod image;
mod numbers;
mod spool;
mod starts;
mod write;

pub use write::{SnapshotOptions, SnapshotSummary};
