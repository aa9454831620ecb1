//! The arguments of the command line, and their meaning.

pub(crate) mod amounts;
pub(crate) mod limit;
pub(crate) mod rotation;
pub(crate) mod selection;
