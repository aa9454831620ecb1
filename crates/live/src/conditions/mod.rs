//! Conditions that are tested on each occurrence, for example when a program ends, or when an open span reaches an age.
//!
//! | file | idea |
//! |---|---|
//! | `occurrence` | the occurrences |
//! | `ages`, `phase_ages` | the ages at which open spans are tested, and the phases of tasks |

pub(crate) mod ages;
pub(crate) mod occurrence;
pub(crate) mod phase_ages;
#[cfg(test)]
pub(crate) mod phase_ages_tests;

use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use crate::options::PresentAges;
use ages::SpanAge;
use eventring_capture::condition::{Condition, Truth};
use occurrence::Occurrence;
use phase_ages::{PhaseAges, phase_of};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A set of conditions, and what must be remembered to test them.
#[derive(Debug)]
pub struct ConditionSet {
    conditions: Vec<Condition>,
    /// The ages at which open spans may fulfil a condition.
    ages: Vec<SpanAge>,
    /// The ages at which what a task does may fulfil a condition.
    phases: PhaseAges,
    /// For each condition, what it says of rates and percentiles.
    rates: Vec<RateTerms>,
    /// For each condition, true if it held at the last tick.
    held: Vec<bool>,
    /// The time of the last tick in nanoseconds since the epoch.
    last_tick_nanos: u64,
    untested: u64,
}

