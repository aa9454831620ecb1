//! Notices of `watch` and `capture` about the ring or event that they wait for while no event comes.

use crate::cli::paint::DIM;
use std::time::{Duration, Instant};

/// Time without events before the first notice.
const DELAY: Duration = Duration::from_secs(1);

/// A time without events.
pub(super) struct Silence {
    is_quiet: bool,
    /// The time at which the present silence began; `None` while events come.
    since: Option<Instant>,
    /// The notice that was printed last.
    last_notice: String,
}

impl Silence {
    /// Creates the state before the first event. With `is_quiet`, no notice is ever printed.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, since: None, last_notice: String::new() }
    }

    /// Ends the silence: an event has come.
    pub(super) fn ends(&mut self) {
        self.since = None;
        self.last_notice.clear();
    }

    /// Prints `notice` on stderr if nothing has come for a second, and again whenever it differs from the last notice.
    pub(super) fn say(&mut self, notice: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.is_quiet || now.duration_since(*self.since.get_or_insert(now)) < DELAY {
            return;
        }
        let notice = notice();
        if notice.is_empty() || notice == self.last_notice {
            return;
        }
        anstream::eprintln!("{DIM}── {notice} ──{DIM:#}");
        self.last_notice = notice;
    }
}
