//! The payload buffer: its chunks, who has them, and the window of what is not overwritten yet.

pub(crate) mod chunk;
pub(crate) mod cursor;
pub(in crate::ring) mod cursors;
pub(in crate::ring) mod run_sizes;
pub(crate) mod window;
