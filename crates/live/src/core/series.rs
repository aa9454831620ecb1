//! Counts and durations by name.

use super::window::{GRAIN_NANOS, SlidingTallies, Tally, WindowClock, WindowShape, WindowStats};
use crate::options::LiveOptions;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::{CallSite, IdMap};
use eventring_capture::recording::PerDescription;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The number of call sites and event types whose series are remembered. If there are more, they are looked up anew.
const KNOWN_MAX: usize = 1 << 16;

/// The things that a [`SeriesView`] counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum SeriesKind {
    /// Spans of one name and target that were closed.
    Spans,
    /// All spans whose names had no room, together.
    OtherSpans,
    /// Typed events of one name.
    Events,
    /// All typed events whose names had no room, together.
    OtherEvents,
    /// Log records of one level; the name is that of the level.
    LogRecords,
}

struct Series {
    kind: SeriesKind,
    name: String,
    target: String,
    tallies: SlidingTallies,
}

/// All series, and their clock.
pub(crate) struct SeriesTable {
    series: Vec<Series>,
    names_max: usize,
    by_name: HashMap<(SeriesKind, String, String), u32>,
    /// The series of each known call site.
    spans: PerDescription<CallSite, u32>,
    /// The series of a ring's event type.
    events: IdMap<(u32, u16), u32>,
    clock: WindowClock,
    oldest_grains: u64,
    /// The events of all rings, except those that came in the present grain.
    all_events: SlidingTallies,
    /// The number of events that are in `all_events`, or were once.
    counted_events: u64,
}

/// The first series. Those of the levels come first, in the order of the levels' numbers.
const OTHER_SPANS: u32 = 6;
const OTHER_EVENTS: u32 = 7;

impl SeriesTable {
    pub(crate) fn new(options: &LiveOptions) -> Self {
        let shapes: Vec<WindowShape> = options.windows.iter().map(|window| WindowShape::new(*window)).collect();
        let oldest_grains = shapes.iter().map(|shape| shape.grains()).max().unwrap_or(0);
        let mut table = Self {
            series: Vec::new(),
            names_max: options.names_max,
            by_name: HashMap::new(),
            spans: PerDescription::default(),
            events: IdMap::default(),
            all_events: SlidingTallies::new(shapes.len()),
            counted_events: 0,
            clock: WindowClock { lengths: options.windows.clone(), shapes, ..WindowClock::default() },
            oldest_grains,
        };
        for level in LEVELS {
            table.push(SeriesKind::LogRecords, level.name().unwrap_or("no level").to_owned(), String::new());
        }
        table.push(SeriesKind::OtherSpans, "other".to_owned(), String::new());
        table.push(SeriesKind::OtherEvents, "other".to_owned(), String::new());
        table
    }

    fn push(&mut self, kind: SeriesKind, name: String, target: String) -> u32 {
        let tallies = SlidingTallies::new(self.clock.shapes.len());
        self.series.push(Series { kind, name, target, tallies });
        self.series.len() as u32 - 1
    }

    /// Returns the series of this name. Makes it if there is room.
    fn find(&mut self, kind: SeriesKind, name: &str, target: &str, other: u32) -> u32 {
        let key = (kind, name.to_owned(), target.to_owned());
        if let Some(known) = self.by_name.get(&key) {
            return *known;
        }
        if self.by_name.len() >= self.names_max {
            return other;
        }
        let index = self.push(kind, key.1.clone(), key.2.clone());
        self.by_name.insert(key, index);
        index
    }

    /// Returns the counts of the present for spans of a call site.
    pub(crate) fn span(&mut self, call_site: Option<&Arc<CallSite>>) -> &mut Tally {
        let index = match call_site.filter(|site| site.is_known) {
            None => OTHER_SPANS,
            Some(site) => match self.spans.get(site) {
                Some(known) => *known,
                None => {
                    let index = self.find(SeriesKind::Spans, &site.name, &site.target, OTHER_SPANS);
                    if self.spans.count() >= KNOWN_MAX {
                        self.spans = PerDescription::default();
                    }
                    self.spans.insert(site, index);
                    index
                }
            },
        };
        self.series[index as usize].tallies.present()
    }

