//! A list that the user sorts, filters and selects in.

use std::cmp::Ordering;

/// A row of a list.
pub(super) trait ListRow {
    /// Identity of the row, in every screen.
    type Key: Clone + PartialEq;
    type Order: ListOrder;

    fn key(&self) -> Self::Key;
    fn compare(&self, other: &Self, order: Self::Order) -> Ordering;
    /// Returns the texts that a filter looks at.
    fn texts(&self) -> impl Iterator<Item = &str>;
}

/// An order of rows.
pub(super) trait ListOrder: Copy + Default + PartialEq + 'static {
    /// All orders, with their words for people.
    const ALL: &'static [(Self, &'static str)];

    fn place(self) -> usize {
        Self::ALL.iter().position(|(order, _)| *order == self).unwrap_or(0)
    }

    /// Returns the order that follows when the user asks for another one.
    fn next(self) -> Self {
        Self::ALL[(self.place() + 1) % Self::ALL.len()].0
    }

    /// Returns the word for people.
    fn word(self) -> &'static str {
        Self::ALL[self.place()].1
    }
}

/// A way to show rows: order, filter and selection.
pub(super) struct TopList<R: ListRow> {
    pub(super) order: R::Order,
    /// Only rows that contain this text are shown.
    pub(super) filter: String,
    pub(super) selected: Option<R::Key>,
}

impl<R: ListRow> Default for TopList<R> {
    fn default() -> Self {
        Self { order: R::Order::default(), filter: String::new(), selected: None }
    }
}

impl<R: ListRow> TopList<R> {
    /// Returns the rows that are shown, in their order.
    pub(super) fn shown<'r>(&self, rows: &'r [R]) -> Vec<&'r R> {
        let filter = self.filter.to_lowercase();
        let matches = |row: &&R| row.texts().any(|text| text.to_lowercase().contains(&filter));
        let mut rows: Vec<&R> = rows.iter().filter(matches).collect();
        rows.sort_by(|a, b| a.compare(b, self.order));
        rows
    }

    /// Returns the place of the selected row among those that are shown.
    pub(super) fn selected_row(&self, shown: &[&R]) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        shown.iter().position(|row| row.key() == *selected)
    }

    /// Moves the selection by this number of rows.
    pub(super) fn select(&mut self, rows: &[R], by: isize) {
        let shown = self.shown(rows);
        let at = match self.selected_row(&shown) {
            Some(at) => at.saturating_add_signed(by).min(shown.len() - 1),
            None => 0,
        };
        self.selected = shown.get(at).map(|row| row.key());
    }

    /// Returns the selected row, or the first one if none is selected.
    pub(super) fn chosen<'r>(&self, rows: &'r [R]) -> Option<&'r R> {
        let shown = self.shown(rows);
        shown.get(self.selected_row(&shown).unwrap_or(0)).copied()
    }
}
