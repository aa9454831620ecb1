//! The parts of an expression, and their test on a subject.

use super::subject::Subject;
use super::term::Term;
use super::truth::Truth;
use std::fmt;

/// Largest length of an expression, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 16 << 10;
/// Largest depth to which parentheses and `not` may nest.
pub(super) const DEPTH_MAX: usize = 64;

/// A part of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Term(Term),
}

impl Node {
    pub(super) fn truth(&self, subject: &dyn Subject) -> Truth {
        match self {
            Self::All(parts) => !any_of(parts, |part| !part.truth(subject)),
            Self::Any(parts) => any_of(parts, |part| part.truth(subject)),
            Self::Not(part) => !part.truth(subject),
            Self::Term(term) => term.truth(subject),
        }
    }

    pub(super) fn each_term(&self, take: &mut impl FnMut(&Term)) {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.each_term(take)),
            Self::Not(part) => part.each_term(take),
            Self::Term(term) => take(term),
        }
    }

    /// Returns true if the part can hold only when something happens, or a rate is reached. A part that only excludes,
    /// such as `not span=x`, holds nearly always. With `is_negated`, answers for the opposite of the part.
    pub(super) fn names_something(&self, is_negated: bool) -> bool {
        let names = |part: &Self| part.names_something(is_negated);
        match (self, is_negated) {
            (Self::All(parts), false) | (Self::Any(parts), true) => parts.iter().any(names),
            (Self::Any(parts), false) | (Self::All(parts), true) => parts.iter().all(names),
            (Self::Not(part), _) => part.names_something(!is_negated),
            (Self::Term(term), false) => term.names_something(),
            (Self::Term(_), true) => false,
        }
    }
}

/// Returns whether one of the parts is true. Asks no part after one that is.
fn any_of(parts: &[Node], truth: impl Fn(&Node) -> Truth) -> Truth {
    let mut any = Truth::No;
    for part in parts {
        any = any.max(truth(part));
        if any == Truth::Yes {
            break;
        }
    }
    any
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joined = |parts: &[Self], with: &str, needs_parentheses: fn(&Self) -> bool| {
            parts.iter().enumerate().try_for_each(|(index, part)| {
                f.write_str(if index == 0 { "" } else { with })?;
                if needs_parentheses(part) { write!(f, "({part})") } else { write!(f, "{part}") }
            })
        };
        match self {
            Self::All(parts) => joined(parts, " ", |part| matches!(part, Self::Any(_) | Self::All(_))),
            Self::Any(parts) => joined(parts, " or ", |part| matches!(part, Self::Any(_))),
            Self::Not(part) if matches!(**part, Self::All(_) | Self::Any(_)) => write!(f, "not ({part})"),
            Self::Not(part) => write!(f, "not {part}"),
            Self::Term(term) => term.fmt(f),
        }
    }
}
