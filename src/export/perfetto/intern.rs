//! Interned names. Each name is written to the trace once, with a number, and later packets refer to the name by this
//! number.

use super::messages::{InternedData, InternedName, SourceLocation};
use std::collections::HashMap;

/// The largest number of names of one kind that are remembered. This bounds the memory for names. Once it is reached, a
/// new name is written each time it occurs, each time with a new number. (Log messages with numbers in them make many
/// names.)
const NAMES_MAX: usize = 1 << 16;

/// The numbers of all names, and the new names that the next packet must define.
#[derive(Default)]
pub(super) struct Interner {
    categories: Names,
    events: Names,
    annotations: Names,
    sources: HashMap<(String, u32), u64>,
    new_sources: Vec<SourceLocation>,
}

#[derive(Default)]
struct Names {
    known: HashMap<String, u64>,
    last_iid: u64,
    new: Vec<InternedName>,
}

impl Names {
    fn iid(&mut self, name: &str) -> u64 {
        if let Some(iid) = self.known.get(name) {
            return *iid;
        }
        self.last_iid += 1;
        if self.known.len() < NAMES_MAX {
            self.known.insert(name.to_owned(), self.last_iid);
        }
        self.new.push(InternedName { iid: Some(self.last_iid), name: Some(name.to_owned()) });
        self.last_iid
    }
}

impl Interner {
    pub(super) fn category(&mut self, name: &str) -> u64 {
        self.categories.iid(name)
    }

    pub(super) fn event(&mut self, name: &str) -> u64 {
        self.events.iid(name)
    }

    pub(super) fn annotation(&mut self, name: &str) -> u64 {
        self.annotations.iid(name)
    }

    pub(super) fn source(&mut self, file: &str, line: u32) -> u64 {
        if let Some(iid) = self.sources.get(&(file.to_owned(), line)) {
            return *iid;
        }
        let iid = self.sources.len() as u64 + 1;
        self.sources.insert((file.to_owned(), line), iid);
        let line_number = (line > 0).then_some(line);
        self.new_sources.push(SourceLocation { iid: Some(iid), file_name: Some(file.to_owned()), line_number });
        iid
    }

    /// Returns the names that are new since the last packet.
    pub(super) fn take(&mut self) -> Option<InternedData> {
        let data = InternedData {
            event_categories: std::mem::take(&mut self.categories.new),
            event_names: std::mem::take(&mut self.events.new),
            debug_annotation_names: std::mem::take(&mut self.annotations.new),
            source_locations: std::mem::take(&mut self.new_sources),
        };
        (data != InternedData::default()).then_some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_once() {
        let mut names = Interner::default();
        assert_eq!((names.event("a"), names.event("b"), names.event("a"), names.category("a")), (1, 2, 1, 1));
        let data = names.take().unwrap();
        assert_eq!((data.event_names.len(), data.event_categories.len()), (2, 1));
        assert_eq!((names.event("a"), names.take()), (1, None));
    }
}
