//! The spans of one name.

use crate::step::Steps;
use eventring::tracing::{CallSite, Span};
use eventring_capture::recording::{OverSpan, PerDescription};
use eventring_capture::{SpanTimes, WallTimes};
use eventring_export::full_name;
use std::collections::HashMap;

/// The largest number of names; the spans of further ones are counted together.
const NAMES_MAX: usize = 2000;

/// The spans of one name and target.
#[derive(Default)]
pub(crate) struct NameStats {
    pub(crate) name: String,
    /// True if they are tasks. One that waits may be open for long.
    pub(crate) are_tasks: bool,
    /// Of the longest one: duration, id, beginning.
    pub(crate) longest: (u64, u64, u64),
    durations: WallTimes,
    /// At the end of the recording.
    pub(crate) times: SpanTimes,
    pub(crate) steps: Steps,
    pub(crate) open: u64,
    /// Of the open one that is oldest: age, id, beginning.
    pub(crate) oldest: (u64, u64, u64),
}

impl NameStats {
    /// Adds a span. Returns the bytes that its duration takes.
    fn add(&mut self, over: &OverSpan<'_>) -> u64 {
        let (span, start) = (over.span, over.span.start_epoch_nanos());
        let mut bytes = 0;
        match span.wall_nanos() {
            Some(nanos) => {
                if nanos >= self.longest.0 {
                    self.longest = (nanos, span.id.get(), start);
                }
                bytes = self.durations.add(nanos);
                self.steps.add(nanos, start);
            }
            None if span.is_open() && !span.is_end_lost => {
                self.open += 1;
                self.oldest = self.oldest.max((over.end_nanos.saturating_sub(start), span.id.get(), start));
            }
            None => {}
        }
        bytes
    }

    /// Returns how many spans took longer.
    pub(crate) fn longer_than(&self, nanos: u64) -> u64 {
        self.durations.longer_than(nanos)
    }
}

/// The spans by their names.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) all: Vec<NameStats>,
    by_name: HashMap<String, usize>,
    by_call_site: PerDescription<CallSite, Option<usize>>,
    /// The spans whose names had no room.
    pub(crate) without_room: u64,
    duration_bytes: u64,
}

impl Names {
    /// Adds a span. `task` is what [`Self::place_of_task`] has returned, if the span is a task.
    pub(crate) fn add(&mut self, over: &OverSpan<'_>, task: Option<Option<usize>>) {
        let Self { all, by_name, by_call_site, .. } = self;
        let place = task.unwrap_or_else(|| by_call_site.of_span(over.span, || place(all, by_name, name_of(over.span))));
        match place {
            Some(place) => self.duration_bytes += self.all[place].add(over),
            None => self.without_room += 1,
        }
    }

    /// Returns the place of tasks of this name; `None` if there is no room.
    pub(crate) fn place_of_task(&mut self, name: String) -> Option<usize> {
        let place = place(&mut self.all, &mut self.by_name, name)?;
        self.all[place].are_tasks = true;
        Some(place)
    }

    /// Finds the statistics.
    pub(crate) fn end(&mut self) {
        self.all.iter_mut().for_each(|stats| stats.times = stats.durations.statistics());
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.all.len() as u64 * 4096 + self.by_call_site.count() as u64 * 32 + self.duration_bytes
    }
}

fn place(all: &mut Vec<NameStats>, by_name: &mut HashMap<String, usize>, name: String) -> Option<usize> {
    if let Some(known) = by_name.get(&name) {
        return Some(*known);
    }
    (all.len() < NAMES_MAX).then(|| {
        all.push(NameStats { name: name.clone(), ..NameStats::default() });
        by_name.insert(name, all.len() - 1);
        all.len() - 1
    })
}

/// Returns the name of a span behind its target.
pub(crate) fn name_of(span: &Span) -> String {
    full_name(&span.name(), span.call_site.as_ref().map_or("", |site| &site.target))
}
