//! The header `tracestate`: whether it is valid.

/// The length up to which `tracestate` is passed on, in bytes.
const BYTES_MAX: usize = 512;
/// The number of entries of a list.
const ENTRIES_MAX: usize = 32;
/// The length of a key, and of a value.
const PART_BYTES_MAX: usize = 256;

/// Returns true if `text` is a list of entries as W3C Trace Context says, and not too long.
pub(super) fn is_tracestate(text: &str) -> bool {
    if text.is_empty() || text.len() > BYTES_MAX {
        return false;
    }
    let mut keys = Vec::new();
    for entry in text.split(',').map(|entry| entry.trim_matches([' ', '\t'])).filter(|entry| !entry.is_empty()) {
        let Some((key, value)) = entry.split_once('=') else { return false };
        if !is_key(key) || !is_value(value) || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    (1..=ENTRIES_MAX).contains(&keys.len())
}

fn is_key(key: &str) -> bool {
    let is_of_key = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = key.as_bytes().first().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    begins && key.len() <= PART_BYTES_MAX && key.bytes().all(is_of_key)
}

fn is_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= PART_BYTES_MAX
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_valid_only_as_the_standard_says() {
        for right in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, ,b@c= x y", "0/x*-_=~"] {
            assert!(is_tracestate(right), "{right}");
        }
        let many = (0..33).map(|number| format!("k{number}=1")).collect::<Vec<_>>().join(",");
        let long = format!("a={}", "x".repeat(257));
        let too_long = format!("a={},b={}", "x".repeat(255), "y".repeat(255));
        for wrong in
            ["", ",", "a", "a=", "=1", "A=1", "a=1,a=2", "a=1=2", "a=é", "a=\n", "_a=1", &many, &long, &too_long]
        {
            assert!(!is_tracestate(wrong), "{wrong}");
        }
    }
}
