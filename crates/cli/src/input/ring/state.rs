//! The state of a ring in words, and its writer.

use crate::text::format::TimeFormat;
use crate::text::paint::{DIM, GOOD, Style, WARNING};
use eventring::reader::{Reader, RingEnd, RingState};
use schemars::JsonSchema;
use serde::Serialize;

/// Returns the colour of a ring's state, and the word for it in tables, with at most eight characters.
pub(crate) fn short_word(state: RingState) -> (Style, &'static str) {
    match state {
        RingState::Live => (GOOD, "live"),
        RingState::Ended => (DIM, "ended"),
        RingState::WriterDied => (WARNING, "died"),
        RingState::Saved => (DIM, "snapshot"),
        RingState::Truncated => (WARNING, "cut off"),
        RingState::NoMemory => (WARNING, "no room"),
        RingState::Unreadable => (WARNING, "damaged"),
        RingState::Unknown => (DIM, "unknown"),
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

/// The words for [`RingState`] in JSON.
#[derive(Serialize, JsonSchema)]
#[serde(remote = "RingState", rename_all = "snake_case")]
pub(crate) enum StateWord {
    Live,
    Ended,
    WriterDied,
    #[serde(rename = "snapshot")]
    Saved,
    Truncated,
    NoMemory,
    Unreadable,
    Unknown,
}

/// The times between which a recording ended; null if it has not, or if that is not known.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EndTimes {
    ended_after_ns: Option<u64>,
    ended_before_ns: Option<u64>,
}

impl From<Option<RingEnd>> for EndTimes {
    fn from(end: Option<RingEnd>) -> Self {
        Self {
            ended_after_ns: end.map(|end| end.after_epoch_nanos),
            ended_before_ns: end.map(|end| end.before_epoch_nanos),
        }
    }
}

/// What a ring has, in JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ContentType {
    pub(crate) code: u16,
    pub(crate) name: String,
}

/// The writer of a ring, in JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Writer {
    pub(crate) pid: u32,
    /// Null if that is not known.
    pub(crate) alive: Option<bool>,
    pub(crate) program: Option<String>,
}

impl Writer {
    pub(crate) fn from_reader(reader: &Reader) -> Option<Self> {
        let program = || reader.info().extension.map(|extension| extension.writer.program_name);
        writer(reader).map(|(pid, alive)| Self { pid, alive, program: program() })
    }
}

/// Returns the pid of the ring's writer, and whether the writer lives: `Some(true)`, `Some(false)`, or `None` if that
/// is not known. A writer in another pid namespace that is not found here has the pid that it has there.
pub(crate) fn writer(reader: &Reader) -> Option<(u32, Option<bool>)> {
    let writer = reader.info().extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    let here = match &writer {
        Some(writer) if !writer.is_numbered_here() => crate::input::programs::holder::holder(reader),
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
