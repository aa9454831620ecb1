//! The faults of filter directives, for example a mistyped level, which would otherwise count as a target that matches
//! nothing.

use super::limits::{CONDITIONS_MAX, DIRECTIVES_MAX, LEVELS, TEXT_BYTES_MAX};
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
const NOT_IN_TARGETS: [char; 11] = [';', '|', '*', '?', '"', '\'', '`', ']', '{', '}', char::REPLACEMENT_CHARACTER];
/// Length to which the text that was found is cut in an error, in bytes.
const FOUND_BYTES_MAX: usize = 40;

/// The fault of a directive.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::tracing) enum Problem {
    NoTarget,
    Level(String),
    /// A single word that is not a level, but probably means this level: a mistyped name, or a name from another
    /// program.
    LooksLike(LevelFilter),
    Character(char),
    /// A text in brackets that is not as it must be: the text that was found, and the expected one.
    Brackets {
        expected: &'static str,
        found: String,
    },
    /// A filter without any directive.
    Empty,
    /// A list of directives that has so many bytes.
    TooLong(usize),
    TooManyDirectives,
    TooManyFields,
}

impl Problem {
    pub(super) fn expected(expected: &'static str, found: &str) -> Self {
        Self::Brackets { expected, found: shortened(found) }
    }

    pub(super) fn level(level: &str) -> Self {
        Self::Level(shortened(level))
    }
}

fn shortened(found: &str) -> String {
    found[..found.floor_char_boundary(FOUND_BYTES_MAX)].to_owned()
}

/// Checks the characters of a target.
pub(super) fn check_target(target: &str) -> Result<(), Problem> {
    let is_wrong = |c: &char| NOT_IN_TARGETS.contains(c) || c.is_whitespace() || c.is_control();
    target.chars().find(is_wrong).map_or(Ok(()), |found| Err(Problem::Character(found)))
}

/// Checks a directive without `=`: a level, or a target.
pub(super) fn check_single_word(word: &str) -> Result<(), Problem> {
    if word.is_empty() || word.parse::<LevelFilter>().is_ok() {
        return Ok(());
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::level(word));
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
            Self::NoTarget => f.write_str("has no target before `=`; write directives such as `info,my_crate=debug`"),
            Self::Level(level) => write!(
                f,
                "has the level `{level}`, expected off, error, warn, info, debug or trace, or a number from 0 (off) to 5 (trace); write directives such as \
                 `info,my_crate=debug`"
            ),
            Self::LooksLike(level) => {
                write!(
                    f,
                    "is neither a level nor a likely target; write the level `{level}`, or the target with a level"
                )
            }
            Self::Character(c) => write!(
                f,
                "has the character `{c}` in its target, expected a path such as `my_crate::module`; separate directives by commas, \
                 such as `info,my_crate=debug`"
            ),
            Self::Empty => {
                f.write_str("is empty, expected a level or a target; write directives such as `info,my_crate=debug`")
            }
            Self::Brackets { expected, found } => {
                match found.is_empty() {
                    true => f.write_str("has nothing")?,
                    false => write!(f, "has `{found}`")?,
                }
                write!(f, ", expected {expected}; write directives such as `my_crate[query{{user=7}}]=debug`")
            }
            Self::TooLong(bytes) => {
                write!(f, "begins a list of {bytes} bytes, expected at most {TEXT_BYTES_MAX}; write fewer directives")
            }
            Self::TooManyDirectives => {
                write!(f, "is one too many, expected at most {DIRECTIVES_MAX} directives; write fewer directives")
            }
            Self::TooManyFields => {
                write!(f, "has too many fields, expected at most {CONDITIONS_MAX}; write fewer fields")
            }
        }
    }
}
