//! Snapshots: one zstd frame that holds a whole ring file image.
//!
//! | file | idea |
//! |---|---|
//! | `decompress` | from a frame to a file that can be mapped, without trusting it |
//! | `collect` | copying the events of a ring, live or dead |
//! | `image` | laying the events out as a small ring file |
//! | `write` | compressing that file |

mod collect;
mod decompress;
mod image;
mod write;

pub(super) use decompress::decompress;
pub use write::{SnapshotOptions, SnapshotSummary};
