//! The state that the converting thread and the connections of the server share.

use super::trace::ShownTrace;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which the page may be away before the server ends. A page that is loaded again is away for a moment.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// The time without a request after which a page has what it needs, with `--once`.
const QUIET: Duration = Duration::from_secs(2);

/// The session, of which each thread has a copy.
#[derive(Clone, Default)]
pub(super) struct SharedSession(Arc<Mutex<Session>>);

impl SharedSession {
    pub(super) fn lock(&self) -> MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far the conversion is, and who asks.
#[derive(Default)]
pub(super) struct Session {
    /// The present step of the conversion: its text, and how often it reads the capture.
    step: (&'static str, u32),
    /// The number of readings of this step that are over.
    readings: u32,
    /// The bytes that the present reading has read, and those that it will read.
    read: (u64, u64),
    pub(super) trace: Option<Arc<ShownTrace>>,
    has_failed: bool,
    /// True if the trace was fetched whole.
    pub(super) has_fetched: bool,
    /// True if a page was opened.
    had_page: bool,
    /// The numbers of answers that are being sent, and of pages that are open.
    answers: [u32; 2],
    /// The time at which an answer or a page last began or ended.
    changed_at: Option<Instant>,
}

impl Session {
    /// Notes that a step begins.
    pub(super) fn begin(&mut self, text: &'static str, readings: u32) {
        (self.step, self.readings, self.read) = ((text, readings), 0, (0, 0));
    }

    /// Notes how many bytes of how many a reading of the capture has read. A step may read the capture several times.
    pub(super) fn read(&mut self, read_bytes: u64, all_bytes: u64) {
        self.readings += u32::from(read_bytes < self.read.0);
        self.read = (read_bytes, all_bytes);
    }

    /// Notes that the trace is there, or that there will be none.
    pub(super) fn end(&mut self, trace: Option<Arc<ShownTrace>>) {
        (self.has_failed, self.trace) = (trace.is_none(), trace);
    }

    /// Returns the server-sent event with which the page learns how far the conversion is.
    pub(super) fn event(&self) -> String {
        if let Some(trace) = &self.trace {
            let problems = Value::from(trace.summary.problems.as_slice());
            return format!("event: ready\ndata: {{\"problems\":{problems}}}\n\n");
        }
        if self.has_failed {
            return "event: failed\ndata: 1\n\n".to_owned();
        }
        let ((read, all), (text, readings)) = (self.read, self.step);
        let part = f64::from(self.readings) + read.min(all) as f64 / all.max(1) as f64;
        let percent = (part / f64::from(readings) * 100.0).min(99.0) as u64;
        format!("event: converting\ndata: {{\"text\":{},\"percent\":{percent}}}\n\n", Value::from(text))
    }

    /// Counts an answer, or a page, from its begin to its end.
    pub(super) fn count(&mut self, is_page: bool, begins: bool) {
        let count = &mut self.answers[usize::from(is_page)];
        *count = if begins { *count + 1 } else { *count - 1 };
        self.had_page |= is_page;
        self.changed_at = Some(Instant::now());
    }

    /// Returns true if the last page was closed a while ago. With `is_once`, also if the trace was fetched and the page
    /// asks for nothing more: the UI loads a few files after the trace.
    pub(super) fn is_over(&self, is_once: bool) -> bool {
        let (idle, [answers, pages]) = (self.changed_at.map_or(Duration::ZERO, |at| at.elapsed()), self.answers);
        let is_closed = self.had_page && pages == 0 && idle >= AWAY_MAX;
        answers == 0 && (is_closed || (is_once && self.has_fetched && idle >= QUIET))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentage_counts_all_readings_of_a_step_and_begins_anew_with_the_next() {
        let percent = |session: &Session| {
            let event = session.event();
            let (_, data) = event.split_once("data: ").unwrap();
            serde_json::from_str::<serde_json::Value>(data).unwrap()["percent"].as_u64().unwrap()
        };
        let read = |session: &mut Session, bytes| {
            session.read(bytes, 200);
            percent(session)
        };
        let mut session = Session::default();
        session.begin("first", 2);
        assert_eq!(percent(&session), 0);
        assert_eq!([0, 50, 200, 0, 100, 200].map(|bytes| read(&mut session, bytes)), [0, 12, 50, 50, 75, 99]);
        session.begin("second", 1);
        assert_eq!((percent(&session), read(&mut session, 100)), (0, 50));
        session.end(None);
        assert_eq!((session.event().as_str(), session.trace.is_none()), ("event: failed\ndata: 1\n\n", true));
    }
}
