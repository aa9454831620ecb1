//! The types of fields, and their bytes.

pub(in crate::schema) mod field;
pub(in crate::schema) mod trailing;
pub(in crate::schema) mod utf8;
