//! Verbs that answer questions about a recording.

pub(crate) mod ask;
pub(crate) mod budget;
pub(crate) mod diff;
pub(crate) mod find;
pub(crate) mod mcp;
pub(crate) mod summary;
pub(crate) mod why;
