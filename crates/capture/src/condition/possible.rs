//! The subjects that can fulfil a part of an expression. A part that no subject can fulfil is a mistake of the user.

use super::NameKind;
use super::node::Node;
use super::term::{Compare, LEVELS, PHASES, Term};
use eventring::schema::perf::CallSiteLevel;

/// A range of times in nanoseconds, with both ends.
type Times = (u64, u64);

const ALL_TIMES: Option<Times> = Some((0, u64::MAX));

/// The words for what lasts. The index of a kind is its place in [`Possible::times`].
const LASTING: [&str; 5] =
    ["spans that are closed", "spans that are open", "polls of tasks", "tasks that were woken", "tasks that are idle"];
const CLOSED: usize = 0;
const OPEN: usize = 1;
/// The place of the first of [`PHASES`].
const FIRST_PHASE: usize = 2;

const TYPED_EVENT: u8 = 1;
const MARK: u8 = 1 << 1;
const DEATH: u8 = 1 << 2;
const SIGNAL: u8 = 1 << 3;
/// The words for what does not last. A tick has none: only rates and percentiles hold at one, and these hold for
/// anything.
const MOMENTS: [(u8, &str); 4] =
    [(TYPED_EVENT, "typed events"), (MARK, "marks"), (DEATH, "a death"), (SIGNAL, "a signal")];

/// The things for which a part of an expression may hold. There may be too many, and never too few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Possible {
    /// What lasts for such a time: closed spans, open spans, and tasks that are polled, wait for a worker, or are idle.
    times: [Option<Times>; LASTING.len()],
    /// Log records: a bit for each level.
    levels: u8,
    /// Other things: a bit for each kind.
    moments: u8,
}

impl Possible {
    pub(super) const NOTHING: Self = Self { times: [None; LASTING.len()], levels: 0, moments: 0 };
    pub(super) const ANYTHING: Self = Self { times: [ALL_TIMES; LASTING.len()], levels: u8::MAX, moments: u8::MAX };
    const SPANS_AND_RECORDS: Self =
        Self { times: [ALL_TIMES, ALL_TIMES, None, None, None], levels: u8::MAX, moments: 0 };

    /// Returns the things for which a term may hold. With `is_alone`, each event has only what it says itself, and a log
    /// record does not say the names of the spans around it.
    fn of_term(term: &Term, is_alone: bool) -> Self {
        match term {
            Term::Name { kind: NameKind::Span, .. } if is_alone => Self { levels: 0, ..Self::SPANS_AND_RECORDS },
            Term::Name { kind: NameKind::Span, .. } => Self { moments: TYPED_EVENT | MARK, ..Self::SPANS_AND_RECORDS },
            Term::Name { kind: NameKind::Event, .. } => {
                Self { levels: u8::MAX, moments: TYPED_EVENT | MARK, ..Self::NOTHING }
            }
            Term::Name { kind: NameKind::Target | NameKind::Thread, .. } => Self::SPANS_AND_RECORDS,
            Term::Task { .. } => Self { moments: TYPED_EVENT | MARK, ..Self::ANYTHING },
            Term::Phase { state, compare, nanos } => {
                let phase = PHASES.iter().position(|(_, of)| of == state);
                phase.map_or(Self::NOTHING, |phase| Self::lasting(FIRST_PHASE + phase, *compare, *nanos))
            }
            Term::Duration { compare, nanos } => Self::lasting(CLOSED, *compare, *nanos),
            // Several threads may be in a span at once, so this says nothing of its duration.
            Term::Times { compare, nanos, .. } => match times(*compare, *nanos) {
                Some(_) => Self::lasting(CLOSED, Compare::GreaterOrEqual, 0),
                None => Self::NOTHING,
            },
            Term::OpenAge { compare, nanos } => Self::lasting(OPEN, *compare, *nanos),
            Term::Level { compare, level } => {
                let holds = |found: &CallSiteLevel| compare.holds((*level as u8).cmp(&(*found as u8)));
                let levels = LEVELS.into_iter().filter(holds).map(|found| 1 << found as u8);
                Self { levels: levels.fold(0, |all, level: u8| all | level), ..Self::NOTHING }
            }
            Term::Field { .. } => Self { moments: TYPED_EVENT, ..Self::ANYTHING },
            Term::Rate { .. } | Term::Percentile { .. } => Self::ANYTHING,
            Term::Death => Self { moments: DEATH, ..Self::NOTHING },
            Term::Signal => Self { moments: SIGNAL, ..Self::NOTHING },
        }
    }

