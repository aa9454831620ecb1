//! The interface of the consumers of a replay.

use super::entry::RecordingEntry;
use super::parts::{ReplayParts, ReplayState};
use eventring::now::Present;
use eventring::tracing::{Catalog, Span, SpanStep};
use std::io;

/// A consumer of a recording: an export, a summary, or the present of running programs.
pub trait ReplayConsumer {
    /// Returns what the consumer needs. It is asked once, before the first entry.
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds::default()
    }

    /// Asks for parts of the replay. It is asked once, before the first entry.
    fn follow(&self, _: &mut ReplayParts) {}

    /// Takes the next entry for its seqnos: each entry, also those that stand for no event.
    #[inline]
    fn seqnos(&mut self, _: &RecordingEntry<'_>) {}

    /// Takes an event or a loss. `step` is its effect on the spans of its process.
    ///
    /// # Errors
    /// Writing fails.
    #[inline]
    fn entry(&mut self, _: &RecordingEntry<'_>, _: &SpanStep, _: ReplayState<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Takes a span that is over. `process` is the index of its process.
    ///
    /// # Errors
    /// Writing fails.
    #[inline]
    fn span(&mut self, _process: usize, _: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Takes the end of a recording, before the spans that remain. `end_nanos` has for each process the last time at
    /// which it is known to have lived, in nanoseconds since the epoch.
    ///
    /// # Errors
    /// Writing fails.
    fn end(&mut self, _: ReplayState<'_>, _end_nanos: &[u64]) -> io::Result<()> {
        Ok(())
    }

    /// Takes the end of a process, after the spans that remain.
    ///
    /// # Errors
    /// Writing fails.
    fn process_end(&mut self, _process: usize) -> io::Result<()> {
        Ok(())
    }

    /// Takes what tables of the present of a process have shown at a time that the stream has reached, or at its end.
    fn looked(&mut self, _process: usize, _: &Present, _epoch_nanos: u64) {}

    /// Leaves out of what tables have shown the spans of which the consumer needs no records: there may be a million.
    fn leave_out(&self, _: &mut Present, _: &Catalog) {}

    /// Returns an estimate of the bytes that the consumer keeps in memory at present.
    #[inline]
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Forgets what is of no use any more. A replay in bounded memory calls this from time to time.
    ///
    /// # Errors
    /// Writing fails.
    fn tidy(&mut self, _: ReplayState<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// The values of spans that a consumer needs beside their times and call sites.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReplayNeeds {
    /// The fields, decoded. A replay in bounded memory keeps them undecoded, whoever needs them.
    pub fields: bool,
    /// The self times.
    pub self_times: bool,
    /// The spans that are not over at the end, and their counts.
    pub remaining: bool,
    /// The records that show what was open when a capture began, and whose events it has not.
    pub presents: bool,
}

/// The way in which a span is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanOver {
    /// It was closed 5 milliseconds ago.
    Closed,
    /// It may have been closed, and is given up to make room.
    GivenUp,
    /// The recording has ended, or its program. The span may have been closed in the last milliseconds.
    Remaining,
}

/// A span that is over.
pub struct OverSpan<'s> {
    /// The span.
    pub span: &'s Span,
    /// Why it is over.
    pub over: SpanOver,
    /// The time in which the span existed and none of its children did. `None` if the consumer does not need self
    /// times, or if the beginning or the end was lost.
    pub self_nanos: Option<u64>,
    /// The time until which the span lasts if it has no end, in nanoseconds since the epoch.
    pub end_nanos: u64,
}

/// A consumer that needs nothing.
impl ReplayConsumer for () {}
