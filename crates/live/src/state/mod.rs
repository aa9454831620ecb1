//! Questions about the present.
//!
//! | file | idea |
//! |---|---|
//! | `open` | the open spans |
//! | `threads` | the threads, and the spans that they are in |
//! | `locks` | the threads that wait for locks, and deadlocks |
//! | `task_phase` | the phases of tasks, and the time since each phase began |

pub(crate) mod locks;
pub(crate) mod open;
pub(crate) mod task_phase;
pub(crate) mod threads;

use super::core::LiveCore;
use crate::core::series::{SeriesKind, SeriesView};
use crate::core::window::WindowStats;
use eventring::reader::RingEnd;
use eventring::tracing::{Catalog, Span, SpanId, SpanReplay};
use eventring_capture::recording::{RecordedProgram, ReplayState};
use std::time::Duration;

/// The present of the programs, as far as their events show it.
#[derive(Clone, Copy)]
pub struct LiveState<'s> {
    pub(super) replayed: ReplayState<'s>,
    pub(super) core: &'s LiveCore,
}

impl<'s> LiveState<'s> {
    /// Returns the time of this state in nanoseconds since the epoch: that of the last event, or a later one if the
    /// engine knows that no event is missing until then. The ages of spans count to this time.
    #[must_use]
    pub fn now_epoch_nanos(&self) -> u64 {
        self.replayed.now_nanos
    }

    /// Returns the time from which on all events are known, in nanoseconds since the epoch. Returns `None` if they are
    /// known from the first one on.
    #[must_use]
    pub fn known_since_epoch_nanos(&self) -> Option<u64> {
        self.core.known_since_nanos
    }

