//! Sizes and times on the command line.

use eventring::files::ByteCount;
use jiff::{Span, SpanRelativeTo};
use std::time::Duration;

/// Parses a size in bytes: `500k`, `100M`, `2GiB`. The units are powers of 1,024.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, &'static str> {
    ByteCount::parse(text).map(|ByteCount(bytes)| bytes)
}

/// Parses the size of a file, or of files together, which is greater than 0: with size 0, every event would get a file
/// of its own, or none would stay.
pub(crate) fn parse_file_bytes(text: &str) -> Result<u64, &'static str> {
    parse_bytes(text).and_then(|bytes| match bytes {
        0 => Err("expected a size greater than 0, like 500k, 100M or 2GiB"),
        bytes => Ok(bytes),
    })
}

/// Parses the time for which a file is written, or kept. It is greater than 0, as sizes of files are.
pub(crate) fn parse_file_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).and_then(|time| match time {
        Duration::ZERO => Err("expected a time greater than 0, like 500ms, 10s, 2m, 1h30m or 7d".to_owned()),
        time => Ok(time),
    })
}

/// The longest time on the command line: 100 years. So a time can be added to any clock, and counted in nanoseconds.
const DURATION_MAX: Duration = Duration::from_secs(876_000 * 3600);

/// Parses a time: `500ms`, `10s`, `2m`, `1h30m`, `7d`. A number without a unit is in seconds. A day has 24 hours.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time like 500ms, 10s, 2m, 1h30m or 7d".to_owned();
    let too_long = || "the time is too long, expected at most 876000h (100 years)".to_owned();
    let duration = match text.parse::<f64>() {
        Ok(seconds) if seconds > DURATION_MAX.as_secs_f64() => return Err(too_long()),
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| expected())?,
        Err(_) => {
            let parse = |text: &str| text.parse::<Span>()?.to_duration(SpanRelativeTo::days_are_24_hours());
            let is_too_long = || parse(&with_small_numbers(text)).is_ok();
            let parsed = parse(text).map_err(|_| if is_too_long() { too_long() } else { expected() })?;
            parsed.try_into().map_err(|_| expected())?
        }
    };
    if duration > DURATION_MAX { Err(too_long()) } else { Ok(duration) }
}

/// Returns the text with each number replaced by 1. If it is a time then, it was one with too large a number.
fn with_small_numbers(text: &str) -> String {
    let mut small = String::new();
    for c in text.chars() {
        match c.is_ascii_digit() {
            true if small.ends_with('1') => {}
            true => small.push('1'),
            false => small.push(c),
        }
    }
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(parse_duration("1d 12h"), Ok(Duration::from_secs(36 * 3600)));
        assert_eq!(parse_duration("876000h"), Ok(DURATION_MAX));
        for wrong in ["-1", "-1s", "soon", "", "NaN", "12x", "1h2h3x"] {
            assert!(parse_duration(wrong).unwrap_err().starts_with("expected a time like"), "{wrong}");
        }
        for long in ["876000h1s", "1e30", "inf", "9999999999", "99999999999999999999h", "1h99999999999999999999m"] {
            assert!(parse_duration(long).unwrap_err().starts_with("the time is too long"), "{long}");
        }
    }
}
