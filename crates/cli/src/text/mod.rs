//! What people see: numbers, tables, colours, problems and advice.

pub(crate) mod advice;
pub(crate) mod format;
pub(crate) mod losses;
pub(crate) mod paint;
pub(crate) mod silence;
pub(crate) mod table;
pub(crate) mod unseen;
