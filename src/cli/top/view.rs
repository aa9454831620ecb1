//! The way to show the screen, and the keys that change it.

use super::model::{TopKey, TopName, TopScreen};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::cmp::Ordering;

/// The order of the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum TopSort {
    #[default]
    SelfTime,
    Rate,
    P99,
    Name,
}

impl TopSort {
    fn next(self) -> Self {
        match self {
            Self::SelfTime => Self::Rate,
            Self::Rate => Self::P99,
            Self::P99 => Self::Name,
            Self::Name => Self::SelfTime,
        }
    }

    /// Returns the word for people.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::SelfTime => "self time",
            Self::Rate => "rate",
            Self::P99 => "p99",
            Self::Name => "name",
        }
    }

    fn compare(self, a: &TopName, b: &TopName) -> Ordering {
        let p99 = |row: &TopName| row.stats.walls_nanos.map(|walls| walls[2]);
        let larger_first = match self {
            Self::SelfTime => b.stats.self_nanos.cmp(&a.stats.self_nanos),
            Self::Rate => b.stats.count.cmp(&a.stats.count),
            Self::P99 => p99(b).cmp(&p99(a)),
            Self::Name => Ordering::Equal,
        };
        larger_first.then_with(|| (&a.key.name, &a.key.target).cmp(&(&b.key.name, &b.key.target)))
    }
}

/// A way to show a screen: order, filter and selection.
#[derive(Default)]
pub(super) struct TopView {
    pub(super) sort: TopSort,
    /// Only names that contain this text are shown.
    pub(super) filter: String,
    /// True while the user types the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) selected: Option<TopKey>,
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
    /// Returns the names that are shown, in their order.
    pub(super) fn shown<'s>(&self, screen: &'s TopScreen) -> Vec<&'s TopName> {
        let filter = self.filter.to_lowercase();
        let contains = |text: &str| text.to_lowercase().contains(&filter);
        let matches = |row: &&TopName| contains(&row.key.name) || contains(&row.key.target);
        let mut rows: Vec<&TopName> = screen.names.iter().filter(matches).collect();
        rows.sort_by(|a, b| self.sort.compare(a, b));
        rows
    }

    /// Returns the place of the selected name among those that are shown.
    pub(super) fn selected_row(&self, shown: &[&TopName]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        shown.iter().position(|row| row.key == *selected)
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
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Up => self.select(screen, -1),
            KeyCode::Down => self.select(screen, 1),
            KeyCode::PageUp => self.select(screen, -10),
            KeyCode::PageDown => self.select(screen, 10),
            KeyCode::Enter if self.detail.is_none() => {
                let shown = self.shown(screen);
                let row = shown.get(self.selected_row(&shown).unwrap_or(0));
                self.detail = row.map(|row| row.key.clone());
                self.selected = self.detail.clone().or(self.selected.take());
                return TopRequest::Look;
            }
            KeyCode::Esc if self.detail.is_some() => {
                self.detail = None;
                return TopRequest::Look;
            }
            KeyCode::Esc => self.filter.clear(),
            _ => {}
        }
        TopRequest::Draw
    }

    fn type_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
    }

    fn select(&mut self, screen: &TopScreen, rows: isize) {
        let shown = self.shown(screen);
        let at = match self.selected_row(&shown) {
            Some(at) => at.saturating_add_signed(rows).min(shown.len() - 1),
            None => 0,
        };
        self.selected = shown.get(at).map(|row| row.key.clone());
    }
}