impl ConditionSet {
    /// Makes a set.
    #[must_use]
    pub fn new(conditions: Vec<Condition>) -> Self {
        let mut named: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut phases = PhaseAges::default();
        for (index, condition) in conditions.iter().enumerate() {
            for age in condition.open_ages() {
                named.entry(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)).or_default().push(index);
            }
            condition.phase_ages().into_iter().for_each(|(state, nanos)| phases.add(nanos, state.into(), index));
        }
        let ages = named.into_iter().map(|(nanos, conditions)| SpanAge::new(nanos, conditions)).collect();
        let rates = conditions.iter().map(RateTerms::from_condition).collect();
        let held = vec![false; conditions.len()];
        Self { conditions, ages, phases, rates, held, last_tick_nanos: 0, untested: 0 }
    }

    /// Returns the conditions.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Returns how many times something could not be tested, because a condition depends on a lost payload.
    #[must_use]
    pub fn untested(&self) -> u64 {
        self.untested
    }

    /// Adds to the options of an engine the windows that the conditions need, and the tasks.
    pub fn options(&self, options: LiveOptions) -> LiveOptions {
        let mut options = if self.phases.is_empty() { options } else { options.with_tasks() };
        let is_all = self.conditions.iter().all(Condition::is_about_present);
        let open: Vec<u64> = self.ages.iter().map(SpanAge::nanos).collect();
        let ages = PresentAges { open, phases: self.phases.ages().collect(), is_all };
        options.present = Some(ages).filter(|ages| !ages.is_empty());
        let needed = self.conditions.iter().flat_map(Condition::rates).map(|(_, window)| window);
        let mut windows = options.windows.clone();
        needed.for_each(|window| windows.push(window));
        windows.sort_unstable();
        windows.dedup();
        options.windows(windows)
    }

    /// Tests the conditions on what an engine saw. Calls `fulfilled` with each condition that holds, its index, and
    /// what fulfils it.
    ///
    /// A span is tested once for each age that the condition names and that the span reaches while it is open: at the
    /// next tick, or at its close if that comes before the tick. At a tick, a span whose close may have been lost is
    /// not tested; if its close comes nevertheless, it is tested then. In both cases it is tested as a span that is
    /// open. Each closed span is also tested as one that was closed.
    ///
    /// What a task does is tested in the same way, once at each age that the condition names: at a tick while it lasts,
    /// or at its end. It is not tested at a tick while events about it may have been lost.
    ///
    /// Where programs have tables of the present, a span or task is tested at a tick only if the tables say the same of
    /// it. If all conditions are about the present, the engine reads the tables alone ([`Live`](super::Live)): then
    /// nothing is tested that has ended.
    ///
    /// Rates and percentiles are tested at each tick; a condition that holds at a tick must not hold at a later one
    /// before it is fulfilled again. At other times they count only together with what happens.
    pub fn see(
        &mut self,
        observation: &Observation<'_>,
        state: LiveState<'_>,
        fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>),
    ) {
        let Self { conditions, ages, phases, rates, last_tick_nanos, untested, .. } = self;
        if let Some(phase) = phase_of(observation) {
            return phases.reached(phase, *last_tick_nanos, |named| {
                let occurrence = Occurrence::of_phase(phase, state);
                *untested += test((conditions, rates), named.iter().copied(), &occurrence, fulfilled);
            });
        }
        match observation {
            Observation::Tick => return self.tick(state, fulfilled),
            // Conditions say nothing about such records, and nothing is known to have happened to such spans.
            Observation::SpanClosed(span) => {
                for age in ages.iter_mut() {
                    if age.close(span) {
                        let occurrence = Occurrence::of_outgrown(span, state);
                        let named = age.conditions.iter().copied();
                        *untested += test((conditions, rates), named, &occurrence, fulfilled);
                    }
                }
            }
            _ => {}
        }
        let occurrence = Occurrence::from_observation(observation, state);
        *untested += test((conditions, rates), 0..conditions.len(), &occurrence, fulfilled);
    }

    fn tick(&mut self, state: LiveState<'_>, fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>)) {
        let Self { conditions, ages, phases, rates, last_tick_nanos, untested, .. } = self;
        if !phases.is_empty() {
            let mut reached = Vec::new();
            state.each_task_phase(|phase| {
                let mut has_reached = false;
                phases.reached(phase, *last_tick_nanos, |_| has_reached = true);
                reached.extend(has_reached.then_some(*phase));
            });
            // The tasks come in no order. Conditions are told first of the one that has done so for longest.
            reached.sort_by_key(|phase| (Reverse(phase.nanos()), phase.span().number));
            for phase in reached {
                phases.reached(&phase, *last_tick_nanos, |named| {
                    let occurrence = Occurrence::of_phase(&phase, state);
                    *untested += test((conditions, rates), named.iter().copied(), &occurrence, fulfilled);
                });
            }
        }
        for age in ages {
            let named = std::mem::take(&mut age.conditions);
            age.tick(state, *last_tick_nanos, |span| {
                let occurrence = Occurrence::of_open(span, state);
                *untested += test((conditions, rates), named.iter().copied(), &occurrence, fulfilled);
            });
            age.conditions = named;
        }
        let occurrence = Occurrence::from_observation(&Observation::Tick, state);
        for (index, condition) in conditions.iter().enumerate() {
            if self.rates[index] != RateTerms::None {
                let holds = condition.holds(&occurrence);
                if holds && !self.held[index] {
                    fulfilled(index, condition, &occurrence);
                }
                self.held[index] = holds;
            }
        }
        // At the end of a watch that has read nothing of the rings, their state has no time.
        self.last_tick_nanos = self.last_tick_nanos.max(state.now_epoch_nanos());
    }

    /// Tests the conditions on a signal that the program got.
    pub fn signal(&self, state: LiveState<'_>, fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>)) {
        let occurrence = Occurrence::of_signal(state);
        test((&self.conditions, &self.rates), 0..self.conditions.len(), &occurrence, fulfilled);
    }
}

/// The part that rates and percentiles have in a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RateTerms {
    None,
    Some,
    Only,
}

impl RateTerms {
    fn from_condition(condition: &Condition) -> Self {
        match condition.rates().is_empty() {
            true => Self::None,
            false if condition.has_only_rates() => Self::Only,
            false => Self::Some,
        }
    }

    /// Returns whether an occurrence that is no tick fulfils the condition. A rate that has passed its limit fulfils it
    /// at a tick, once, and not again with all that happens while it lasts.
    fn allow(self, condition: &Condition, occurrence: &Occurrence<'_>) -> Truth {
        match self {
            Self::None => condition.truth(occurrence),
            Self::Some => occurrence.fulfils(condition),
            Self::Only => Truth::No,
        }
    }
}

