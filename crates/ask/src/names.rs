//! The spans of one name.

use crate::step::Steps;
use eventring::tracing::{CallSite, Span};
use eventring_capture::WallTimes;
use eventring_capture::recording::{OverSpan, PerDescription};
use eventring_export::full_name;
use std::collections::HashMap;

/// The largest number of names; the spans of further ones are counted together.
const NAMES_MAX: usize = 2000;
/// The percentiles, in thousandths.
const PER_MILLE: [usize; 3] = [990, 900, 500];

/// The spans of one name and target.
pub(crate) struct NameStats {
    pub(crate) name: String,
    /// True if they are tasks. One that waits may be open for long.
    pub(crate) are_tasks: bool,
    pub(crate) count: u64,
    pub(crate) total_nanos: u64,
    pub(crate) max_nanos: u64,
    /// The id and the beginning of the longest one.
    pub(crate) longest: (u64, u64),
    durations: WallTimes,
    /// The percentiles, at the end of the recording.
    pub(crate) p99_nanos: u64,
    pub(crate) p90_nanos: u64,
    pub(crate) p50_nanos: u64,
    pub(crate) steps: Steps,
    pub(crate) open: u64,
    /// Of the open one that is oldest: age, id, beginning.
    pub(crate) oldest: (u64, u64, u64),
}

impl NameStats {
    fn new(name: String) -> Self {
        Self {
            name,
            are_tasks: false,
            count: 0,
            total_nanos: 0,
            max_nanos: 0,
            longest: (0, 0),
            durations: WallTimes::default(),
            p99_nanos: 0,
            p90_nanos: 0,
            p50_nanos: 0,
            steps: Steps::default(),
            open: 0,
            oldest: (0, 0, 0),
        }
    }

    /// Adds a span. Returns the bytes that its duration takes.
    fn add(&mut self, over: &OverSpan<'_>) -> u64 {
        let (span, start) = (over.span, over.span.start_epoch_nanos());
        let mut bytes = 0;
        match span.wall_nanos() {
            Some(nanos) => {
                self.count += 1;
                self.total_nanos = self.total_nanos.saturating_add(nanos);
                if nanos >= self.max_nanos {
                    (self.max_nanos, self.longest) = (nanos, (span.id.get(), start));
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
        let site = over.span.call_site.as_ref().filter(|site| site.is_known);
        let known = task.or_else(|| site.and_then(|site| self.by_call_site.get(site)).copied());
        let place = known.unwrap_or_else(|| {
            let place = self.place(name_of(over.span));
            if let Some(site) = site {
                self.by_call_site.insert(site, place);
            }
            place
        });
        match place {
            Some(place) => self.duration_bytes += self.all[place].add(over),
            None => self.without_room += 1,
        }
    }

    /// Returns the place of tasks of this name; `None` if there is no room.
    pub(crate) fn place_of_task(&mut self, name: String) -> Option<usize> {
        let place = self.place(name)?;
        self.all[place].are_tasks = true;
        Some(place)
    }

    fn place(&mut self, name: String) -> Option<usize> {
        if let Some(known) = self.by_name.get(&name) {
            return Some(*known);
        }
        (self.all.len() < NAMES_MAX).then(|| {
            self.all.push(NameStats::new(name.clone()));
            self.by_name.insert(name, self.all.len() - 1);
            self.all.len() - 1
        })
    }

    /// Finds the percentiles.
    pub(crate) fn end(&mut self) {
        for stats in &mut self.all {
            [stats.p99_nanos, stats.p90_nanos, stats.p50_nanos] =
                PER_MILLE.map(|part| stats.durations.percentile(part));
        }
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.all.len() as u64 * 4096 + self.by_call_site.count() as u64 * 32 + self.duration_bytes
    }
}

/// Returns the name of a span behind its target.
pub(crate) fn name_of(span: &Span) -> String {
    full_name(&span.name(), span.call_site.as_ref().map_or("", |site| &site.target))
}
