//! The change that one record makes to spans.

use crate::tracing::read::slice::{OpenSlice, TakenSlice, ThreadKey};
use crate::tracing::span_id::SpanId;

/// The change that one record makes to spans.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum SpanChange {
    /// No change of a span: the record is a log record, a mark or a sample, it describes a thread or a call site, or a
    /// thread exited a span that other threads are in and this one is not.
    None,
    /// Change of a span, but not of its slices: the span was created, it got fields, it follows from another span, or
    /// a thread exited it and the enter was not seen.
    Updated(SpanId),
    /// Begin of a slice: a thread entered a span.
    SliceBegun(OpenSlice),
    /// End of a slice: a thread left a span that it had entered.
    SliceEnded(OpenSlice),
    /// Close of a span: its last handle is gone.
    Closed {
        /// The span.
        span: SpanId,
        /// The slices that the close ends: those that have not ended yet, because a thread cannot be in a span that is
        /// closed. Their exits were lost, come later in the stream, or never come: the program may have left the span
        /// on another thread than it has entered it.
        cut: Vec<OpenSlice>,
    },
}

/// The change that one record makes to spans, as the exports see it. It is a [`SpanChange`], and also says how slices
/// ended.
pub enum SpanStep {
    /// Nothing.
    None,
    /// The span was made, or has new fields or links.
    Updated(SpanId),
    /// A thread has entered a span.
    SliceBegun(OpenSlice),
    /// A thread has left a span.
    SliceEnded(TakenSlice),
    /// A span has closed.
    Closed {
        /// The span.
        span: SpanId,
        /// The slices that its end has cut: those of threads that had not left it.
        cut: Vec<TakenSlice>,
    },
}

impl SpanStep {
    /// Calls `each` with each thread that is in other spans than before.
    pub fn each_changed_thread(&self, mut each: impl FnMut(ThreadKey)) {
        match self {
            Self::SliceBegun(slice) => each(slice.thread),
            Self::SliceEnded(taken) => each(taken.slice.thread),
            Self::Closed { cut, .. } => cut.iter().for_each(|taken| each(taken.slice.thread)),
            Self::None | Self::Updated(_) => {}
        }
    }
}
