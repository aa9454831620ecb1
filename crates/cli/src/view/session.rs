//! The state of the server, and when it should end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which the page may be away before the server ends. A page that is loaded again is away for a moment.
const AWAY_MAX: Duration = Duration::from_secs(3);
/// The time without a request after which a page has what it needs, with `--once`.
const QUIET: Duration = Duration::from_secs(2);

/// The state of a server, shared by its connections.
#[derive(Clone, Default)]
pub(super) struct Session(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The number of pages that are open.
    pages: u32,
    /// The time at which the last page was closed.
    closed_at: Option<Instant>,
    /// True if the trace was fetched whole.
    has_fetched: bool,
    asked_at: Option<Instant>,
    /// The number of answers that are being sent.
    answers: u32,
    has_ended: bool,
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request of our own page.
    pub(super) fn asked(&self) {
        self.state().asked_at = Some(Instant::now());
    }

    /// Notes that the trace was fetched whole.
    pub(super) fn fetched(&self) {
        self.state().has_fetched = true;
    }

    /// Counts a page as open for as long as the value lives.
    pub(super) fn open_page(&self) -> OpenPage {
        self.state().pages += 1;
        OpenPage(self.clone())
    }

    /// Counts an answer as being sent for as long as the value lives.
    pub(super) fn open_answer(&self) -> OpenAnswer {
        self.state().answers += 1;
        OpenAnswer(self.clone())
    }

    /// Returns true if the last page was closed a while ago. With `is_once`, also if the trace was fetched and the page
    /// asks for nothing more: the UI loads a few files after the trace.
    pub(super) fn is_over(&self, is_once: bool) -> bool {
        let state = self.state();
        let is_away = state.pages == 0 && state.closed_at.is_some_and(|at| at.elapsed() >= AWAY_MAX);
        let is_quiet = state.answers == 0 && state.asked_at.is_some_and(|at| at.elapsed() >= QUIET);
        (is_away && state.answers == 0) || (is_once && state.has_fetched && is_quiet)
    }

    /// Ends the streams that tell pages from closed ones.
    pub(super) fn end(&self) {
        self.state().has_ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().has_ended
    }
}

/// A page that is open in the browser.
pub(super) struct OpenPage(Session);

impl OpenPage {
    pub(super) fn session(&self) -> &Session {
        &self.0
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.pages -= 1;
        state.closed_at = Some(Instant::now());
    }
}

/// An answer that is being sent.
pub(super) struct OpenAnswer(Session);

impl OpenAnswer {
    pub(super) fn session(&self) -> &Session {
        &self.0
    }
}

impl Drop for OpenAnswer {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.answers -= 1;
        state.asked_at = Some(Instant::now());
    }
}
