//! The names of fields in metadata.
//!
//! A name of the metadata has only ASCII letters, digits and `_`. It begins with an additional `_`, so that it is no
//! keyword and begins with no digit. Readers remove this `_`. (LTTng writes names in the same way.)

use std::collections::{HashMap, HashSet};

/// The names of the fields of one struct.
#[derive(Default)]
pub(super) struct Identifiers {
    taken: HashSet<String>,
    /// For each name that was wanted more than once, the number at the end of the last name that was given instead.
    numbers: HashMap<String, u64>,
}

impl Identifiers {
    /// Adds a field. In its name, each character that metadata cannot have becomes `_`. If the struct has such a name
    /// already, the name gets a number at its end: `_2`, `_3` and so on.
    pub(super) fn add(&mut self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut wanted: String = std::iter::once('_').chain(name.chars().map(plain)).collect();
        if name.is_empty() {
            wanted.push('_');
        }
        if self.taken.insert(wanted.clone()) {
            return wanted;
        }
        let number = self.numbers.entry(wanted.clone()).or_insert(1);
        loop {
            *number += 1;
            let numbered = format!("{wanted}_{number}");
            if self.taken.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_names_become_different_identifiers() {
        let mut identifiers = Identifiers::default();
        let names = ["struct", "http.method", "http_method", "http_method_2", "http-method", "", "é", "9", "_"];
        let made = names.map(|name| identifiers.add(name));
        let expected = [
            "_struct", "_http_method", "_http_method_2", "_http_method_2_2", "_http_method_3", "__", "___2", "_9", "___3",
        ];
        assert_eq!(made, expected);
    }
}
