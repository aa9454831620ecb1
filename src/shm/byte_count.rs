//! Amounts of memory as text: `64MiB`, `500k`.

use std::fmt;

/// An amount of memory. It is displayed in the largest unit in which it is a whole number: `64 MiB`, `1536 KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub u64);

/// The units, and the shifts that stand for them. All of them are powers of 1,024.
const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

impl ByteCount {
    /// Reads an amount: `500k`, `100M`, `64MiB`, `2 GB`, `4096`. The units are powers of 1,024, with or without `iB`,
    /// in upper or lower case.
    ///
    /// # Errors
    /// Returns what was expected if the text is no such amount, or if the amount has more than 64 bits.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "expected a size like 500k, 100M or 2GiB";
        let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
        let unit = unit.trim_start();
        let is_unit = |(name, _): &&(&str, u32)| {
            let short = [&name[..1], &format!("{}B", &name[..1]), name];
            short.iter().any(|short| unit.eq_ignore_ascii_case(short))
        };
        let shift = match UNITS.iter().find(is_unit) {
            Some((_, shift)) => *shift,
            None if unit.is_empty() || unit.eq_ignore_ascii_case("B") => 0,
            None => return Err(EXPECTED),
        };
        let number: u64 = match number.parse() {
            Ok(number) => number,
            Err(_) if number.is_empty() => return Err(EXPECTED),
            Err(_) => return Err("too large"),
        };
        number.checked_mul(1 << shift).map(Self).ok_or("too large")
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, shift): &&(&str, u32)| self.0 >= 1 << shift && self.0.trailing_zeros() >= *shift;
        match UNITS.iter().rev().find(whole) {
            Some((name, shift)) => write!(f, "{} {name}", self.0 >> shift),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("10", 10),
            ("10B", 10),
            ("3k", 3 << 10),
            ("3KB", 3 << 10),
            ("64MiB", 64 << 20),
            ("2 gib", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(ByteCount::parse(text), Ok(ByteCount(bytes)), "{text}");
        }
        for text in ["", "x", "M", "64Mi", "64XiB", "-1M", "1.5G", "99999999999T", "99999999999999999999", "64MiB:3"] {
            assert!(ByteCount::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_displayed_is_what_is_read(bytes: u64, shift in 0..64u32) {
            let amount = ByteCount(bytes >> shift << (shift / 2));
            let text = amount.to_string();
            prop_assert_eq!(ByteCount::parse(text.strip_suffix(" bytes").unwrap_or(&text)), Ok(amount));
        }
    }
}
