//! Output for people: numbers, tables, colours, and problems.

#[macro_use]
pub(crate) mod out;

pub(crate) mod format;
pub(crate) mod losses;
pub(crate) mod paint;
pub(crate) mod perf;
pub(crate) mod secrets;
pub(crate) mod silence;
pub(crate) mod table;
