//! Words for those who wait: what `watch` and `capture` wait for when nothing comes.

use crate::cli::paint::DIM;
use std::time::{Duration, Instant};

/// How long nothing is said.
const DELAY: Duration = Duration::from_secs(1);

/// A time in which nothing came.
pub(super) struct Silence {
    is_quiet: bool,
    /// Since when, once it was looked at.
    since: Option<Instant>,
    /// What was said last.
    said: String,
}

impl Silence {
    /// With `is_quiet`, nothing is ever said.
    pub(super) fn new(is_quiet: bool) -> Self {
        Self { is_quiet, since: None, said: String::new() }
    }

    /// Something came.
    pub(super) fn ends(&mut self) {
        self.since = None;
        self.said.clear();
    }

    /// Nothing has come yet: says so on stderr after a second, and again when there is something else to say.
    pub(super) fn say(&mut self, what: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.is_quiet || now.duration_since(*self.since.get_or_insert(now)) < DELAY {
            return;
        }
        let what = what();
        if what.is_empty() || what == self.said {
            return;
        }
        anstream::eprintln!("{DIM}── {what} ──{DIM:#}");
        self.said = what;
    }
}
