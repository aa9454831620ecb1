//! Expressions for the limits of changes: a change beyond a limit is too large.
//!
//! ```text
//! limit   = measure "(" pattern ")" compare change
//! measure = the name of a measure: instructions, busy, p99 …
//! pattern = the name of a span, also with its target; * stands for any characters
//! change  = ("+" | "-") (number "%" | time | number) | "0"
//! ```

use super::measure::Measure;
use eventring_live::{Compare, ConditionError, NamePattern, Tokens, time_nanos, write_word};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Largest length of an expression, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 10;
/// The number of parts of a percent that are counted.
const PARTS: i64 = 1_000_000;
/// The largest number of percent.
const PERCENT_MAX: u64 = 1_000_000_000;

/// A change that is too large: `instructions(request)>+0.5%`.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeLimit {
    pub(super) measure: Measure,
    pub(super) span: NamePattern,
    pub(super) compare: Compare,
    pub(super) amount: ChangeAmount,
}

/// An amount of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeAmount {
    /// Millionths of a percent of the value before the change.
    Relative(i64),
    /// Nanoseconds, for a measure that is a time.
    Nanos(i64),
    /// A number, for other measures.
    Number(i64),
}

impl ChangeLimit {
    /// Returns the measure that is limited.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Returns true if a change from one value to another is what the limit forbids.
    #[must_use]
    pub fn forbids(&self, from: u64, to: u64) -> bool {
        self.compare.holds(self.amount.order_of(from, to))
    }
}

impl ChangeAmount {
    /// Returns the order of the change from one value to another and this amount. All is counted in whole numbers. If
    /// the value before is 0, each growth is more than any relative amount.
    #[must_use]
    pub fn order_of(self, from: u64, to: u64) -> Ordering {
        let change = i128::from(to) - i128::from(from);
        match self {
            Self::Relative(parts) => (change * 100 * i128::from(PARTS)).cmp(&(i128::from(parts) * i128::from(from))),
            Self::Nanos(amount) | Self::Number(amount) => change.cmp(&i128::from(amount)),
        }
    }

    /// Parses an amount without a sign for a measure: `0.5%`, `2ms`, `100`.
    #[must_use]
    pub fn parse(text: &str, measure: Measure) -> Option<Self> {
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if let Some(percent) = text.strip_suffix('%') {
            return percent_parts(percent).map(Self::Relative);
        }
        let number = |text: &str| text.parse::<i64>().ok();
        match measure.is_time() {
            true if text == "0" => Some(Self::Nanos(0)),
            true => i64::try_from(time_nanos(text)?).ok().map(Self::Nanos),
            false => number(text).map(Self::Number),
        }
    }

    /// Returns the same amount with the other sign.
    #[must_use]
    pub fn negative(self) -> Self {
        match self {
            Self::Relative(parts) => Self::Relative(-parts),
            Self::Nanos(nanos) => Self::Nanos(-nanos),
            Self::Number(number) => Self::Number(-number),
        }
    }
}

/// Parses `0.5`. Returns it in parts of a percent.
fn percent_parts(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(decimals) || decimals.len() > 6 {
        return None;
    }
    let whole = whole.parse::<u64>().ok().filter(|whole| *whole <= PERCENT_MAX)?;
    let decimals: i64 = format!("{decimals:0<6}").parse().ok()?;
    Some(i64::try_from(whole).ok()? * PARTS + decimals)
}

impl FromStr for ChangeLimit {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        if text.len() > TEXT_BYTES_MAX {
            let message = format!("the expression has {} bytes, expected at most {TEXT_BYTES_MAX}", text.len());
            return Err(ConditionError::new(text, 0, message));
        }
        let mut tokens = Tokens::new(text);
        let name = tokens.name();
        let Some(measure) = Measure::of_name(name) else {
            let names = Measure::ALL.map(Measure::name).join(", ");
            return Err(tokens.expected(&format!("a measure: {names}")));
        };
        tokens.take_name(name);
        if !tokens.take("(") {
            return Err(tokens.expected("`(` and the name of a span"));
        }
        let span = tokens.word(&['(', ')'], "the name of a span, in which * stands for any characters")?;
        let span = NamePattern::new(span.text);
        if !tokens.take(")") {
            return Err(tokens.expected("`)`"));
        }
        let compare = tokens.take_one_of(&Compare::SIGNS).map(Compare::of_index);
        let compare = compare.ok_or_else(|| tokens.expected("one of = != < <= > >="))?;
        let expected = match measure.is_time() {
            true => "a change with its sign: +5%, +2ms, -1%, or 0",
            false => "a change with its sign: +0.5%, +100, -1%, or 0",
        };
        let word = tokens.word(&['(', ')'], expected)?;
        let amount = match word.text.split_at_checked(1) {
            _ if word.is_quoted => None,
            Some(("+", amount)) => ChangeAmount::parse(amount, measure),
            Some(("-", amount)) => ChangeAmount::parse(amount, measure).map(ChangeAmount::negative),
            _ if word.text == "0" => ChangeAmount::parse("0", measure),
            _ => None,
        };
        let amount = amount.ok_or_else(|| tokens.expected_at(word.place, expected))?;
        if !tokens.rest().is_empty() {
            return Err(tokens.expected("the end of the expression"));
        }
        Ok(Self { measure, span, compare, amount })
    }
}

impl fmt::Display for ChangeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.measure.name())?;
        write_word(f, self.span.as_str())?;
        write!(f, "){}{}", self.compare, self.amount)
    }
}

impl fmt::Display for ChangeAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative(parts) => {
                let (whole, decimals) = (parts.unsigned_abs() / PARTS as u64, parts.unsigned_abs() % PARTS as u64);
                let decimals = format!("{decimals:06}");
                let decimals = decimals.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                write!(f, "{}{whole}{point}{decimals}%", if *parts < 0 { '-' } else { '+' })
            }
            Self::Nanos(nanos) => {
                let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
                let (size, unit) = units.into_iter().find(|(size, _)| nanos % size == 0).unwrap_or((1, "ns"));
                write!(f, "{:+}{unit}", nanos / size)
            }
            Self::Number(number) => write!(f, "{number:+}"),
        }
    }
}
