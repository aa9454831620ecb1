//! Possibilities: what the parts of an expression can hold for. A part that can hold for nothing is a mistake of the
//! user.

use super::Node;
use super::term::{Compare, LEVELS, PHASES, Term};
use eventring::schema::perf::CallSiteLevel;
use eventring_tasks::TaskState;

/// A range of times in nanoseconds, with both ends.
type Times = (u64, u64);

const ALL_TIMES: Option<Times> = Some((0, u64::MAX));

/// The things for which a part of an expression may hold. There may be too many, and never too few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Possible {
    /// Closed spans that have lasted for such a time.
    closed: Option<Times>,
    /// Open spans of such an age.
    open: Option<Times>,
    /// Tasks that are polled, wait for a worker, or are idle, for such a time.
    phases: [Option<Times>; 3],
    /// Log records: a bit for each level.
    levels: u8,
    is_typed_event: bool,
    is_mark: bool,
    is_death: bool,
    is_signal: bool,
    /// True if the part may hold at a tick, when only rates and percentiles do.
    is_tick: bool,
}

impl Possible {
    pub(super) const NOTHING: Self = Self {
        closed: None,
        open: None,
        phases: [None; 3],
        levels: 0,
        is_typed_event: false,
        is_mark: false,
        is_death: false,
        is_signal: false,
        is_tick: false,
    };
    pub(super) const ANYTHING: Self = Self {
        closed: ALL_TIMES,
        open: ALL_TIMES,
        phases: [ALL_TIMES; 3],
        levels: u8::MAX,
        is_typed_event: true,
        is_mark: true,
        is_death: true,
        is_signal: true,
        is_tick: true,
    };
    const SPANS_AND_RECORDS: Self = Self { closed: ALL_TIMES, open: ALL_TIMES, levels: u8::MAX, ..Self::NOTHING };

    fn of_term(term: &Term) -> Self {
        match term {
            Term::Span { .. } => Self { is_typed_event: true, is_mark: true, ..Self::SPANS_AND_RECORDS },
            Term::Event { .. } => Self { levels: u8::MAX, is_typed_event: true, is_mark: true, ..Self::NOTHING },
            Term::Target { .. } | Term::Thread { .. } => Self::SPANS_AND_RECORDS,
            Term::Task { .. } => {
                Self { is_typed_event: true, is_mark: true, phases: [ALL_TIMES; 3], ..Self::SPANS_AND_RECORDS }
            }
            Term::Phase { state, compare, nanos } => {
                let of = |(_, of): (&str, TaskState)| times(*compare, *nanos).filter(|_| of == *state);
                Self { phases: PHASES.map(of), ..Self::NOTHING }
            }
            Term::Duration { compare, nanos } => Self { closed: times(*compare, *nanos), ..Self::NOTHING },
            Term::OpenAge { compare, nanos } => Self { open: times(*compare, *nanos), ..Self::NOTHING },
            Term::Level { compare, level } => {
                let holds = |found: &CallSiteLevel| compare.holds((*level as u8).cmp(&(*found as u8)));
                let levels = LEVELS.into_iter().filter(holds).map(|found| 1 << found as u8);
                Self { levels: levels.fold(0, |all, level: u8| all | level), ..Self::NOTHING }
            }
            Term::Field { .. } => Self { is_typed_event: true, phases: [ALL_TIMES; 3], ..Self::SPANS_AND_RECORDS },
            Term::Rate { .. } | Term::Percentile { .. } => Self::ANYTHING,
            Term::Death => Self { is_death: true, ..Self::NOTHING },
            Term::Signal => Self { is_signal: true, ..Self::NOTHING },
        }
    }