    /// Returns the counts of the present for typed events with a code. `names` returns the names of their type and of
    /// its content type, which stands in the place of a target.
    pub(crate) fn event<'n>(
        &mut self,
        ring: u32,
        code: u16,
        names: impl FnOnce() -> (Cow<'n, str>, &'n str),
    ) -> &mut Tally {
        let index = match self.events.get(&(ring, code)) {
            Some(known) => *known,
            None => {
                let (name, content) = names();
                let index = self.find(SeriesKind::Events, &name, content, OTHER_EVENTS);
                if self.events.len() >= KNOWN_MAX {
                    self.events.clear();
                }
                self.events.insert((ring, code), index);
                index
            }
        };
        self.series[index as usize].tallies.present()
    }

    /// Returns the counts of the present for log records of a level.
    pub(crate) fn log_record(&mut self, level: CallSiteLevel) -> &mut Tally {
        self.series[level as usize].tallies.present()
    }

    /// Notes that the stream has reached this time, in nanoseconds since the epoch, and this number of events. The time
    /// never falls.
    #[inline]
    pub(crate) fn advance(&mut self, now_nanos: u64, events: u64) {
        let start = &mut self.clock.grain_start_nanos;
        if *start == 0 {
            *start = now_nanos;
        }
        if now_nanos.saturating_sub(*start) >= GRAIN_NANOS {
            self.end_grains(now_nanos, events);
        }
    }

    #[cold]
    fn end_grains(&mut self, now_nanos: u64, events: u64) {
        self.all_events.present().count += events - self.counted_events;
        self.counted_events = events;
        let ended = (now_nanos - self.clock.grain_start_nanos) / GRAIN_NANOS;
        let (shapes, oldest_grains) = (&self.clock.shapes, self.oldest_grains);
        let all = self.series.iter_mut().map(|series| &mut series.tallies).chain([&mut self.all_events]);
        if ended > oldest_grains {
            all.for_each(SlidingTallies::clear);
        } else {
            for tallies in all {
                (0..ended).for_each(|grain| tallies.end_grain(self.clock.grains + grain, shapes, oldest_grains));
            }
        }
        self.clock.grains += ended;
        self.clock.grain_start_nanos += ended * GRAIN_NANOS;
    }

    /// Forgets all counts: events of the time before are missing. So each window covers only time of which all events
    /// are known.
    #[cold]
    pub(crate) fn restart(&mut self, now_nanos: u64, events: u64) {
        self.series.iter_mut().for_each(|series| series.tallies.clear());
        self.all_events.clear();
        self.counted_events = events;
        (self.clock.grains, self.clock.grain_start_nanos) = (0, now_nanos);
    }

    /// Returns the events a second in a window, of which there were this number until now.
    pub(crate) fn events_per_second(&self, window: usize, now_nanos: u64, events: u64) -> f64 {
        let in_grain = events - self.counted_events;
        self.clock.rate_of(self.all_events.count(window) + in_grain, window, now_nanos)
    }

    /// Returns the time that a window covers.
    pub(crate) fn covered(&self, window: usize, now_nanos: u64) -> Duration {
        self.clock.covered(window, now_nanos)
    }

    /// Returns the index of the window of this length.
    pub(crate) fn window(&self, length: Duration) -> Option<usize> {
        self.clock.lengths.iter().position(|known| *known == length)
    }

    pub(crate) fn iter(&self, now_nanos: u64) -> impl Iterator<Item = SeriesView<'_>> {
        self.series.iter().map(move |series| SeriesView { series, clock: &self.clock, now_nanos })
    }
}

/// The levels, in the order of their numbers.
const LEVELS: [CallSiteLevel; 6] = [
    CallSiteLevel::None,
    CallSiteLevel::Error,
    CallSiteLevel::Warn,
    CallSiteLevel::Info,
    CallSiteLevel::Debug,
    CallSiteLevel::Trace,
];

/// The counts and durations of one name, in all windows.
#[derive(Clone, Copy)]
pub struct SeriesView<'s> {
    series: &'s Series,
    clock: &'s WindowClock,
    now_nanos: u64,
}

impl<'s> SeriesView<'s> {
    /// Returns what is counted.
    #[must_use]
    pub fn kind(&self) -> SeriesKind {
        self.series.kind
    }

    /// Returns the name of the spans, of the event type or of the level.
    #[must_use]
    pub fn name(&self) -> &'s str {
        &self.series.name
    }

    /// Returns the target of the spans; empty if they have none.
    #[must_use]
    pub fn target(&self) -> &'s str {
        &self.series.target
    }

    /// Returns the counts and durations in a window. `window` is its index in
    /// [`LiveOptions::windows`](crate::LiveOptions::windows). The call merges histograms, so do not make it for every
    /// event.
    #[must_use]
    pub fn window(&self, window: usize) -> WindowStats {
        self.clock.stats(&self.series.tallies, window, self.now_nanos)
    }

    /// Returns the count in a window for each second. This is cheaper than [`Self::window`].
    #[must_use]
    pub fn per_second(&self, window: usize) -> f64 {
        self.clock.rate(&self.series.tallies, window, self.now_nanos)
    }
}

impl std::fmt::Debug for SeriesView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesView").field("kind", &self.series.kind).field("name", &self.series.name).finish()
    }
}
