//! The terms of conditions.

use super::number::Number;
use super::tokens::write_path;
use super::{NameKind, NamePattern, Operand, RateOf, Subject, Truth};
use eventring::internal::quoted::write_quoted;
use eventring::now::TaskPhase;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::TimeSpent;
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

/// The window of rates and percentiles that name none.
pub(super) const WINDOW: Duration = Duration::from_secs(10);

/// A term of a condition.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Term {
    Name {
        kind: NameKind,
        is: bool,
        pattern: NamePattern,
    },
    Task {
        is: bool,
        pattern: NamePattern,
    },
    /// The time for which a task does something. Its `compare` is `>` or `>=`.
    Phase {
        state: TaskPhase,
        compare: Compare,
        nanos: u64,
    },
    /// The time of a closed span.
    Duration {
        compare: Compare,
        nanos: u64,
    },
    /// A part of the time of a closed span.
    Times {
        part: TimesPart,
        compare: Compare,
        nanos: u64,
    },
    /// The age of an open span. Its `compare` is `>` or `>=`.
    OpenAge {
        compare: Compare,
        nanos: u64,
    },
    Level {
        compare: Compare,
        level: CallSiteLevel,
    },
    Field {
        path: String,
        compare: Compare,
        value: FieldLimit,
    },
    Rate {
        of: RateOf,
        window: Duration,
        compare: Compare,
        count: f64,
        unit: RateUnit,
    },
    /// `percent` of the spans of a window were closed after at most this time.
    Percentile {
        percent: f64,
        of: RateOf,
        window: Duration,
        compare: Compare,
        nanos: u64,
    },
    Death,
    Signal,
}

/// The knowledge by which a term is decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum About {
    /// An event, which says it by itself.
    Event,
    /// A span that was closed.
    ClosedSpan,
    /// More than a single event.
    More,
}

/// The levels that conditions name.
pub(super) const LEVELS: [CallSiteLevel; 5] =
    [CallSiteLevel::Error, CallSiteLevel::Warn, CallSiteLevel::Info, CallSiteLevel::Debug, CallSiteLevel::Trace];

/// The words for what has a name.
pub(super) const NAMES: [(&str, NameKind); 4] =
    [("span", NameKind::Span), ("event", NameKind::Event), ("target", NameKind::Target), ("thread", NameKind::Thread)];

/// The words for what tasks do.
pub(super) const PHASES: [(&str, TaskPhase); 3] =
    [("poll", TaskPhase::Running), ("woken", TaskPhase::Woken), ("idle", TaskPhase::Idle)];

/// A part of the time that threads spent in a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimesPart {
    /// They ran.
    Cpu,
    /// They could have run, but had no processor.
    Queue,
    /// They waited for something.
    Sleep,
}

/// The words for what threads did.
pub(super) const TIMES_PARTS: [(&str, TimesPart); 3] =
    [("cpu", TimesPart::Cpu), ("queue", TimesPart::Queue), ("sleep", TimesPart::Sleep)];

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compare {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The value with which a field is compared.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum FieldLimit {
    Number(Number),
    Bool(bool),
    /// A pattern of texts.
    Pattern(NamePattern),
    /// A name of a float that is no number to compare with: `inf`, `-inf` or `NaN`. It is also the text.
    NotFinite(NamePattern),
    /// A text that is less or greater than others. It is always written in quotation marks.
    Text(String),
}

/// The time to which a rate refers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RateUnit {
    Second,
    Minute,
    Hour,
}

