//! Checks of filter directives. `Targets` of tracing-subscriber parses the directives, too, but it accepts some
//! mistakes: a filter with such a mistake matches nothing. The checks find these mistakes first.

use super::filter_handle::LEVELS;
use std::fmt;
use tracing_core::LevelFilter;

/// Names that other programs use for levels. Each has the level that a user who writes the name probably means.
const SYNONYMS: [(&str, LevelFilter); 8] = [
    ("all", LevelFilter::TRACE),
    ("critical", LevelFilter::ERROR),
    ("dbg", LevelFilter::DEBUG),
    ("err", LevelFilter::ERROR),
    ("fatal", LevelFilter::ERROR),
    ("none", LevelFilter::OFF),
    ("verbose", LevelFilter::TRACE),
    ("warning", LevelFilter::WARN),
];
/// Characters that no target has. In other filter languages they stand for lists, patterns and quotes. The last
/// character stands for bytes that were not UTF-8.
const NOT_IN_TARGETS: [char; 8] = [';', '|', '*', '?', '"', '\'', '`', char::REPLACEMENT_CHARACTER];

/// The fault of a directive.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// Syntax of `EnvFilter` for spans or fields.
    SpanOrField,
    NoTarget,
    Level(String),
    /// A single word that is not a level, but probably means this level: a mistyped name, or a name from another
    /// program.
    LooksLike(LevelFilter),
    Character(char),
    /// A filter without any directive.
    Empty,
    NotUnderstood(String),
}

/// Checks one directive. An empty directive is allowed.
pub(super) fn check(directive: &str) -> Result<(), Problem> {
    if directive.contains(['[', ']', '{', '}']) {
        return Err(Problem::SpanOrField);
    }
    let (target, level) = match directive.split_once('=') {
        Some((target, level)) => (target.trim(), Some(level.trim())),
        None => (directive, None),
    };
    if let Some(found) = target.chars().find(|c| NOT_IN_TARGETS.contains(c) || c.is_whitespace() || c.is_control()) {
        return Err(Problem::Character(found));
    }
    match level {
        None => check_single_word(directive),
        Some(_) if target.is_empty() => Err(Problem::NoTarget),
        // The empty word also parses as a level.
        Some(level) if level.is_empty() || level.parse::<LevelFilter>().is_err() => {
            Err(Problem::Level(level.to_owned()))
        }
        Some(_) => Ok(()),
    }
}

/// Checks a directive without `=`: a level, or a target.
fn check_single_word(word: &str) -> Result<(), Problem> {
    if word.is_empty() || word.parse::<LevelFilter>().is_ok() {
        return Ok(());
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::Level(word.to_owned()));
    }
    let lower_case = word.to_ascii_lowercase();
    let synonym = SYNONYMS.into_iter().find(|(synonym, _)| *synonym == lower_case).map(|(_, level)| level);
    let typo =
        || LEVELS.into_iter().find(|level| is_one_edit_apart(lower_case.as_bytes(), level.to_string().as_bytes()));
    synonym.or_else(typo).map_or(Ok(()), |level| Err(Problem::LooksLike(level)))
}

/// Returns true if exactly one edit turns `a` into `b`. An edit adds, removes or replaces one letter, or exchanges
/// two neighbouring letters.
fn is_one_edit_apart(a: &[u8], b: &[u8]) -> bool {
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[prefix..], &b[prefix..]);
    let suffix = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - suffix], &b[..b.len() - suffix]) {
        ([], [_]) | ([_], [] | [_]) => true,
        ([a0, a1], [b0, b1]) => a0 == b1 && a1 == b0,
        _ => false,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpanOrField => f.write_str(
                "filters by span or field, which needs tracing-subscriber's EnvFilter and a RecorderLayer; write directives such as \
                 `info,my_crate=debug`",
            ),
            Self::NoTarget => {
                f.write_str("has no target before `=`; write directives such as `info,my_crate=debug`")
            }
            Self::Level(level) => write!(
                f,
                "has the level `{level}`, expected off, error, warn, info, debug or trace, or a number from 0 (off) to 5 (trace); write directives such as \
                 `info,my_crate=debug`"
            ),
            Self::LooksLike(level) => {
                write!(f, "is neither a level nor a likely target; write the level `{level}`, or the target with a level")
            }
            Self::Character(c) => write!(
                f,
                "has the character `{c}` in its target, expected a path such as `my_crate::module`; separate directives by commas, \
                 such as `info,my_crate=debug`"
            ),
            Self::Empty => f.write_str("is empty, expected a level or a target; write directives such as `info,my_crate=debug`"),
            Self::NotUnderstood(error) => {
                write!(f, "is not understood: {error}; write directives such as `info,my_crate=debug`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_word_that_is_nearly_a_level_is_a_mistyped_level() {
        for (word, level) in
            [("inof", "info"), ("INFOO", "info"), ("debg", "debug"), ("trase", "trace"), ("Warning", "warn")]
        {
            let level = level.parse().unwrap();
            assert!(check(word) == Err(Problem::LooksLike(level)), "{word}");
        }
        for directive in ["", "info", "WARN", "3", "noisy", "hyper", "my_crate::db", "inof=trace", "hyper=2", "a-b.c/d"]
        {
            assert!(check(directive).is_ok(), "{directive}");
        }
        for directive in ["info;x=debug", "7", "setup=", "setup= ", "*=info", "a b", "a=b=info", "\u{fffd}=info"] {
            assert!(check(directive).is_err(), "{directive}");
        }
        for (number, level) in ["off", "error", "warn", "info", "debug", "trace"].into_iter().enumerate() {
            assert_eq!(number.to_string().parse::<LevelFilter>().unwrap(), level.parse::<LevelFilter>().unwrap());
        }
        assert!(Problem::Level("6".into()).to_string().contains("a number from 0 (off) to 5 (trace)"));
    }
}
