//! Conditions: expressions that describe the spans, events and ends of programs that a user searches or waits for.
//!
//! ```text
//! expression = all { "or" all }
//! all        = unary { ["and"] unary }                  terms that stand side by side must all hold
//! unary      = "not" unary | "(" expression ")" | term
//! term       = ("span" | "event" | "target" | "thread" | "task") ("=" | "!=") pattern
//!            | ("dur" | "open") compare time            the time of a closed span; the age of an open one
//!            | ("poll" | "woken" | "idle") compare time  the time for which a task does this
//!            | "level" compare level                    of a log record; ERROR is the greatest
//!            | "field." path compare value            in a path, parts may be quoted: field."content-type"
//!            | "rate(" of ["," time] ")" compare number "/" ("s" | "m" | "h")
//!            | "p" number "(" of ["," time] ")" compare time
//!            | "death" | "signal"
//! of         = ("span" | "event") "=" pattern
//! compare    = "=" | "!=" | "<" | "<=" | ">" | ">="
//! pattern    = a word or a quoted text, in which * stands for any characters
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `pattern` | patterns of names |
//! | `subject` | the interface of the subjects: what a condition is tested on |
//! | `on_replay` | spans and events as subjects, with their replay |
//! | `number` | the comparison of numbers of all types |
//! | `term` | the terms, and how they are written |
//! | `truth` | the result of a test, which may depend on lost payloads |
//! | `tokens` | the words of an expression, and their positions in the line |
//! | `parse` | making an expression from its words |
//! | `possible` | the subjects that can fulfil a part of an expression |
//! | `blocks` | making a test of a block's values from an expression |
//! | `fault` | the error type |
//! | `fields` | the fields of a span or log record, by name |

mod blocks;
mod fault;
pub(crate) mod fields;
mod node;
mod number;
mod on_replay;
mod parse;
pub(crate) mod pattern;
mod possible;
mod subject;
mod term;
#[cfg(test)]
mod tests;
mod tokens;
mod truth;

pub use crate::format::values::integer::Integer;
pub use crate::format::values::key::NameKind;
pub use crate::format::values::operand::Operand;
pub use fault::ConditionError;
pub use fields::{LiveFields, has_typed_field, is_field_of, may_have_field, span_may_have_lost};
pub use on_replay::{EventSubject, SeenContent, SpanSubject, TypedContent};
pub use parse::time_nanos;
pub use pattern::NamePattern;
pub use subject::{RateOf, Subject};
pub use term::{Compare, TimesPart};
pub use tokens::{Tokens, write_path, write_word};
pub use truth::Truth;

use eventring::now::TaskPhase;
use eventring::schema::perf::CallSiteLevel;
use node::Node;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use term::{About, Term};

/// The least age of conditions that are about the present alone, in nanoseconds.
const PRESENT_NANOS: u64 = 500_000_000;
/// A condition, parsed from an expression such as `span=db.* dur>50ms`. `docs/CLI.md` describes the expressions.
///
/// ```
/// use eventring_capture::condition::Condition;
///
/// let condition: Condition = "span=db.* dur>50ms or level>=ERROR".parse()?;
/// assert_eq!(condition.to_string(), "span=db.* dur>50ms or level>=ERROR");
/// assert!("open>>2s".parse::<Condition>().unwrap_err().to_string().contains("column 6"));
/// # Ok::<(), eventring_capture::condition::ConditionError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    root: Node,
}

impl Condition {
    /// Returns true if the condition holds for `subject`. A term that says something about what the subject does not
    /// have, such as a level for a span, does not hold.
    #[must_use]
    pub fn holds(&self, subject: &dyn Subject) -> bool {
        self.truth(subject) == Truth::Yes
    }

    /// Returns whether the condition holds for `subject`: a field that was lost may have had any value. A name that is not
    /// known is no other name: a condition that asks for it does not hold.
    #[must_use]
    pub fn truth(&self, subject: &dyn Subject) -> Truth {
        if subject.is_unnamed() && self.asks_for_names(&[NameKind::Span, NameKind::Target]) {
            return Truth::No;
        }
        self.root.truth(subject)
    }

