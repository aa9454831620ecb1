//! The state of a ring in words, and its writer.

use crate::text::format::TimeFormat;
use crate::text::paint::{DIM, GOOD, WARNING};
use anstyle::Style;
use eventring::reader::{Reader, RingEnd, RingState};
use serde_json::{Value, json};

/// Returns the name of a state in JSON.
pub(crate) fn json_name(state: RingState) -> &'static str {
    names(state).0
}

/// Returns the word for a ring's state in tables, with at most eight characters, and its colour.
pub(crate) fn short_word(state: RingState) -> (Style, &'static str) {
    let (_, style, word) = names(state);
    (style, word)
}

/// Returns the name of a state in JSON, its colour, and its word in tables.
fn names(state: RingState) -> (&'static str, Style, &'static str) {
    match state {
        RingState::Live => ("live", GOOD, "live"),
        RingState::Ended => ("ended", DIM, "ended"),
        RingState::WriterDied => ("writer_died", WARNING, "died"),
        RingState::Saved => ("snapshot", DIM, "snapshot"),
        RingState::Truncated => ("truncated", WARNING, "cut off"),
        RingState::NoMemory => ("no_memory", WARNING, "no room"),
        RingState::Unreadable => ("unreadable", WARNING, "damaged"),
        RingState::Unknown => ("unknown", DIM, "unknown"),
    }
}

/// Returns an end in words: how, and between which times.
pub(crate) fn end_in_words(end: RingEnd, time: &TimeFormat) -> String {
    let how = if end.has_died { "died" } else { "ended its recording" };
    format!("{how} {}", end_between(end, |nanos| time.date_and_time(nanos)))
}

/// Returns in words between which times an end was. `time` writes a time.
pub(crate) fn end_between(end: RingEnd, time: impl Fn(u64) -> String) -> String {
    let [after, before] = [end.after_epoch_nanos, end.before_epoch_nanos].map(time);
    match end.after_epoch_nanos {
        0 => format!("before {before}"),
        _ => format!("between {after} and {before}"),
    }
}

/// Adds what is known of an end to an object of JSON.
pub(crate) fn add_end(object: &mut Value, end: Option<RingEnd>) {
    object["ended_after_ns"] = json!(end.map(|end| end.after_epoch_nanos));
    object["ended_before_ns"] = json!(end.map(|end| end.before_epoch_nanos));
}

/// Returns the pid of the ring's writer, and whether the writer lives: `Some(true)`, `Some(false)`, or `None` if that
/// is not known. A writer in another pid namespace that is not found here has the pid that it has there.
pub(crate) fn writer(reader: &Reader) -> Option<(u32, Option<bool>)> {
    let writer = reader.info().extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    let here = match &writer {
        Some(writer) if !writer.is_numbered_here() => super::holder::holder(reader),
        _ => None,
    };
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    let here = None;
    let pid = here.or(writer.map(|writer| writer.pid)).or_else(|| reader.lock_owner_pid())?;
    let is_alive = match reader.state() {
        RingState::Live => Some(true),
        RingState::Unknown | RingState::Truncated | RingState::NoMemory | RingState::Unreadable => None,
        RingState::Ended | RingState::WriterDied | RingState::Saved => Some(false),
    };
    Some((pid, is_alive))
}
