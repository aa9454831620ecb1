//! The check whether a header `tracestate` is valid.

/// The length up to which `tracestate` is passed on, in bytes.
const BYTES_MAX: usize = 512;
/// The number of entries of a list.
const ENTRIES_MAX: usize = 32;
/// The length of a key, and of a value.
const PART_BYTES_MAX: usize = 256;
/// The lengths of the two parts of a key with `@`: the name of a tenant, and that of a system.
const TENANT_BYTES_MAX: usize = 241;
const SYSTEM_BYTES_MAX: usize = 14;

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
    match key.split_once('@') {
        None => is_name(key, PART_BYTES_MAX),
        Some((tenant, system)) => {
            let begins = system.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
            begins && is_name(tenant, TENANT_BYTES_MAX) && is_name(system, SYSTEM_BYTES_MAX)
        }
    }
}

fn is_name(name: &str, bytes_max: usize) -> bool {
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_of_name = |byte: &u8| is_first(byte) || matches!(byte, b'_' | b'-' | b'*' | b'/');
    name.as_bytes().first().is_some_and(is_first) && name.len() <= bytes_max && name.as_bytes().iter().all(is_of_name)
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
        let longest = [format!("{}=1", "z".repeat(256)), format!("{}@{}=1", "0".repeat(241), "v".repeat(14))];
        let right = ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, ,b@c= x y", "0/x*-_=~", "0t@s-0=1"];
        for right in right.into_iter().chain(longest.iter().map(String::as_str)) {
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
        // The name of a tenant and that of a system, each with a first character and a length of its own.
        let long_tenant = format!("{}@v", "t".repeat(242));
        let long_system = format!("t@{}", "v".repeat(15));
        for wrong in ["foo@", "@foo", "foo@@bar", "f@oo@b", "t@0", "t@_v", "_t@v", &long_tenant, &long_system] {
            assert!(!is_tracestate(&format!("{wrong}=1")) && !is_tracestate(&format!("bar=2,{wrong}=1")), "{wrong}");
        }
    }
}
