//! The options of an export, such as the tracks of a trace.
//!
//! The command line gets the names of views and weights, and their help texts, from these types.

use super::names::Names;

/// The tracks of a trace: threads, spans, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum View {
    /// A track for each thread, with its span slices
    #[default]
    Thread,
    /// A slice for each span from creation to close, whichever threads worked on it
    Span,
    /// Both, as two groups of tracks in one trace, with counters of events and of open spans; stacks are those of
    /// threads
    Both,
}

impl View {
    pub(crate) fn has_threads(self) -> bool {
        matches!(self, Self::Thread | Self::Both)
    }

    pub(crate) fn has_spans(self) -> bool {
        matches!(self, Self::Span | Self::Both)
    }
}

/// The number behind each line of folded stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Weight {
    /// The self time in nanoseconds
    #[default]
    Time,
    /// The instructions that the program executed while a thread was in the span, and in no span inside it
    Instructions,
    /// The time in nanoseconds that threads ran: as samples say, with the program's stacks, or without samples as threads
    /// have measured it in their spans
    Cpu,
    /// The time in nanoseconds that threads in spans could have run and had no processor, as they have measured it
    Queue,
    /// The time in nanoseconds that threads in spans waited for something, as they have measured it
    Sleep,
    /// The time in nanoseconds that threads waited in the kernel, with the stacks at which they left their processors
    Blocked,
    /// The time in nanoseconds that threads could have run and others did, with the same stacks
    Runnable,
}

impl Weight {
    /// Returns true if the numbers are those of the kernel, if it says something, and the stacks go on with those of the
    /// program.
    #[must_use]
    pub fn is_of_kernel(self) -> bool {
        matches!(self, Self::Cpu | Self::Blocked | Self::Runnable)
    }
}

/// The way in which an export shows a capture. A [`View`] alone is options, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The tracks of a trace.
    pub view: View,
    /// The names of spans in traces and stacks.
    pub names: Names,
    /// The numbers of folded stacks.
    pub weight: Weight,
}

impl ExportOptions {
    /// Sets the names of spans in traces and stacks.
    #[must_use]
    pub fn names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Sets the numbers of folded stacks.
    #[must_use]
    pub fn weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

impl From<View> for ExportOptions {
    fn from(view: View) -> Self {
        Self { view, ..Self::default() }
    }
}
