//! One reader's position in a ring, and the events that it reads: one by one, or a batch at a time.

pub(in crate::reader) mod batch;
pub(in crate::reader) mod cursor;
pub(in crate::reader) mod event_batch;
pub(in crate::reader) mod filter;
pub(in crate::reader) mod payload;