impl Term {
    pub(super) fn truth(&self, subject: &dyn Subject) -> Truth {
        let holds = match self {
            Self::Name { kind: NameKind::Span, is: true, pattern } => {
                subject.any_span_name(&mut |target, name| pattern.fits_span(target, name))
            }
            Self::Name { kind: NameKind::Span, is: false, pattern } => {
                let (mut has_span, mut fits) = (false, false);
                subject.any_span_name(&mut |target, name| {
                    has_span = true;
                    fits |= pattern.fits_span(target, name);
                    fits
                });
                has_span && !fits
            }
            Self::Name { kind: NameKind::Event, is, pattern } => {
                let mut holds = false;
                let code = subject.event_code();
                subject.event_name(&mut |name| {
                    let fits = if code.is_some() { pattern.fits_typed(name, code) } else { pattern.fits(name) };
                    holds = fits == *is;
                });
                holds
            }
            // A record of the `log` crate has its target in its payload.
            Self::Name { kind: NameKind::Target, .. } if subject.may_have_lost("log.target") => {
                return Truth::Indeterminate;
            }
            Self::Name { kind: NameKind::Target, is, pattern } => {
                subject.target().is_some_and(|target| pattern.fits(target) == *is)
            }
            Self::Name { kind: NameKind::Thread, is, pattern } => {
                let (mut has_thread, mut fits) = (false, false);
                subject.each_thread_name(&mut |name| {
                    has_thread = true;
                    fits |= pattern.fits(name);
                });
                has_thread && fits == *is
            }
            Self::Task { is, pattern } => {
                let mut holds = false;
                subject.task_name(&mut |name| holds = pattern.fits(name) == *is);
                holds
            }
            Self::Phase { state, compare, nanos } => {
                subject.task_phase_nanos().is_some_and(|(of, found)| of == *state && compare.holds(found.cmp(nanos)))
            }
            Self::Duration { compare, nanos } => {
                subject.closed_after_nanos().is_some_and(|found| compare.holds(found.cmp(nanos)))
            }
            Self::Times { part, compare, nanos } => {
                subject.times_nanos(*part).is_some_and(|found| compare.holds(found.cmp(nanos)))
            }
            Self::OpenAge { compare, nanos } => {
                subject.open_nanos().is_some_and(|found| compare.holds(found.cmp(nanos)))
            }
            Self::Level { compare, level } => {
                // The most severe level has the smallest number.
                let order = |found: CallSiteLevel| (*level as u8).cmp(&(found as u8));
                subject.level().is_some_and(|found| found != CallSiteLevel::None && compare.holds(order(found)))
            }
            Self::Field { path, compare, value } => {
                // `!=` is the opposite of `=` for what has the field.
                let (compare, is) = match compare {
                    Compare::NotEqual => (Compare::Equal, false),
                    compare => (*compare, true),
                };
                let (mut has_field, mut fits) = (false, false);
                subject.field(path, &mut |found| {
                    has_field = true;
                    fits |= value.order_of(found).is_some_and(|order| compare.holds(order));
                });
                if !has_field && subject.may_have_lost(path) {
                    return Truth::Indeterminate;
                }
                has_field && fits == is
            }
            Self::Rate { of, window, compare, count, unit } => {
                let limit = count / unit.seconds();
                let order = |found: f64| found.partial_cmp(&limit);
                subject.per_second(of, *window).and_then(order).is_some_and(|order| compare.holds(order))
            }
            Self::Percentile { percent, of, window, compare, nanos } => subject
                .quantile_nanos(of, *window, percent / 100.0)
                .is_some_and(|found| compare.holds(found.cmp(nanos))),
            Self::Death => subject.is_death(),
            Self::Signal => subject.is_signal(),
        };
        holds.into()
    }

    /// Returns the smallest age of an open span for which the term holds.
    pub(super) fn open_age(&self) -> Option<Duration> {
        match self {
            Self::OpenAge { compare: Compare::Greater, nanos } => Some(Duration::from_nanos(nanos.saturating_add(1))),
            Self::OpenAge { nanos, .. } => Some(Duration::from_nanos(*nanos)),
            _ => None,
        }
    }

