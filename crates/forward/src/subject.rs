//! The subjects of batches: the stream, the host, the ring, and the kind of its events.

use eventring::files::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use eventring_capture::batches::{NAME_BYTES_MAX, is_name};
use eventring_capture::{CaptureError, CaptureErrorKind, CapturedRing, RingRole};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Checks that a name can be in subjects, headers and captures. `what` says whose name it is, and `remedy` what to do.
///
/// # Errors
/// The name is empty, too long, or has control characters.
pub(super) fn check_name(what: &str, remedy: &str, name: &str) -> Result<(), CaptureError> {
    if is_name(name) {
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

/// Checks that a batch of these rings may have a subject: it is of one recorder, and names its host and ring as the
/// subject does. So a sender that may send under one subject only cannot send in the name of another host or ring.
///
/// # Errors
/// It is not so; the error says what is wrong.
pub(super) fn check_subject(stream: &str, subject: &str, rings: &[CapturedRing]) -> Result<(), String> {
    let Some(shard0) = rings.first() else { return Err("it describes no ring".to_owned()) };
    let is_of_it = |(ring, index): (&CapturedRing, u32)| match ring.role {
        RingRole::Shard { recorder: 0, shard } => index == 0 || ring.name == format!("{}.{shard}", shard0.name),
        RingRole::Shard { .. } => false,
        RingRole::Single => index == 0,
    };
    let is_one = rings.iter().zip(0..).all(|ring| is_of_it(ring) && ring.0.host == shard0.host);
    if !is_one {
        return Err("its rings are not those of one recorder".to_owned());
    }
    match subject_of(stream, &shard0.host, &shard0.name, shard0.content_type) {
        expected if expected == subject => Ok(()),
        expected => Err(format!("it is of another ring or host: expected it under {expected}")),
    }
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
    fn a_batch_comes_only_under_the_subject_of_its_own_host_and_ring() {
        let fixture = eventring_capture::fixtures::CaptureFixture::sharded().open();
        let named = |index: usize, host: &str, name: Option<&str>| {
            let mut ring: CapturedRing = fixture.rings()[index].clone();
            ring.host = host.into();
            name.into_iter().for_each(|name| ring.name = name.into());
            ring
        };
        let [shard0, exec, shard1] = [0, 1, 2].map(|index| named(index, "h", None));
        let check = |subject: &str, rings: &[&CapturedRing]| {
            let rings: Vec<CapturedRing> = rings.iter().map(|ring| (*ring).clone()).collect();
            check_subject("S", subject, &rings).is_ok()
        };
        assert!(check("S.h.shop.spans", &[&shard0, &shard1]) && check("S.h.shop-exec.exec", &[&exec]));
        for subject in ["S.h.shop.events", "S.h.other.spans", "S.g.shop.spans", "T.h.shop.spans", "S.h.shop.spans.x"] {
            assert!(!check(subject, &[&shard0, &shard1]), "{subject}");
        }
        for second in [&exec, &named(2, "g", None), &named(2, "h", Some("stop.1"))] {
            assert!(!check("S.h.shop.spans", &[&shard0, second]), "{second:?}");
        }
        assert!(!check("S.h.shop.spans", &[]));
    }

    #[test]
    fn names_become_parts_of_subjects_and_stay_different() {
        assert_eq!(subject_of("S", "web-1.example", "shop", CONTENT_TYPE_PERF), "S.web-1%2Eexample.shop.spans");
        assert_eq!(subject_of("S", "h", "a b*>%", 7), "S.h.a%20b%2A%3E%25.events");
        assert_ne!(token("a.b"), token("a_b"));
        assert_eq!(filter_of("S", None, Some("x.y")), "S.*.x%2Ey.*");
    }
}
