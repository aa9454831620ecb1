//! `eventring capture --on`: files with the events before and after an occurrence.

mod action;
mod end;
mod history;
mod manifest;
mod messages;
mod names;
mod policy;
mod run;
mod shared;
mod shown_lines;
mod watch;
mod writer;

pub(crate) use messages::Watched;
pub(super) use run::run;