    /// Returns the ages that the condition names, in ascending order: an open span may fulfil it when it reaches one of
    /// them.
    #[must_use]
    pub fn open_ages(&self) -> Vec<Duration> {
        let mut ages = Vec::new();
        self.root.each_term(&mut |term| ages.extend(term.open_age()));
        ages.sort_unstable();
        ages.dedup();
        ages
    }

    /// Returns what tasks must do, and for how many nanoseconds at least, to fulfil the condition, each once.
    #[doc(hidden)]
    #[must_use]
    pub fn phase_ages(&self) -> Vec<(TaskPhase, u64)> {
        let mut ages = Vec::new();
        self.root.each_term(&mut |term| ages.extend(term.phase_age().filter(|age| !ages.contains(age))));
        ages
    }

    /// Returns true if the condition holds only for what is, and can be tested on tables of the present: for spans that
    /// are open and for what tasks do, in both cases for half a second at least. (What lasts less may end before a look.)
    /// Tables have no fields that were recorded later.
    #[must_use]
    pub fn is_about_present(&self) -> bool {
        self.root.holds_only_for_present(PRESENT_NANOS) && self.field_paths().is_empty() && self.rates().is_empty()
    }

    /// Returns true if all terms are rates and percentiles. Such a condition says nothing of what happens.
    #[doc(hidden)]
    #[must_use]
    pub fn has_only_rates(&self) -> bool {
        let mut has_others = false;
        self.root.each_term(&mut |term| has_others |= !matches!(term, Term::Rate { .. } | Term::Percentile { .. }));
        !has_others
    }

    /// Makes the condition that one of these names fits.
    #[must_use]
    pub fn any_name(kind: NameKind, names: &[String]) -> Self {
        let term = |name: &String| Node::Term(Term::Name { kind, is: true, pattern: NamePattern::new(name) });
        Self { root: Node::Any(names.iter().map(term).collect()) }
    }

    /// Makes the condition that the level is at most as verbose as this one.
    #[must_use]
    pub fn at_most(level: CallSiteLevel) -> Self {
        Self { root: Node::Term(Term::Level { compare: Compare::GreaterOrEqual, level }) }
    }

    /// Makes the condition that a span was closed after this time or later, or is open for so long.
    #[must_use]
    pub fn lasting(nanos: u64) -> Self {
        let compare = Compare::GreaterOrEqual;
        let ways = [Term::Duration { compare, nanos }, Term::OpenAge { compare, nanos }];
        Self { root: Node::Any(ways.map(Node::Term).into()) }
    }

    /// Makes the condition that all of these hold.
    #[must_use]
    pub fn all(conditions: Vec<Self>) -> Self {
        Self { root: Node::All(conditions.into_iter().map(|condition| condition.root).collect()) }
    }

    /// Returns false if no span with this target and name fulfils the condition.
    pub(crate) fn may_hold_for_span(&self, target: &str, name: &str) -> bool {
        fn may(node: &Node, target: &str, name: &str) -> bool {
            match node {
                Node::All(parts) => parts.iter().all(|part| may(part, target, name)),
                Node::Any(parts) => parts.iter().any(|part| may(part, target, name)),
                Node::Term(Term::Name { kind: NameKind::Span, is: true, pattern }) => pattern.fits_span(target, name),
                Node::Not(_) | Node::Term(_) => true,
            }
        }
        may(&self.root, target, name)
    }