    /// Returns the name that the term is about.
    pub(super) fn name(&self) -> Option<(NameKind, &NamePattern)> {
        match self {
            Self::Name { kind, pattern, .. } => Some((*kind, pattern)),
            Self::Rate { of, .. } | Self::Percentile { of, .. } => match of {
                RateOf::Spans(pattern) => Some((NameKind::Span, pattern)),
                RateOf::Events(pattern) => Some((NameKind::Event, pattern)),
            },
            _ => None,
        }
    }

    /// Returns what a task must do for the term to hold, and the shortest time in nanoseconds.
    pub(super) fn phase_age(&self) -> Option<(TaskPhase, u64)> {
        match self {
            Self::Phase { state, compare, nanos } => {
                Some((*state, nanos.saturating_add(u64::from(*compare == Compare::Greater))))
            }
            _ => None,
        }
    }

    /// Returns what must be known for the term to be decided. Searches and filters refuse terms by this, so there is no
    /// `_` here.
    pub(super) fn about(&self) -> About {
        match self {
            Self::Name { .. } | Self::Level { .. } | Self::Field { .. } => About::Event,
            Self::Duration { .. } | Self::Times { .. } => About::ClosedSpan,
            Self::OpenAge { .. }
            | Self::Task { .. }
            | Self::Phase { .. }
            | Self::Rate { .. }
            | Self::Percentile { .. }
            | Self::Death
            | Self::Signal => About::More,
        }
    }

    /// Returns true if the term holds only for some of what happens.
    pub(super) fn names_something(&self) -> bool {
        match self {
            Self::Name { is, .. } | Self::Task { is, .. } => *is,
            Self::Phase { .. }
            | Self::Duration { .. }
            | Self::Times { .. }
            | Self::OpenAge { .. }
            | Self::Level { .. }
            | Self::Field { .. }
            | Self::Rate { .. }
            | Self::Percentile { .. }
            | Self::Death
            | Self::Signal => true,
        }
    }
}

impl TimesPart {
    pub(super) fn name(self) -> &'static str {
        TIMES_PARTS.iter().find(|(_, part)| *part == self).map_or("", |(name, _)| name)
    }

    /// Returns this part of the times of a span, in nanoseconds.
    pub(super) fn nanos(self, times: &TimeSpent) -> u64 {
        match self {
            Self::Cpu => times.cpu_nanos,
            Self::Queue => times.queue_nanos,
            Self::Sleep => times.sleep_nanos,
        }
    }
}

impl Compare {
    /// The signs of the comparisons. A sign comes before the signs with which it begins.
    pub const SIGNS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

    /// Returns the comparison with this index in [`Self::SIGNS`].
    pub fn of_index(index: usize) -> Self {
        [Self::NotEqual, Self::LessOrEqual, Self::GreaterOrEqual, Self::Equal, Self::Less, Self::Greater][index]
    }

    /// Returns true if two values in this order compare so.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }

    /// Returns true if the comparison only asks whether two values are equal.
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }
}

impl FieldLimit {
    /// Returns the value that a word without quotation marks means.
    pub(super) fn unquoted(word: &str) -> Self {
        let boolean = || word.parse().ok().map(Self::Bool);
        let number = Number::new(word).map(Self::Number);
        number.or_else(boolean).unwrap_or_else(|| match word {
            "inf" | "-inf" | "NaN" => Self::NotFinite(NamePattern::new(word)),
            _ => Self::Pattern(NamePattern::new(word)),
        })
    }

    /// Returns the order of a value and this one. Values of different kinds have none.
    fn order_of(&self, found: Operand<'_>) -> Option<Ordering> {
        match (self, found) {
            (Self::Number(wanted), found) => wanted.order_of(found),
            (Self::NotFinite(_), Operand::Float32(found)) => self.order_of(Operand::Float(found.into())),
            (Self::NotFinite(name), Operand::Float(found)) => {
                Some(if name.fits(&found.to_string()) { Ordering::Equal } else { Ordering::Less })
            }
            (Self::Bool(wanted), Operand::Bool(found)) => Some(found.cmp(wanted)),
            // Programs record truth values as text, too.
            (Self::Bool(wanted), Operand::Text(text)) => text.parse().ok().map(|found: bool| found.cmp(wanted)),
            (Self::Text(wanted), Operand::Text(text)) => Some(text.cmp(wanted)),
            (Self::Pattern(pattern) | Self::NotFinite(pattern), Operand::Text(text)) => {
                Some(if pattern.fits(text) { Ordering::Equal } else { Ordering::Less })
            }
            _ => None,
        }
    }
}