    /// Returns the things of one kind that have lasted so.
    fn lasting(kind: usize, compare: Compare, nanos: u64) -> Self {
        let mut possible = Self::NOTHING;
        possible.times[kind] = times(compare, nanos);
        possible
    }

    /// Returns what is possible for both.
    pub(super) fn and(self, other: Self) -> Self {
        let both = |at: usize| {
            let (one, other) = (self.times[at]?, other.times[at]?);
            Some((one.0.max(other.0), one.1.min(other.1))).filter(|(from, to)| from <= to)
        };
        let (levels, moments) = (self.levels & other.levels, self.moments & other.moments);
        Self { times: std::array::from_fn(both), levels, moments }
    }

    /// Returns what is possible for one of both.
    fn or(self, other: Self) -> Self {
        let hull = |at: usize| match (self.times[at], other.times[at]) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        let (levels, moments) = (self.levels | other.levels, self.moments | other.moments);
        Self { times: std::array::from_fn(hull), levels, moments }
    }

    /// Returns the same kinds of things, with any times and levels.
    fn kinds(self) -> Self {
        let levels = if self.levels == 0 { 0 } else { u8::MAX };
        Self { times: self.times.map(|times| times.and(ALL_TIMES)), levels, ..self }
    }

    fn in_words(self) -> String {
        let lasting = self.times.iter().zip(LASTING).filter_map(|(times, words)| times.and(Some(words)));
        let records = (self.levels > 0).then_some("log records");
        let moments = MOMENTS.iter().filter(|(bit, _)| self.moments & bit != 0).map(|(_, words)| *words);
        lasting.chain(records).chain(moments).collect::<Vec<&str>>().join(", ")
    }
}

/// Returns the times that compare so with a time.
fn times(compare: Compare, nanos: u64) -> Option<Times> {
    match compare {
        Compare::Equal => Some((nanos, nanos)),
        Compare::NotEqual => ALL_TIMES,
        Compare::Less => nanos.checked_sub(1).map(|most| (0, most)),
        Compare::LessOrEqual => Some((0, nanos)),
        Compare::Greater => nanos.checked_add(1).map(|least| (least, u64::MAX)),
        Compare::GreaterOrEqual => Some((nanos, u64::MAX)),
    }
}

impl Node {
    /// Returns true if this holds for nothing but spans that are open, and for what tasks do, for this long at least.
    pub(super) fn holds_only_for_present(&self, least_nanos: u64) -> bool {
        let possible = self.possible(false);
        let is_old = |times: &Option<Times>| times.is_none_or(|(from, _)| from >= least_nanos);
        possible.times[CLOSED].is_none()
            && possible.times[OPEN..].iter().all(is_old)
            && (possible.levels, possible.moments) == (0, 0)
    }

    fn possible(&self, is_alone: bool) -> Possible {
        let each = |part: &Self| part.possible(is_alone);
        match self {
            Self::All(parts) => parts.iter().map(each).fold(Possible::ANYTHING, Possible::and),
            Self::Any(parts) => parts.iter().map(each).fold(Possible::NOTHING, Possible::or),
            Self::Not(_) => Possible::ANYTHING,
            Self::Term(term) => Possible::of_term(term, is_alone),
        }
    }
}

