//! The subjects of batches: the stream, the host, the ring, and the kind of its events.

use crate::capture::{CaptureError, CaptureErrorKind};
use crate::layout::header::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The longest name of a host or ring, in bytes. It has room in a subject even if all of its bytes are escaped.
const NAME_BYTES_MAX: usize = 255;

/// Checks that a name can be in subjects, headers and captures. `what` says whose name it is, and `remedy` what to do.
///
/// # Errors
/// The name is empty, too long, or has control characters.
pub(super) fn check_name(what: &str, remedy: &str, name: &str) -> Result<(), CaptureError> {
    let is_good = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if is_good {
        return Ok(());
    }
    let message = format!(
        "{what} is {name:?}, expected 1 to {NAME_BYTES_MAX} bytes without control characters, such as line feeds; {remedy}"
    );
    Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
}

/// Returns the subject of the batches of a recorder.
pub(super) fn subject_of(stream: &str, host: &str, ring: &str, content_type: u16) -> String {
    let kind = match content_type {
        CONTENT_TYPE_PERF => "spans",
        CONTENT_TYPE_EXEC => "exec",
        _ => "events",
    };
    format!("{stream}.{}.{}.{kind}", token(host), token(ring))
}

/// Returns the subjects of the batches of these hosts and rings; `None` stands for all.
pub(super) fn filter_of(stream: &str, host: Option<&str>, ring: Option<&str>) -> String {
    let token = |name: Option<&str>| name.map_or("*".to_owned(), token);
    format!("{stream}.{}.{}.*", token(host), token(ring))
}

/// The characters that a part of a subject cannot have, such as dots, spaces and wildcards, and all other unusual ones.
const ENCODED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// Returns a name as one part of a subject.
fn token(name: &str) -> String {
    utf8_percent_encode(name, &ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_message_can_have_is_refused() {
        let is_good = |name: &str| check_name("the name", "choose another", name).is_ok();
        assert!(is_good("web-1.example") && is_good("a b*>%") && is_good("süß") && is_good(&"x".repeat(255)));
        for bad in ["", "a\nb", "a\r", "\u{1b}[2J", "\u{7f}", &"x".repeat(256)] {
            assert!(!is_good(bad), "{bad:?}");
        }
        let error = check_name("the name of the ring", "choose another", "a\nb").unwrap_err();
        assert_eq!(error.kind(), CaptureErrorKind::BadOptions);
        assert!(error.to_string().contains("the name of the ring is \"a\\nb\", expected"), "{error}");
    }

    #[test]
    fn names_become_parts_of_subjects_and_stay_different() {
        assert_eq!(subject_of("S", "web-1.example", "shop", CONTENT_TYPE_PERF), "S.web-1%2Eexample.shop.spans");
        assert_eq!(subject_of("S", "h", "a b*>%", 7), "S.h.a%20b%2A%3E%25.events");
        assert_ne!(token("a.b"), token("a_b"));
        assert_eq!(filter_of("S", None, Some("x.y")), "S.*.x%2Ey.*");
    }
}