impl RateUnit {
    pub(super) const NAMES: [(&str, Self); 3] = [("s", Self::Second), ("m", Self::Minute), ("h", Self::Hour)];

    fn seconds(self) -> f64 {
        match self {
            Self::Second => 1.0,
            Self::Minute => 60.0,
            Self::Hour => 3600.0,
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |is: bool| if is { "=" } else { "!=" };
        let of_window = |of: &RateOf, window: Duration| match window == WINDOW {
            true => of.to_string(),
            false => format!("{of},{}", time(window)),
        };
        match self {
            Self::Name { kind, is, pattern } => {
                let name = NAMES.iter().find(|(_, of)| of == kind).map_or("", |(name, _)| name);
                write!(f, "{name}{}{pattern}", sign(*is))
            }
            Self::Task { is, pattern } => write!(f, "task{}{pattern}", sign(*is)),
            Self::Phase { state, compare, nanos } => {
                let name = PHASES.iter().find(|(_, of)| of == state).map_or("", |(name, _)| name);
                write!(f, "{name}{compare}{}", time(Duration::from_nanos(*nanos)))
            }
            Self::Duration { compare, nanos } => write!(f, "dur{compare}{}", time(Duration::from_nanos(*nanos))),
            Self::Times { part, compare, nanos } => {
                write!(f, "{}{compare}{}", part.name(), time(Duration::from_nanos(*nanos)))
            }
            Self::OpenAge { compare, nanos } => write!(f, "open{compare}{}", time(Duration::from_nanos(*nanos))),
            Self::Level { compare, level } => write!(f, "level{compare}{}", level.name().unwrap_or("none")),
            Self::Field { path, compare, value } => {
                f.write_str("field.")?;
                write_path(f, path)?;
                write!(f, "{compare}{value}")
            }
            Self::Rate { of, window, compare, count, unit } => {
                let unit = Self::unit_name(*unit);
                write!(f, "rate({}){compare}{count}/{unit}", of_window(of, *window))
            }
            Self::Percentile { percent, of, window, compare, nanos } => {
                let limit = time(Duration::from_nanos(*nanos));
                write!(f, "p{percent}({}){compare}{limit}", of_window(of, *window))
            }
            Self::Death => f.write_str("death"),
            Self::Signal => f.write_str("signal"),
        }
    }
}

impl Term {
    fn unit_name(unit: RateUnit) -> &'static str {
        RateUnit::NAMES.iter().find(|(_, known)| *known == unit).map_or("s", |(name, _)| name)
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = (0..Self::SIGNS.len()).find(|index| Self::of_index(*index) == *self);
        f.write_str(Self::SIGNS[index.unwrap_or(0)])
    }
}

impl fmt::Display for FieldLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(value) => write!(f, "{value}"),
            // Without quotation marks, it would be another kind of value.
            Self::Pattern(pattern) if !matches!(Self::unquoted(pattern.as_str()), Self::Pattern(_)) => {
                write_quoted(f, pattern.as_str())
            }
            Self::Pattern(pattern) | Self::NotFinite(pattern) => write!(f, "{pattern}"),
            Self::Text(text) => write_quoted(f, text),
        }
    }
}

/// Returns a time as expressions write it.
fn time(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units =
        [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    let unit = units.into_iter().find(|(_, unit)| nanos >= *unit && nanos.is_multiple_of(*unit));
    let (name, unit) = unit.unwrap_or(("ns", 1));
    format!("{}{name}", nanos / unit)
}
