//! The decimal numbers that conditions compare. A float counts as the decimal number that eventring shows for it, so
//! `field.x=0.1` holds for the 64-bit and the 32-bit float that is shown as 0.1. A text in the form of a number counts
//! as the number.

use super::{Integer, Operand};
use std::cmp::Ordering;
use std::fmt;

/// A number as it is written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Number {
    text: String,
    /// The nearest float. Of numbers in order, the nearest floats are in order, too, or equal.
    nearest: f64,
    /// The nearest float of 32 bits.
    narrow: f32,
    /// The same number, if it is written as an integer.
    integer: Option<Integer>,
}

impl Number {
    /// Returns the number that a word is, such as `-7`, `0.5` or `1e3`.
    pub(super) fn new(word: &str) -> Option<Self> {
        let nearest = word.parse().ok().filter(|_| is_decimal(word))?;
        Some(Self { text: word.to_owned(), nearest, narrow: word.parse().ok()?, integer: word.parse().ok() })
    }

    /// Returns the order of a value and this number. Returns `None` if the value is no number.
    pub(super) fn order_of(&self, found: Operand<'_>) -> Option<Ordering> {
        match found {
            Operand::Integer(found) => match self.integer {
                Some(wanted) => Some(found.cmp(&wanted)),
                None => self.order(found.to_f64(), || found.to_string()),
            },
            Operand::Float(found) => self.order(found, || format!("{found:e}")),
            Operand::Float32(found) => match found.partial_cmp(&self.narrow)? {
                Ordering::Equal => Some(order_of_texts(&format!("{found:e}"), &self.text)),
                order => Some(order),
            },
            Operand::Text(found) => self.order(found.parse().ok()?, || found.to_owned()),
            Operand::Bool(_) => None,
        }
    }

    /// Returns the order of a number that is shown so, and of which this is the nearest float, and this number.
    fn order(&self, nearest: f64, shown: impl FnOnce() -> String) -> Option<Ordering> {
        match nearest.partial_cmp(&self.nearest)? {
            Ordering::Equal => Some(order_of_texts(&shown(), &self.text)),
            order => Some(order),
        }
    }

    /// Returns the floats of 64 and of 32 bits that may be equal to this number.
    pub(super) fn floats(&self) -> (f64, f32) {
        (self.nearest, self.narrow)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns true if a text that is read as a float is a decimal number, and not `inf` or `NaN`.
fn is_decimal(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the order of two texts that are read as floats. The second one is a decimal number; the first one may also be
/// an infinity.
fn order_of_texts(found: &str, wanted: &str) -> Ordering {
    match is_decimal(found) {
        true => Decimal::new(found).cmp(&Decimal::new(wanted)),
        false if found.starts_with('-') => Ordering::Less,
        false => Ordering::Greater,
    }
}

/// A decimal number: 0.D × 10^E, where D are the digits and E is the exponent.
#[derive(PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    exponent: i64,
    /// The digits without zeros at the beginning and at the end; empty for zero.
    digits: Vec<u8>,
}

impl Decimal {
    fn new(text: &str) -> Self {
        let unsigned = text.trim_start_matches(['+', '-']);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        let zeros = all().take_while(|digit| *digit == b'0').count();
        let mut digits: Vec<u8> = all().skip(zeros).collect();
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Self { is_negative: false, exponent: 0, digits };
        }
        // An exponent with more digits stands for a number that no value comes near to.
        let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent = exponent.parse().unwrap_or(beyond).saturating_add(whole.len() as i64 - zeros as i64);
        Self { is_negative: text.starts_with('-'), exponent, digits }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |it: &Self| match (it.digits.is_empty(), it.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = |it: &Self| (it.exponent, &it.digits).cmp(&(other.exponent, &other.digits));
        let order = sign(self).cmp(&sign(other));
        order.then_with(|| if self.is_negative { size(self).reverse() } else { size(self) })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(found: Operand<'_>, wanted: &str) -> Option<Ordering> {
        Number::new(wanted).unwrap().order_of(found)
    }

    proptest! {
        #[test]
        fn integers_have_their_order_in_every_form(found in any::<i64>(), near in -3_i64..3) {
            let wanted = found.saturating_add(near);
            let expected = Some(found.cmp(&wanted));
            let (text, float) = (found.to_string(), format!("{found}.0"));
            for found in [Operand::Integer(found.into()), Operand::Text(&text), Operand::Text(&float)] {
                for wanted in [wanted.to_string(), format!("{wanted}.00"), format!("{wanted}0e-1")] {
                    prop_assert_eq!(order(found, &wanted), expected, "{:?} {}", found, wanted);
                }
            }
        }

        #[test]
        fn a_float_has_the_number_with_which_it_is_shown(bits in any::<u64>(), narrow in any::<u32>()) {
            let (float, narrow) = (f64::from_bits(bits), f32::from_bits(narrow));
            prop_assume!(float.is_finite() && narrow.is_finite());
            for (found, shown) in [
                (Operand::Float(float), [format!("{float}"), format!("{float:?}"), format!("{float:e}")]),
                (Operand::Float32(narrow), [format!("{narrow}"), format!("{narrow:?}"), format!("{narrow:e}")]),
            ] {
                for shown in shown {
                    prop_assert_eq!(order(found, &shown), Some(Ordering::Equal), "{:?} {}", found, &shown);
                }
            }
            let (above, below) = (float.next_up(), float.next_down());
            let order_to = |wanted: f64| wanted.is_finite().then(|| order(Operand::Float(float), &wanted.to_string()));
            prop_assert_eq!(order_to(below).unwrap_or(Some(Ordering::Greater)), Some(Ordering::Greater));
            prop_assert_eq!(order_to(above).unwrap_or(Some(Ordering::Less)), Some(Ordering::Less));
        }
    }
}
