//! A list whose entries arrive one by one, each with its index.

/// Entries with ascending indices.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    entries: Vec<T>,
    /// The index that follows the last entry.
    next: u64,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0 }
    }
}

impl<T> Numbered<T> {
    /// Adds an entry. Returns false if its index is not above that of the last one: then an entry has come twice, or
    /// the entries are out of order.
    pub(super) fn push(&mut self, index: u64, entry: T) -> bool {
        let is_next = index >= self.next;
        if is_next {
            self.next = index.saturating_add(1);
            self.entries.push(entry);
        }
        is_next
    }

    /// Returns true if the list has exactly the entries from 0 up to `count`.
    pub(super) fn is_whole(&self, count: u64) -> bool {
        self.len() == count && self.next == count
    }

    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.entries.iter_mut()
    }

    pub(super) fn into_entries(self) -> Vec<T> {
        self.entries
    }
}
