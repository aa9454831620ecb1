//! The subjects of batches: the stream, the host, the ring, and the kind of its events.

use crate::layout::header::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

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
    fn names_become_parts_of_subjects_and_stay_different() {
        assert_eq!(subject_of("S", "web-1.example", "shop", CONTENT_TYPE_PERF), "S.web-1%2Eexample.shop.spans");
        assert_eq!(subject_of("S", "h", "a b*>%", 7), "S.h.a%20b%2A%3E%25.events");
        assert_ne!(token("a.b"), token("a_b"));
        assert_eq!(filter_of("S", None, Some("x.y")), "S.*.x%2Ey.*");
    }
}
