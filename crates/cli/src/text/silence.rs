//! The notices that `watch` and `capture` print while no event arrives. Each notice names the awaited ring or event.

use crate::text::paint::DIM;
use std::time::{Duration, Instant};

/// Time without events before the first notice.
const DELAY: Duration = Duration::from_secs(1);

/// A time without events.
pub(crate) struct Silence {
    is_quiet: bool,
    /// The time at which the present silence began, or `None` while events come.
    since: Option<Instant>,
    /// The notice that was printed last.
    last_notice: String,
}

impl Silence {
    /// Creates the state before the first event. If `is_quiet` is true, no notice is ever printed.
    pub(crate) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, since: None, last_notice: String::new() }
    }

    /// Ends the silence: an event has come.
    pub(crate) fn ends(&mut self) {
        self.since = None;
        self.last_notice.clear();
    }

    /// Prints `notice` on stderr if no event has come for a second. In the same silence, a later notice is printed
    /// only if it differs from the one before.
    pub(crate) fn say(&mut self, notice: impl FnOnce() -> String) {
        if let Some(line) = self.line(notice) {
            say!("{line}");
        }
    }

    /// Returns the line that [`Self::say`] prints, if it prints one.
    pub(crate) fn line(&mut self, notice: impl FnOnce() -> String) -> Option<String> {
        let now = Instant::now();
        if self.is_quiet || now.duration_since(*self.since.get_or_insert(now)) < DELAY {
            return None;
        }
        let notice = notice();
        if notice.is_empty() || notice == self.last_notice {
            return None;
        }
        let line = format!("{DIM}── {notice} ──{DIM:#}");
        self.last_notice = notice;
        Some(line)
    }
}
