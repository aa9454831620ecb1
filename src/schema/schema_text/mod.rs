//! The text of a schema, written and read.

pub(in crate::schema) mod parse;
pub(crate) mod schema;
