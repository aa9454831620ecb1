//! The names of fields in metadata.
//!
//! A name in the metadata has only ASCII letters, digits and `_`. Each name begins with an additional `_`, because a
//! keyword or a leading digit is not valid. Readers remove this `_`.

use std::collections::{HashMap, HashSet};

/// The names of the fields of one struct.
///
/// babeltrace2 removes the `_` from one field after the other, and refuses a name that another field has at that time.
/// So no name may be that of another field, with or without the `_` of either.
#[derive(Default)]
pub(super) struct Identifiers {
    /// The names, each with and without its additional `_`.
    taken: HashSet<String>,
    /// For each name that was wanted more than once, the number at the end of the last name that was given instead.
    numbers: HashMap<String, u64>,
}

impl Identifiers {
    /// Adds a field. In its name, each character that metadata cannot have becomes `_`. If the name is taken then, it
    /// gets a number at its end: `_2`, `_3` and so on.
    pub(super) fn add(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let wanted: String = if name.is_empty() { "_".into() } else { name.chars().map(plain).collect() };
        if let Some(identifier) = self.take(&wanted) {
            return identifier;
        }
        let mut number = self.numbers.get(&wanted).copied().unwrap_or(1);
        loop {
            number += 1;
            if let Some(identifier) = self.take(&format!("{wanted}_{number}")) {
                self.numbers.insert(wanted, number);
                return identifier;
            }
        }
    }

    /// Takes a name, and returns it with its additional `_`. Returns `None` if the name is taken.
    fn take(&mut self, name: &str) -> Option<String> {
        let identifier = format!("_{name}");
        if self.taken.contains(name) || self.taken.contains(&identifier) {
            return None;
        }
        self.taken.extend([name.to_owned(), identifier.clone()]);
        Some(identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_names_become_different_identifiers() {
        let mut identifiers = Identifiers::default();
        let names = ["struct", "http.method", "http_method", "http_method_2", "http-method", "", "é", "9", "_a", "a"];
        let made = names.map(|name| identifiers.add(name));
        let expected = [
            "_struct",
            "_http_method",
            "_http_method_2",
            "_http_method_2_2",
            "_http_method_3",
            "__",
            "___2",
            "_9",
            "__a",
            "_a_2",
        ];
        assert_eq!(made, expected);
    }
}
