//! Reading the *tables of the present* of programs (which list the open spans and tasks) from time to time, instead of
//! all events.
//!
//! One reading of the tables is called a *look*. A condition on open spans or tasks names an age, such as `open > 5s`.
//! A look finds the spans and tasks that have reached this age since the previous look.
//!
//! The engine replays these spans and tasks as records, like events.

use crate::options::PresentAges;
use eventring::now::{NowReader, Present, SpanCell};
use std::collections::HashSet;
use std::time::Instant;

/// The most spans around one that has reached an age. Damaged tables may have a circle of them.
const AROUND_MAX: usize = 1000;

/// The looks so far.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The time of the last look, in nanoseconds since the epoch.
    pub(super) last_nanos: u64,
    /// The time of the next one.
    pub(super) next: Option<Instant>,
}

/// What a look seeks: what reaches an age after `after_nanos` and until `now_nanos`.
pub(super) struct Sought<'a> {
    pub(super) ages: &'a PresentAges,
    pub(super) after_nanos: u64,
    pub(super) now_nanos: u64,
    /// The first later time at which something of what was found may reach an age.
    pub(super) next_nanos: u64,
}

impl Sought<'_> {
    /// Returns true if something that began at this time has reached the age.
    fn has_reached(&mut self, since_nanos: u64, age_nanos: u64) -> bool {
        let at_nanos = since_nanos.saturating_add(age_nanos);
        if at_nanos > self.now_nanos {
            self.next_nanos = self.next_nanos.min(at_nanos);
            return false;
        }
        at_nanos > self.after_nanos
    }

    fn is_found(&mut self, now: &NowReader, span: &SpanCell) -> bool {
        let ages = self.ages;
        // Each age is looked at, for the time of the next look.
        let mut is_found = ages.open.iter().filter(|age| self.has_reached(span.begun_epoch_nanos, **age)).count() > 0;
        if !ages.phases.is_empty()
            && let Some(task) = now.task(span.id)
        {
            let (does, since_nanos) = task.phase(span);
            let same = ages.phases.iter().filter(|(state, _)| *state == does.into());
            is_found |= same.filter(|(_, age)| self.has_reached(since_nanos, *age)).count() > 0;
        }
        is_found
    }

    /// Returns what has reached an age in these tables, and the spans around.
    pub(super) fn find(&mut self, now: &NowReader) -> Present {
        let mut found = Present::default();
        now.for_each_span(|span| {
            if self.is_found(now, &span) {
                found.spans.push(span);
            }
        });
        let mut known: HashSet<u64> = found.spans.iter().map(|span| span.id).collect();
        for index in 0..found.spans.len() {
            let mut parent = found.spans[index].parent;
            for _ in 0..AROUND_MAX {
                let Some(span) = now.span(parent).filter(|_| known.insert(parent)) else { break };
                parent = span.parent;
                found.spans.push(span);
            }
        }
        found.tasks = found.spans.iter().filter_map(|span| now.task(span.id)).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_reached_in_one_look_and_the_next_look_is_when_another_one_is() {
        let ages = PresentAges::default();
        let mut sought = Sought { ages: &ages, after_nanos: 100, now_nanos: 200, next_nanos: 1000 };
        // The time at which something began, and the age.
        let reached =
            [(50, 50), (50, 51), (100, 100), (100, 101), (100, 300)].map(|(since, age)| sought.has_reached(since, age));
        assert_eq!((reached, sought.next_nanos), ([false, true, true, false, false], 201));
    }
}