    /// Returns the programs.
    #[must_use]
    pub fn programs(&self) -> &'s [RecordedProgram] {
        self.replayed.tables.rings.programs()
    }

    /// Returns true if one of the rings is a perf ring, which has spans.
    #[must_use]
    pub fn have_span_rings(&self) -> bool {
        !self.replayed.tables.rings.recorders().is_empty()
    }

    /// Returns the index of the program that writes a ring, by the ring's index in the set that is read. Returns `None`
    /// if the ring is not known yet.
    #[doc(hidden)]
    #[must_use]
    pub fn program_of_ring(&self, ring: usize) -> Option<usize> {
        let rings = &self.replayed.tables.rings;
        (ring < rings.count()).then(|| rings.origin(ring as u32).process_index)
    }

    /// Returns the end of a program, by its index in [`Self::programs`]. Returns `None` while the program lives, and if
    /// nothing is known of its end.
    #[must_use]
    pub fn end_of(&self, program_index: usize) -> Option<RingEnd> {
        self.core.processes.get(program_index)?.end()
    }

    /// Returns true if all programs have ended.
    #[must_use]
    pub fn have_ended(&self) -> bool {
        self.core.processes.iter().all(|process| process.has_ended)
    }

    /// Returns the index of a program's process.
    pub fn process_of(self, program: &RecordedProgram) -> Option<usize> {
        self.programs().iter().position(|known| std::ptr::eq(known, program))
    }

    /// Returns a span of a process and those around it, innermost first, as far as they are known: also closed ones, as
    /// long as a span inside of them is open.
    pub(super) fn spans_around(self, process_index: usize, id: SpanId) -> impl Iterator<Item = &'s Span> {
        self.replayed.spans_around(process_index, id)
    }

    /// Returns how many open spans are not kept now, because there was no room for them
    /// ([`LiveOptions::open_spans_max`](super::LiveOptions::open_spans_max)).
    ///
    /// Without losses, the number is exact. After a loss, spans whose close may be among the lost events are not
    /// counted any more, so the number may be too low: a span counts again when a record shows that it is open.
    #[must_use]
    pub fn not_tracked(&self) -> u64 {
        let of_tables = self.core.tabled.iter().flatten().map(|of| of.spans.left_out());
        self.replayed.replays.iter().map(SpanReplay::not_tracked).chain(of_tables).fold(0, u64::saturating_add)
    }

    /// Returns how many spans have found no room since the engine began, whether they are open or not. A span that was
    /// forgotten and seen again counts twice.
    pub fn spans_without_room(self) -> u64 {
        self.replayed.replays.iter().map(SpanReplay::spans_without_room).fold(0, u64::saturating_add)
    }

    /// Returns how many spans the engine has given up since it began: it does not know whether they are open, because
    /// their close may be among lost events. It gives up spans for which it has no room ([`Self::not_tracked`]), and
    /// others if there is little room left.
    #[must_use]
    pub fn spans_given_up(&self) -> u64 {
        let forgotten = self.replayed.replays.iter().map(SpanReplay::forgotten_spans);
        forgotten.fold(self.core.counts.given_up, u64::saturating_add)
    }

    /// Returns how many descriptions of call sites and threads, and how many enters of spans, found no room since the
    /// engine began. This happens only if a ring is damaged, or if a program has more than 65,536 threads in spans.
    /// Spans of such call sites and threads have no names.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let enters = self.replayed.replays.iter().map(SpanReplay::refused_enters);
        let descriptions = self.replayed.tables.catalogs.iter().map(Catalog::refused);
        enters.chain(descriptions).fold(0, u64::saturating_add)
    }

    /// Returns the counts and durations by name.
    pub fn series(&self) -> impl Iterator<Item = SeriesView<'s>> + use<'s> {
        self.core.series.iter(self.replayed.now_nanos)
    }

    /// Returns the counts of one name. `target` is that of spans; without it, the first spans of this name.
    #[must_use]
    pub fn series_of(&self, kind: SeriesKind, name: &str, target: Option<&str>) -> Option<SeriesView<'s>> {
        let is_it =
            |it: &SeriesView<'_>| it.kind() == kind && it.name() == name && target.is_none_or(|of| of == it.target());
        self.series().find(is_it)
    }

    /// Returns the counts and durations of all names for which `is_meant` returns true, together. `window` is one of
    /// [`LiveOptions::windows`](super::LiveOptions::windows). Returns `None` if it is not, if the window reaches
    /// further back than the engine knows, or if there is no such name yet.
    #[must_use]
    pub fn stats_of(&self, window: Duration, is_meant: impl Fn(&SeriesView<'s>) -> bool) -> Option<WindowStats> {
        let index = self.core.series.window(window)?;
        let mut all: Option<WindowStats> = None;
        for series in self.series().filter(is_meant) {
            let stats = series.window(index);
            match &mut all {
                Some(all) => all.add(&stats),
                None => all = Some(stats),
            }
        }
        all.filter(|all| all.covered() >= window)
    }

    /// Returns the time that a window covers. It is shorter than the window at the beginning, and if one of the rings
    /// holds less. `window` is its index in [`LiveOptions::windows`](super::LiveOptions::windows).
    #[must_use]
    pub fn covered(&self, window: usize) -> Duration {
        self.core.series.covered(window, self.replayed.now_nanos)
    }

    /// Returns the events of all rings in a window, for each second. `window` is its index in
    /// [`LiveOptions::windows`](super::LiveOptions::windows).
    #[must_use]
    pub fn events_per_second(&self, window: usize) -> f64 {
        self.core.series.events_per_second(window, self.replayed.now_nanos, self.core.counts.events)
    }

    /// Returns the number of events that were read, of all rings.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.core.counts.events
    }

    /// Returns true if events of a window were lost. Then its counts are what was seen: there were at least so many.
    /// `window` is its index in [`LiveOptions::windows`](super::LiveOptions::windows).
    #[must_use]
    pub fn has_losses_in(&self, window: usize) -> bool {
        let covered = u64::try_from(self.covered(window).as_nanos()).unwrap_or(u64::MAX);
        let since = self.now_epoch_nanos().saturating_sub(covered);
        self.core.counts.last_loss_nanos.is_some_and(|loss| loss >= since)
    }

    /// Returns the number of events that were lost since the engine began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.core.counts.lost
    }
}

impl std::fmt::Debug for LiveState<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveState")
            .field("now", &self.now_epoch_nanos())
            .field("programs", &self.programs())
            .finish_non_exhaustive()
    }
}
