//! The parts of a replay. If a consumer asks for a part, the part follows something in addition to spans, for example
//! tasks or blocks. Other crates may define parts.

use super::entry::RecordingEntry;
use super::tables::RecordingTables;
use eventring::now::Present;
use eventring::tracing::{Span, SpanId, SpanReplay, SpanStep};
use std::any::{Any, TypeId};

/// Follows something in a recording: tasks, for example, or blocks. A replay gives it each entry before its consumer
/// gets the entry, which so finds what the part knows then ([`ReplayState::part`]).
pub trait ReplayPart: Any + Send + Sync {
    /// Takes an event or a loss. `step` is its effect on the spans of its process. The state has no parts.
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>);

    /// Takes what tables of the present of a process have shown at a time that the stream has reached, or at its end.
    fn looked(&mut self, _process: usize, _: &Present, _epoch_nanos: u64) {}

    /// Takes the end of the recording, before its consumer does.
    fn end(&mut self, _: ReplayState<'_>) {}

    /// Forgets what is of no use any more. A replay in bounded memory calls this from time to time.
    fn tidy(&mut self, _: ReplayState<'_>) {}

    /// Returns an estimate of the bytes that the part keeps in memory at present.
    fn kept_bytes(&self) -> u64 {
        0
    }
}

/// The parts that are asked for, with their types: consumers ask for a part at each entry.
#[derive(Default)]
pub struct ReplayParts(Vec<(TypeId, Box<dyn ReplayPart>)>);

impl ReplayParts {
    pub(super) const NONE: &Self = &Self(Vec::new());

    /// Asks for a part, which `make` makes if nobody has asked for one of its type yet.
    pub fn ask<P: ReplayPart>(&mut self, make: impl FnOnce() -> P) {
        if self.get::<P>().is_none() {
            self.0.push((TypeId::of::<P>(), Box::new(make())));
        }
    }

    /// Puts a part in place of that of its type.
    pub fn set<P: ReplayPart>(&mut self, part: P) {
        self.0.retain(|(of, _)| *of != TypeId::of::<P>());
        self.0.push((TypeId::of::<P>(), Box::new(part)));
    }

    /// Returns the part of a type, if somebody has asked for it.
    #[inline]
    #[must_use]
    pub fn get<P: ReplayPart>(&self) -> Option<&P> {
        let (_, part) = self.0.iter().find(|(of, _)| *of == TypeId::of::<P>())?;
        (&**part as &dyn Any).downcast_ref()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(super) fn each(&mut self, f: impl FnMut(&mut Box<dyn ReplayPart>)) {
        self.0.iter_mut().map(|(_, part)| part).for_each(f);
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.0.iter().map(|(_, part)| part.kept_bytes()).fold(0, u64::saturating_add)
    }
}

/// The state of a replay.
#[derive(Clone, Copy)]
pub struct ReplayState<'r> {
    /// All that is known of the rings.
    pub tables: &'r RecordingTables,
    /// The replay of each process. There is none any more when the spans that remain at the end are taken.
    pub replays: &'r [SpanReplay],
    /// The time that the stream has reached, in nanoseconds since the epoch.
    pub now_nanos: u64,
    /// The parts that follow something beside spans.
    pub parts: &'r ReplayParts,
}

impl<'r> ReplayState<'r> {
    /// Returns a part of the replay, if somebody has asked for it.
    #[inline]
    pub fn part<P: ReplayPart>(self) -> Option<&'r P> {
        self.parts.get()
    }

    /// Returns a span that is not over, if it is known.
    #[inline]
    pub fn span(self, process: usize, id: SpanId) -> Option<&'r Span> {
        self.replays.get(process)?.get(id)
    }

    /// Returns a span and those around it, innermost first, as far as they are known: also closed ones, as long as a
    /// span inside of them is not over.
    pub fn spans_around(self, process: usize, id: SpanId) -> impl Iterator<Item = &'r Span> {
        self.replays.get(process).into_iter().flat_map(move |replay| replay.spans_around(id))
    }
}
