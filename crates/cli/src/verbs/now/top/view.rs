//! The view: the shown list, its sort order, its filter, and the keys that change them.

use super::list::{ListOrder as _, ListRow, TopList};
use super::model::TopScreen;
use super::names::TopName;
use super::stats::TopKey;
use super::threads::TopThread;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A way to show a screen: the list that is shown, and its order, filter and selection.
#[derive(Default)]
pub(super) struct TopView {
    pub(super) names: TopList<TopName>,
    pub(super) threads: TopList<TopThread>,
    /// True if the threads are shown in place of the names.
    pub(super) shows_threads: bool,
    /// True if the spans that may have been closed are shown one by one.
    pub(super) shows_perhaps: bool,
    /// True while the user types the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    /// The name that the user looks into.
    pub(super) detail: Option<TopKey>,
    pub(super) has_colours: bool,
}

/// The next step after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TopRequest {
    Quit,
    /// Draw the same screen in the new way.
    Draw,
    /// Make a new screen and draw it.
    Look,
}

impl TopView {
    /// Returns the filter of the list that is shown.
    pub(super) fn filter(&self) -> &str {
        if self.shows_threads { &self.threads.filter } else { &self.names.filter }
    }

    fn filter_mut(&mut self) -> &mut String {
        if self.shows_threads { &mut self.threads.filter } else { &mut self.names.filter }
    }

    /// Takes a key that was pressed while this screen was shown.
    pub(super) fn press(&mut self, key: KeyEvent, screen: &TopScreen) -> TopRequest {
        if key.kind == KeyEventKind::Release {
            return TopRequest::Draw;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { TopRequest::Quit } else { TopRequest::Draw };
        }
        if self.is_typing {
            self.type_key(key.code);
            return TopRequest::Draw;
        }
        match key.code {
            KeyCode::Char('q') => return TopRequest::Quit,
            KeyCode::Char('p') => {
                self.is_paused = !self.is_paused;
                // What happened in the pause is shown at once.
                return if self.is_paused { TopRequest::Draw } else { TopRequest::Look };
            }
            KeyCode::Char('t') => {
                let was_in_detail = self.detail.take().is_some();
                self.shows_threads = was_in_detail || !self.shows_threads;
                return if was_in_detail { TopRequest::Look } else { TopRequest::Draw };
            }
            KeyCode::Char('o') => self.shows_perhaps = !self.shows_perhaps,
            KeyCode::Enter if self.detail.is_none() => return self.look_into(screen),
            KeyCode::Esc => return self.go_back(),
            // The other keys are about the list, which is not shown now.
            _ if self.detail.is_some() => {}
            KeyCode::Char('s') if self.shows_threads => self.threads.order = self.threads.order.next(),
            KeyCode::Char('s') => self.names.order = self.names.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Up => self.select(screen, -1),
            KeyCode::Down => self.select(screen, 1),
            KeyCode::PageUp => self.select(screen, -10),
            KeyCode::PageDown => self.select(screen, 10),
            _ => {}
        }
        TopRequest::Draw
    }

    /// Looks into the selected name, or into the span of the selected thread.
    fn look_into(&mut self, screen: &TopScreen) -> TopRequest {
        if self.shows_threads {
            let row = self.threads.chosen(&screen.threads);
            self.threads.selected = row.map(ListRow::key);
            self.detail = row.and_then(|row| Some(row.innermost.as_ref()?.key.clone()));
        } else {
            self.detail = self.names.chosen(&screen.names).map(ListRow::key);
            self.names.selected = self.detail.clone().or(self.names.selected.take());
        }
        if self.detail.is_some() { TopRequest::Look } else { TopRequest::Draw }
    }

    /// Takes the last step back: leaves the name, removes the filter, or leaves the threads.
    fn go_back(&mut self) -> TopRequest {
        if self.detail.take().is_some() {
            return TopRequest::Look;
        }
        match self.filter().is_empty() {
            true => self.shows_threads = false,
            false => self.filter_mut().clear(),
        }
        TopRequest::Draw
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter_mut().clear();
            }
            KeyCode::Backspace => drop(self.filter_mut().pop()),
            KeyCode::Char(letter) => self.filter_mut().push(letter),
            _ => {}
        }
    }

    fn select(&mut self, screen: &TopScreen, by: isize) {
        match self.shows_threads {
            true => self.threads.select(&screen.threads, by),
            false => self.names.select(&screen.names, by),
        }
    }
}