/// Tests some of the conditions on an occurrence. Returns 1 if one of them depends on a lost payload, and otherwise 0.
fn test(
    (conditions, rates): (&[Condition], &[RateTerms]),
    indices: impl IntoIterator<Item = usize>,
    occurrence: &Occurrence<'_>,
    fulfilled: &mut dyn FnMut(usize, &Condition, &Occurrence<'_>),
) -> u64 {
    let mut is_untested = false;
    for index in indices {
        match rates[index].allow(&conditions[index], occurrence) {
            Truth::Yes => fulfilled(index, &conditions[index], occurrence),
            Truth::Indeterminate => is_untested = true,
            Truth::No => {}
        }
    }
    is_untested.into()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{START, StreamFixture};
    use super::*;
    use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt};
    use proptest::prelude::*;

    const MILLI: u64 = 1_000_000;

    const NAMES: [&str; 2] = ["query", "page"];

    /// Fulfilments: the index of the condition, and the name and the id of the span.
    type Fired = Vec<(usize, u64)>;

    fn set(conditions: &[&str]) -> ConditionSet {
        ConditionSet::new(conditions.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn stream() -> StreamFixture {
        let mut stream = StreamFixture::new(&LiveOptions::new().windows([]));
        NAMES.iter().zip(1..).for_each(|(name, id)| stream.call_site(id, name));
        stream
    }

    /// Returns what notes the spans that fulfil conditions.
    fn noting<'n>(set: &'n mut ConditionSet, fired: &'n mut Fired) -> impl FnMut(&Observation<'_>, LiveState<'_>) + 'n {
        |observation, state| {
            set.see(observation, state, &mut |index, _, occurrence| {
                fired.push((index, occurrence.span().unwrap().id.get()))
            });
        }
    }

    #[test]
    fn a_span_between_two_ticks_fires_once_and_one_that_a_tick_saw_does_not_fire_again() {
        let (mut stream, mut set, mut fired) = (stream(), set(&["open>60ms", "open>10s"]), Fired::new());
        let at = |milli| START + milli * MILLI;
        let ext = |id| PerfExt::of_span(id, 1);
        let mut ticked = Vec::new();
        stream.tick(at(0), &mut noting(&mut set, &mut fired));
        for (milli, event, id) in
            [(10, PerfEvent::SpanNew, 1), (20, PerfEvent::SpanNew, 2), (90, PerfEvent::SpanClose, 1)]
        {
            stream.push(at(milli), event, ext(id), &[], &mut noting(&mut set, &mut fired));
        }
        // The close of span 1 comes to the conditions before the tick.
        stream.tick(at(100), &mut noting(&mut set, &mut fired));
        ticked.append(&mut fired);
        assert_eq!(ticked, [(0, 1), (0, 2)]);
        stream.push(at(150), PerfEvent::SpanClose, ext(2), &[], &mut noting(&mut set, &mut fired));
        stream.tick(at(200), &mut noting(&mut set, &mut fired));
        stream.end(&mut noting(&mut set, &mut fired));
        assert_eq!(fired, []);
        assert!(set.ages.iter().all(|age| age.is_unused()));
    }

    #[test]
    fn a_span_whose_close_may_be_lost_fires_when_its_close_comes_and_not_before() {
        let (mut stream, mut set, mut fired) = (stream(), set(&["open>60ms"]), Fired::new());
        let at = |milli| START + milli * MILLI;
        stream.quiet(at(0), PerfEvent::SpanNew, PerfExt::of_span(1, 1), &[]);
        stream.lose();
        stream.tick(at(100), &mut noting(&mut set, &mut fired));
        stream.tick(at(200), &mut noting(&mut set, &mut fired));
        assert_eq!(fired, []);
        stream.push(at(250), PerfEvent::SpanClose, PerfExt::of_span(1, 1), &[], &mut noting(&mut set, &mut fired));
        stream.end(&mut noting(&mut set, &mut fired));
        assert_eq!(fired, [(0, 1)]);
    }

    #[test]
    fn what_depends_on_a_lost_payload_fires_nothing_and_is_counted_once() {
        let texts = ["span=query field.n=1", "span=query not field.n=1", "span=nobody field.n=1"];
        let (mut stream, mut set, mut fired) = (stream(), set(&texts), Fired::new());
        for (id, call_site) in [(1, 1), (2, 2)] {
            let ext = PerfExt { field_count: 1, ..PerfExt::of_span(id, call_site) };
            stream.push_lost(START, PerfEvent::SpanNew, ext, &mut noting(&mut set, &mut fired));
            let ext = PerfExt::of_span(id, call_site);
            stream.push(START + MILLI, PerfEvent::SpanClose, ext, &[], &mut noting(&mut set, &mut fired));
        }
        stream.end(&mut noting(&mut set, &mut fired));
        assert_eq!((fired, set.untested()), (Fired::new(), 1));
    }

    #[test]
    fn a_rate_fires_at_one_tick_and_not_with_what_happens_while_it_lasts() {
        let texts =
            ["rate(span=query,1s)<3/s", "rate(span=query,1s)<3/s or dur>50ms", "dur>50ms rate(span=query,1s)<3/s"];
        let mut set = set(&texts);
        let mut stream = StreamFixture::new(&set.options(LiveOptions::new()));
        NAMES.iter().zip(1..).for_each(|(name, id)| stream.call_site(id, name));
        let mut fired: Vec<(usize, String)> = Vec::new();
        let mut see = |observation: &Observation<'_>, state: LiveState<'_>| {
            set.see(observation, state, &mut |index, _, occurrence| fired.push((index, occurrence.to_string())));
        };
        // In the first two seconds, there are ten spans a second. Then there are only spans of another name.
        for milli in (0..5000).step_by(100) {
            let (id, call_site) = (milli + 1, if milli < 2000 { 1 } else { 2 });
            let length = if milli == 4000 { 60 } else { 1 };
            let nanos = START + milli * MILLI;
            stream.push(nanos, PerfEvent::SpanNew, PerfExt::of_span(id, call_site), &[], &mut see);
            let closed = nanos + length * MILLI;
            stream.push(closed, PerfEvent::SpanClose, PerfExt::of_span(id, call_site), &[], &mut see);
            stream.tick(nanos + 80 * MILLI, &mut see);
        }
        let (rate, long) = ("a rate or percentile passed its limit".to_owned(), "span `page` took 60.0 ms".to_owned());
        assert_eq!(fired, [(0, rate.clone()), (1, rate), (1, long.clone()), (2, long)]);
    }

    #[test]
    fn the_memory_of_tested_spans_is_bounded_by_the_open_spans() {
        let options = LiveOptions::new().windows([]).open_spans_max(10_000);
        let (mut stream, mut set, mut fired) = (StreamFixture::new(&options), set(&["open>1ms"]), Fired::new());
        for round in 0..20_u64 {
            // The closes of these spans are lost, and they are given up.
            let nanos = START + round * 22_000 * MILLI;
            for id in 0..10_000 {
                stream.quiet(nanos, PerfEvent::SpanNew, PerfExt::of_span(round * 10_000 + id + 1, 1), &[]);
            }
            stream.tick(nanos + 10_500 * MILLI, &mut noting(&mut set, &mut fired));
            stream.lose();
            stream.tick(nanos + 21_000 * MILLI, &mut noting(&mut set, &mut fired));
            assert!(set.ages[0].tested() <= 30_000, "{}", set.ages[0].tested());
        }
        assert_eq!(fired.len(), 200_000);
    }

    #[test]
    fn the_spans_around_an_event_are_known_after_their_close_as_long_as_a_span_inside_is_open() {
        // A job of a request, and a step of the job; the job ends before the step does. Nobody knows the parent of 9.
        let (mut stream, mut set) = (stream(), set(&["span=page level>=INFO", "span=query level>=INFO"]));
        stream.call_site_in(3, CallSiteKind::Event, ("shop", "event"), "message");
        stream.call_site(4, "step");
        let (at, mut fired) = (|milli| START + milli * MILLI, Vec::new());
        let mut see = |observation: &Observation<'_>, state: LiveState<'_>| {
            set.see(observation, state, &mut |index, _, occurrence| fired.push((index, occurrence.epoch_nanos())));
        };
        let ext = |id, call_site, related| PerfExt { related, ..PerfExt::of_span(id, call_site) };
        let (new, close, event) = (PerfEvent::SpanNew, PerfEvent::SpanClose, PerfEvent::Event);
        for (milli, kind, ext) in [
            (0, new, ext(1, 2, 0)),
            (1, new, ext(2, 1, 1)),
            (2, close, ext(1, 2, 0)),
            (60, event, ext(2, 3, 0)),
            (61, new, ext(3, 4, 2)),
            (62, close, ext(2, 1, 0)),
            (150, event, ext(3, 3, 0)),
            (151, new, ext(4, 4, 9)),
            (152, event, ext(4, 3, 0)),
            (153, close, ext(3, 4, 0)),
        ] {
            stream.tick(at(milli), &mut see);
            stream.push(at(milli), kind, ext, &[], &mut see);
        }
        // What is in no span of theirs any more does not find them, and takes no memory.
        for (milli, kind, ext) in [(200, event, ext(3, 3, 0)), (201, event, ext(1, 3, 0))] {
            stream.tick(at(milli), &mut see);
            stream.push(at(milli), kind, ext, &[], &mut see);
        }
        assert_eq!(fired, [(0, at(60)), (1, at(60)), (0, at(150)), (1, at(150))]);
        assert_eq!(stream.replay.state(&stream.tables).replays[0].around_count(), 0);
    }

    /// A condition of the model: what it says of a name, of the age of an open span, and of the time of a closed one.
    type Model = fn(&str, Option<u64>, Option<u64>) -> bool;

    /// The conditions, the ages that each names, and what each means. Times are in milliseconds.
    const CONDITIONS: [(&str, &[u64], Model); 8] = [
        ("open>=60ms", &[60], |_, open, _| open >= Some(60)),
        ("open>=0ms", &[0], |_, open, _| open.is_some()),
        ("span=query open>=130ms", &[130], |name, open, _| name == "query" && open >= Some(130)),
        ("open>=60ms or dur>90ms", &[60], |_, open, closed| open >= Some(60) || closed > Some(90)),
        ("open>=30ms not open>=130ms", &[30, 130], |_, open, _| open >= Some(30) && open < Some(130)),
        ("open>=30ms not span=query", &[30], |name, open, _| name != "query" && open >= Some(30)),
        ("span=page not open>=200ms", &[200], |name, open, _| name == "page" && open < Some(200)),
        ("dur>=60ms not open>=60ms", &[60], |_, open, closed| closed >= Some(60) && open < Some(60)),
    ];

    proptest! {
        #[test]
        fn a_span_is_tested_once_at_each_age_it_reaches_and_once_at_its_close(
            raw in prop::collection::vec((0..600_u64, prop::option::weighted(0.8, 0..400_u64), 0..2_usize), 1..30),
            ticks in prop::collection::btree_set(0..1100_u64, 0..20),
        ) {
            let texts: Vec<&str> = CONDITIONS.iter().map(|(text, ..)| *text).collect();
            let (mut stream, mut set, mut fired) = (stream(), set(&texts), Fired::new());
            // What happens: the time, its kind (a begin before a close before a tick), and the span.
            let begins = raw.iter().enumerate().map(|(span, (begin, ..))| (*begin, 0, span));
            let close = |(span, (begin, length, _)): (usize, &(u64, Option<u64>, usize))| {
                length.map(|length| (begin + length, 1, span))
            };
            let closes = raw.iter().enumerate().filter_map(close);
            let mut all: Vec<_> = begins.chain(closes).chain(ticks.iter().map(|tick| (*tick, 2, 0))).collect();
            all.sort_unstable();
            for (milli, kind, span) in all {
                let nanos = START + milli * MILLI;
                let ext = PerfExt::of_span(span as u64 + 1, 1 + raw.get(span).map_or(0, |it| it.2 as u32));
                let mut see = noting(&mut set, &mut fired);
                match kind {
                    0 => stream.push(nanos, PerfEvent::SpanNew, ext, &[], &mut see),
                    1 => stream.push(nanos, PerfEvent::SpanClose, ext, &[], &mut see),
                    _ => stream.tick(nanos, &mut see),
                }
            }
            stream.end(&mut noting(&mut set, &mut fired));
            let mut expected = Fired::new();
            for (index, (_, ages, holds)) in CONDITIONS.iter().enumerate() {
                for (span, (begin, length, name)) in raw.iter().enumerate() {
                    let is_open_at = |tick: u64| length.is_none_or(|length| tick < begin + length);
                    for age in *ages {
                        let seen = ticks.iter().find(|tick| **tick >= begin + age && is_open_at(**tick));
                        let tested_at = seen.map(|tick| tick - begin).or(length.filter(|length| length >= age));
                        if tested_at.is_some() && holds(NAMES[*name], tested_at, None) {
                            expected.push((index, span as u64 + 1));
                        }
                    }
                    if length.is_some() && holds(NAMES[*name], None, *length) {
                        expected.push((index, span as u64 + 1));
                    }
                }
            }
            fired.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(fired, expected);
        }
    }
}
