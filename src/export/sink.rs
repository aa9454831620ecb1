//! What a picture is drawn on.

use super::args::Args;
use crate::schema::perf::{CallSiteLevel, FieldValue};
use crate::tracing::CallSite;
use std::io;

/// Names a track of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TrackId(pub(super) u64);

/// Names a slice of a picture; given once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SliceId(pub(super) u64);

/// A row of a picture.
#[derive(Clone, Debug)]
pub(super) struct Track<'a> {
    pub(super) kind: TrackKind,
    pub(super) name: &'a str,
    /// Of the process, for numbers that viewers group by.
    pub(super) pid: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TrackKind {
    /// The process: all others lie in one.
    Process,
    /// What a thread did.
    Thread {
        process: TrackId,
        os_thread_id: u32,
    },
    /// Anything else with slices and instants; lies in a process or a thread.
    Plain {
        parent: TrackId,
    },
    Counter {
        process: TrackId,
    },
}

/// Name and category of a slice or instant, and where in the program it comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Label<'a> {
    pub(super) name: &'a str,
    pub(super) category: &'a str,
    pub(super) source: Option<(&'a str, u32)>,
}

impl<'a> Label<'a> {
    /// Of what was recorded there.
    pub(super) fn of(name: &'a str, call_site: &'a CallSite) -> Self {
        let source = call_site.file.as_deref().map(|file| (file, call_site.line.unwrap_or(0)));
        Self { name, category: &call_site.target, source }
    }
}

/// What a level is called.
pub(super) fn level_name(level: CallSiteLevel) -> &'static str {
    match level {
        CallSiteLevel::None => "",
        CallSiteLevel::Error => "ERROR",
        CallSiteLevel::Warn => "WARN",
        CallSiteLevel::Info => "INFO",
        CallSiteLevel::Debug => "DEBUG",
        CallSiteLevel::Trace => "TRACE",
    }
}

/// Takes a picture. On each track, slices nest in one another or are apart.
pub(super) trait Sink {
    fn track(&mut self, id: TrackId, track: &Track<'_>) -> io::Result<()>;
    fn begin(&mut self, track: TrackId, slice: SliceId, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()>;
    /// What is not ended is open.
    fn end(&mut self, track: TrackId, slice: SliceId, nanos: u64, args: Args) -> io::Result<()>;
    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()>;
    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()>;
    fn finish(&mut self) -> io::Result<()>;
}