    /// Returns what is possible for both.
    pub(super) fn and(self, other: Self) -> Self {
        let both = |one: Option<Times>, other: Option<Times>| {
            let (one, other) = (one?, other?);
            Some((one.0.max(other.0), one.1.min(other.1))).filter(|(from, to)| from <= to)
        };
        Self {
            closed: both(self.closed, other.closed),
            open: both(self.open, other.open),
            phases: [0, 1, 2].map(|at| both(self.phases[at], other.phases[at])),
            levels: self.levels & other.levels,
            is_typed_event: self.is_typed_event && other.is_typed_event,
            is_mark: self.is_mark && other.is_mark,
            is_death: self.is_death && other.is_death,
            is_signal: self.is_signal && other.is_signal,
            is_tick: self.is_tick && other.is_tick,
        }
    }

    /// Returns what is possible for one of both.
    fn or(self, other: Self) -> Self {
        let hull = |one: Option<Times>, other: Option<Times>| match (one, other) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        Self {
            closed: hull(self.closed, other.closed),
            open: hull(self.open, other.open),
            phases: [0, 1, 2].map(|at| hull(self.phases[at], other.phases[at])),
            levels: self.levels | other.levels,
            is_typed_event: self.is_typed_event || other.is_typed_event,
            is_mark: self.is_mark || other.is_mark,
            is_death: self.is_death || other.is_death,
            is_signal: self.is_signal || other.is_signal,
            is_tick: self.is_tick || other.is_tick,
        }
    }

    /// Returns the same kinds of things, with any times and levels.
    fn kinds(self) -> Self {
        let levels = if self.levels == 0 { 0 } else { u8::MAX };
        let phases = self.phases.map(|times| times.and(ALL_TIMES));
        Self { closed: self.closed.and(ALL_TIMES), open: self.open.and(ALL_TIMES), phases, levels, ..self }
    }

    fn in_words(self) -> String {
        let kinds = [
            (self.closed.is_some(), "spans that are closed"),
            (self.open.is_some(), "spans that are open"),
            (self.phases[0].is_some(), "polls of tasks"),
            (self.phases[1].is_some(), "tasks that were woken"),
            (self.phases[2].is_some(), "tasks that are idle"),
            (self.levels > 0, "log records"),
            (self.is_typed_event, "typed events"),
            (self.is_mark, "marks"),
            (self.is_death, "a death"),
            (self.is_signal, "a signal"),
        ];
        let kinds: Vec<&str> =
            kinds.into_iter().filter_map(|(is_possible, words)| is_possible.then_some(words)).collect();
        kinds.join(", ")
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
    fn possible(&self) -> Possible {
        match self {
            Self::All(parts) => parts.iter().map(Self::possible).fold(Possible::ANYTHING, Possible::and),
            Self::Any(parts) => parts.iter().map(Self::possible).fold(Possible::NOTHING, Possible::or),
            Self::Not(_) => Possible::ANYTHING,
            Self::Term(term) => Possible::of_term(term),
        }
    }
}

/// Returns the first of some parts that cannot hold together with those before it, and why.
pub(super) fn contradiction(parts: &[Node]) -> Option<(usize, String)> {
    let mut before = Possible::ANYTHING;
    for (index, part) in parts.iter().enumerate() {
        let possible = part.possible();
        if possible == Possible::NOTHING {
            return Some((index, format!("`{part}` never holds, because nothing has such a value")));
        }
        let both = before.and(possible);
        if both == Possible::NOTHING {
            let excludes = |other: &&Node| other.possible().and(possible) == Possible::NOTHING;
            let other = parts[..index].iter().find(excludes);
            let (earlier, found) = other
                .map_or(("what stands before it".to_owned(), before), |other| (format!("`{other}`"), other.possible()));
            let why = match found.kinds().and(possible.kinds()) {
                Possible::NOTHING => format!(
                    "`{part}` holds only for {}, and {earlier} only for {}, so both never hold together",
                    possible.in_words(),
                    found.in_words()
                ),
                _ => format!("`{part}` and {earlier} never hold together"),
            };
            return Some((index, format!("{why}; join them with `or`, or leave one out")));
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
