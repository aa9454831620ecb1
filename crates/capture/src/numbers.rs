//! Numbers for people, and medians.

/// Returns the median of numbers, the greater of two; 0 of none.
#[must_use]
pub fn median(numbers: &mut [u64]) -> u64 {
    let half = numbers.len() / 2;
    if numbers.is_empty() { 0 } else { *numbers.select_nth_unstable(half).1 }
}

/// Groups digits: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a time with three significant digits: `950 ns`, `12.3 µs`, `1.25 s`.
#[must_use]
pub fn time(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    let decimals = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Shows a number with its noun: `1 file`, `1,234 files`.
#[must_use]
pub fn counted(count: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { singular } else { plural })
}

/// Returns a change in percent, with its sign: `+1.25%`. A change that is not 0 is never shown as 0.
#[must_use]
pub fn percent_change(relative: f64) -> String {
    match relative * 100.0 {
        0.0 => "0%".into(),
        tiny if tiny.abs() < 0.0001 => format!("{}<0.0001%", if tiny < 0.0 { '-' } else { '+' }),
        small if small.abs() < 0.01 => format!("{small:+.4}%"),
        percent if percent.abs() < 10.0 => format!("{percent:+.2}%"),
        percent if percent.abs() < 1000.0 => format!("{percent:+.1}%"),
        percent => format!("{percent:+.0}%"),
    }
}

/// Returns a change with its sign. `show` writes the size of the change.
#[must_use]
pub fn signed(change: i128, show: fn(u64) -> String) -> String {
    let size = show(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX));
    match change {
        0 => "0".into(),
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}