/// Returns the first of some parts that cannot hold together with those before it, and why. With `is_alone`, each event
/// is tested by what it says itself.
pub(super) fn contradiction(parts: &[Node], is_alone: bool) -> Option<(usize, String)> {
    let mut before = Possible::ANYTHING;
    for (index, part) in parts.iter().enumerate() {
        let possible = part.possible(is_alone);
        if possible == Possible::NOTHING {
            return Some((index, format!("`{part}` never holds, because nothing has such a value")));
        }
        let both = before.and(possible);
        if both == Possible::NOTHING {
            let excludes = |(_, other): &(&Node, Possible)| other.and(possible) == Possible::NOTHING;
            let mut others = parts[..index].iter().map(|other| (other, other.possible(is_alone)));
            let (earlier, found) = others
                .find(excludes)
                .map_or(("what stands before it".to_owned(), before), |(other, of)| (format!("`{other}`"), of));
            let why = match found.kinds().and(possible.kinds()) {
                Possible::NOTHING => format!(
                    "`{part}` holds only for {}, and {earlier} only for {}, so both never hold together",
                    possible.in_words(),
                    found.in_words()
                ),
                _ => format!("`{part}` and {earlier} never hold together"),
            };
            let more =
                if is_alone { "; `watch --where` and `export --where` know the spans around an event" } else { "" };
            return Some((index, format!("{why}; join them with `or`, or leave one out{more}")));
        }
        before = both;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Condition;

    #[test]
    fn terms_that_never_hold_together_are_refused_at_the_second_one_and_the_words_say_why() {
        let refused = [
            ("level>=ERROR dur>5ms", 14),
            ("signal and death", 12),
            ("dur>1s open>2s", 8),
            ("span=a (level>=WARN or event=b) dur>1s", 33),
            ("dur>50ms dur<10ms", 10),
            ("level>=WARN level<INFO", 13),
            ("open>2s (death or signal)", 9),
            ("level>ERROR", 1),
            ("dur<0s or death", 1),
            ("(dur>1s or level>=WARN) (level=INFO or dur<1s)", 25),
            ("event=x target=y dur>1ms", 18),
            ("death span!=x", 7),
            ("poll>1ms woken>2ms", 10),
            ("idle>1s dur>1s", 9),
        ];
        let shown: Vec<String> = refused
            .iter()
            .map(|(text, column)| {
                let error = text.parse::<Condition>().expect_err(text);
                assert_eq!(error.column(), *column, "{error}");
                error.to_string()
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n\n"));
    }

    #[test]
    fn conditions_about_the_present_hold_for_nothing_that_is_over_or_recorded_later() {
        let is = |text: &&str| text.parse::<Condition>().unwrap().is_about_present();
        let present = [
            "open>2s",
            "span=a open>500ms not open>5s",
            "not span=a target=b thread=c open>=500ms",
            "idle>30s or woken>1s task=a or poll>1s (task=a or task=b)",
        ];
        assert_eq!(present.iter().filter(|text| !is(text)).count(), 0);
        let others = [
            "open>499ms",
            "idle>30s or woken>1ms",
            "open>2s or dur>2s",
            "span=a or open>2s",
            "open>2s or span=b not span=a",
            "open>2s field.x=1",
            "open>2s rate(span=a)>1/s",
            "open>2s or death",
            "open>2s or signal",
            "level>=ERROR or idle>2s",
            "task=a",
        ];
        assert_eq!(others.iter().filter(|text| is(text)).collect::<Vec<_>>(), [] as [&&str; 0]);
    }

    #[test]
    fn terms_that_may_hold_together_are_conditions() {
        for text in [
            "level>=ERROR or dur>5ms",
            "span=a span=b level>=WARN",
            "dur>10ms dur<50ms",
            "dur>10ms dur!=50ms",
            "open>1s not open>2s",
            "dur>50ms rate(span=a)>100/s",
            "death rate(span=a)<1/s",
            "event=x field.a=7 span=b",
            "(death or dur>1s) (signal or dur<2s)",
            "not level>=ERROR dur>5ms",
            "thread=a target=b level=ERROR field.x=1 event=*",
            "task=a woken>1ms not woken>5ms",
            "task=a level>=ERROR or task=a (poll>10ms or idle>30s)",
            "task!=a poll>10ms field.kind=hooked rate(span=a)>1/s",
        ] {
            assert!(text.parse::<Condition>().is_ok(), "{text}: {:?}", text.parse::<Condition>());
        }
    }
}
