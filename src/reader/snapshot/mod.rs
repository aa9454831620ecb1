//! Snapshots: one zstd frame that holds a whole ring file image.
//!
//! | file | idea |
//! |---|---|
//! | `decompress` | from a frame to a file that can be mapped, without trusting it |
//! | `collect` | taking the events out of a ring, live or dead |
//! | `image` | laying them out as a small ring file of their own |
//! | `write` | compressing that |

mod collect;
mod decompress;
mod image;
mod write;

pub(super) use decompress::decompress;
pub use write::{SnapshotOptions, SnapshotSummary};
