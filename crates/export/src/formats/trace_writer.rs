//! The interface of trace formats: a trace has tracks with slices, instants and counters.

pub use crate::slices::flows::{FlowEnds, FlowId};

use crate::args::Args;
use eventring::schema::perf::{CallSiteLevel, FieldValue};
use eventring::tracing::CallSite;
use eventring_profile::by_span::{CodeStacks, StackKey};
use std::io;

/// Number of a track of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TrackId(pub u64);

/// The number of a slice. No two slices of a trace have the same number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SliceId(pub u64);

/// A track: a line of a trace viewer.
#[derive(Clone, Debug)]
pub struct Track<'a> {
    /// What it shows.
    pub kind: TrackKind,
    /// The name that viewers show.
    pub name: &'a str,
    /// The id of the process, by which viewers group tracks.
    pub pid: u32,
}

/// The kind of a track, and the track in which it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrackKind {
    /// A process. All other tracks lie in a process.
    Process,
    /// A thread.
    Thread {
        /// Its process.
        process: TrackId,
        /// The id that the operating system gave it.
        os_thread_id: u32,
    },
    /// Another track with slices and instants. Its parent is a process or a thread.
    Plain {
        /// The process or thread.
        parent: TrackId,
    },
    /// A number that changes over time.
    Counter {
        /// Its process.
        process: TrackId,
    },
}

/// The name and the category of a slice or instant, the place in the program's source that made it, its flows, and
/// whether it should catch the eye.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label<'a> {
    /// The name that viewers show.
    pub name: &'a str,
    /// The category: the target of the call site. Empty if there is none.
    pub category: &'a str,
    /// The file and the line.
    pub source: Option<(&'a str, u32)>,
    /// The flows.
    pub flows: FlowEnds<'a>,
    /// `None` if it should not catch the eye.
    pub alert: Option<Alert>,
}

/// A kind of slices or instants that has a colour of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alert {
    /// Events were lost.
    Loss,
    /// A log record of level ERROR.
    Error,
    /// A log record of level WARN.
    Warning,
    /// A log record of another level.
    Notice,
}

impl Alert {
    /// Returns the alert of a log record of this level.
    pub fn of_level(level: CallSiteLevel) -> Self {
        match level {
            CallSiteLevel::Error => Self::Error,
            CallSiteLevel::Warn => Self::Warning,
            _ => Self::Notice,
        }
    }
}

impl<'a> Label<'a> {
    /// Makes a label with this name. The call site, if it is known, gives the category and the place in the source.
    pub fn new(name: &'a str, call_site: Option<&'a CallSite>) -> Self {
        let Some(call_site) = call_site else { return Self { name, ..Self::default() } };
        let source = call_site.file.as_deref().map(|file| (file, call_site.line.unwrap_or(0)));
        Self { name, category: &call_site.target, source, ..Self::default() }
    }
}

/// A thread was at a stack of the program while it ran.
pub struct StackSample<'a> {
    /// When, in nanoseconds since the epoch.
    pub nanos: u64,
    /// The process, as the system numbers it.
    pub pid: u32,
    /// The thread, as the system numbers it.
    pub tid: u32,
    /// The processor.
    pub cpu: u16,
    /// The stack, which is the same for each sample at it.
    pub stack: StackKey,
    /// The frames of the stack.
    pub code: &'a CodeStacks,
}

/// A writer of a trace in some format. Its caller makes sure that two slices of a track either nest or do not overlap.
pub trait TraceWriter {
    /// Declares a track, before anything is on it.
    fn track(&mut self, id: TrackId, track: &Track<'_>) -> io::Result<()>;
    /// Begins a slice. `nanos` are nanoseconds since the epoch, here and below.
    fn begin(&mut self, track: TrackId, slice: SliceId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()>;
    /// Ends a slice. Viewers show a slice without an end as open.
    fn end(&mut self, track: TrackId, slice: SliceId, nanos: u64, args: &Args) -> io::Result<()>;
    /// Puts an instant on a track.
    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()>;
    /// Gives a counter its value from a time on.
    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()>;
    /// Writes a sample, if the format has a place for it.
    fn sample(&mut self, _: &StackSample<'_>) -> io::Result<()> {
        Ok(())
    }
    /// Writes the rest of the trace.
    fn finish(&mut self) -> io::Result<()>;
}
