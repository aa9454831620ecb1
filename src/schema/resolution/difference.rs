//! The differences between two versions of a schema.

use std::fmt;

/// The largest number of differences that are kept, of each kind. The schema text of a ring may have very many.
const KEPT_MAX: usize = 100;
/// The largest number of differences that a message names.
const NAMED_MAX: usize = 6;

/// A difference between the schema of a ring and the schema of its reader.
///
/// `{}` names the event or field, says what differs, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaDifference {
    text: String,
    is_compatible: bool,
}

impl SchemaDifference {
    /// Returns true if the ring's events can be read in spite of the difference, with
    /// [`ReaderOptions::compatible`](crate::reader::ReaderOptions::compatible).
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.is_compatible
    }
}

impl fmt::Display for SchemaDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The differences that were found.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    incompatible: OfKind,
    compatible: OfKind,
}

/// Differences of one kind, and the number of those that were not kept.
#[derive(Debug, Default)]
struct OfKind {
    list: Vec<SchemaDifference>,
    left_out: usize,
}

impl OfKind {
    fn add(&mut self, text: fmt::Arguments<'_>, is_compatible: bool) {
        match self.list.len() < KEPT_MAX {
            true => self.list.push(SchemaDifference { text: text.to_string(), is_compatible }),
            false => self.left_out += 1,
        }
    }
}

impl Differences {
    /// Adds a difference in spite of which the events can be read.
    pub(super) fn allow(&mut self, text: fmt::Arguments<'_>) {
        self.compatible.add(text, true);
    }

    /// Adds a difference because of which the events cannot be read.
    pub(super) fn forbid(&mut self, text: fmt::Arguments<'_>) {
        self.incompatible.add(text, false);
    }

    pub(crate) fn are_compatible(&self) -> bool {
        self.incompatible.list.is_empty()
    }

    /// Returns the differences, those that are not compatible first.
    pub(crate) fn into_list(self) -> Vec<SchemaDifference> {
        [self.incompatible.list, self.compatible.list].concat()
    }
}

impl fmt::Display for Differences {
    /// Prints those that are not compatible. If there are none, prints the others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OfKind { list, left_out } = if self.are_compatible() { &self.compatible } else { &self.incompatible };
        if list.is_empty() {
            return f.write_str("only the order of fields, or names of types and domains, differ");
        }
        for (i, difference) in list.iter().take(NAMED_MAX).enumerate() {
            write!(f, "{}{difference}", if i > 0 { "; " } else { "" })?;
        }
        match list.len().saturating_sub(NAMED_MAX) + left_out {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