    /// Returns true if the condition asks for names and times of spans alone, and each event that fulfils it lies in a
    /// span that fulfils it, too.
    pub(crate) fn is_about_spans_alone(&self) -> bool {
        fn is_of_span(node: &Node) -> bool {
            match node {
                Node::All(parts) => parts.iter().any(is_of_span),
                Node::Any(parts) => parts.iter().all(is_of_span),
                Node::Not(_) => false,
                Node::Term(term) => matches!(term, Term::Duration { .. } | Term::Times { .. } | Term::OpenAge { .. }),
            }
        }
        fn is(node: &Node) -> bool {
            match node {
                // An event in spans of two names fulfils what asks for both, and neither span does. Only a span has a
                // time.
                Node::All(parts) => parts.iter().all(is) && (parts.len() == 1 || parts.iter().any(is_of_span)),
                Node::Any(parts) => parts.iter().all(is),
                Node::Not(_) => false,
                Node::Term(term) => matches!(
                    term,
                    Term::Name { kind: NameKind::Span, is: true, .. }
                        | Term::Duration { .. }
                        | Term::Times { .. }
                        | Term::OpenAge { .. }
                ),
            }
        }
        is(&self.root)
    }

    /// Parses a condition that selects single events. It may also say only what shall not be (`not event=PING`), and it
    /// has no terms about more than a single event: ages, tasks, rates, percentiles, deaths and signals.
    ///
    /// # Errors
    /// The text is no expression, or has such a term.
    pub fn for_events(text: &str) -> Result<Self, ConditionError> {
        let condition = Self { root: parse::parse(text, false, false)? };
        match condition.term_about_more() {
            None => Ok(condition),
            Some(term) => {
                let why = format!("`{term}` is not about a single event; `capture --on` knows such terms");
                Err(ConditionError::new(text, 0, why))
            }
        }
    }

    /// Parses a condition that events fulfil by what they say themselves. Like [`Self::for_events`], and without the
    /// times of spans, which a single event does not know. A name that is no word of the language, and one with a part
    /// in quotation marks, is that of a field: `request_id=7`.
    ///
    /// # Errors
    /// The text is no expression, or has a term about more than an event says.
    pub fn for_search(text: &str) -> Result<Self, ConditionError> {
        let condition = Self { root: parse::parse(text, false, true)? };
        let term = if condition.asks_for_durations() { Some("dur".to_owned()) } else { condition.term_about_more() };
        match term {
            None => Ok(condition),
            Some(term) => {
                let why =
                    format!("no event says `{term}` by itself; `export --where` and `watch --where` read whole spans");
                Err(ConditionError::new(text, 0, why))
            }
        }
    }

    /// Returns true if the condition says something of the time of closed spans.
    #[must_use]
    pub fn asks_for_durations(&self) -> bool {
        let mut asks = false;
        self.root.each_term(&mut |term| asks |= term.about() == About::ClosedSpan);
        asks
    }

    /// Returns the paths of the fields that the condition names, each once.
    #[must_use]
    pub fn field_paths(&self) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        self.root.each_term(&mut |term| {
            if let Term::Field { path, .. } = term {
                paths.insert(path.clone());
            }
        });
        paths
    }

    /// Returns the patterns of names that the condition has, and what is so named.
    #[must_use]
    pub fn names(&self) -> Vec<(NameKind, NamePattern)> {
        let mut names = Vec::new();
        self.root.each_term(&mut |term| names.extend(term.name().map(|(kind, pattern)| (kind, pattern.clone()))));
        names
    }

    /// Returns true if the condition asks for names of these kinds.
    pub(crate) fn asks_for_names(&self, kinds: &[NameKind]) -> bool {
        let mut asks = false;
        self.root.each_term(&mut |term| asks |= term.name().is_some_and(|(kind, _)| kinds.contains(&kind)));
        asks
    }

    /// Returns the first term that says something of more than a single event.
    fn term_about_more(&self) -> Option<String> {
        let mut found = None;
        self.root.each_term(&mut |term| {
            if term.about() == About::More && found.is_none() {
                found = Some(term.to_string());
            }
        });
        found
    }

    /// Returns the rates and percentiles that the condition needs, with their windows.
    #[must_use]
    pub fn rates(&self) -> Vec<(RateOf, Duration)> {
        let mut rates = Vec::new();
        self.root.each_term(&mut |term| {
            if let Term::Rate { of, window, .. } | Term::Percentile { of, window, .. } = term {
                rates.push((of.clone(), *window));
            }
        });
        rates
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        parse::parse(text, true, false).map(|root| Self { root })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}
