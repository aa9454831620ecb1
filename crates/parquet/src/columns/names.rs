//! Names of columns that every reader accepts.

use arrow_schema::Field;
use std::collections::HashSet;

/// The names of a table's columns so far. DuckDB does not distinguish names by case, so no two names do.
#[derive(Default)]
pub(crate) struct ColumnNames {
    lower_case: HashSet<String>,
}

impl ColumnNames {
    /// Notes the names that a table has already.
    pub(crate) fn from_fields<'f>(fields: impl IntoIterator<Item = &'f Field>) -> Self {
        Self { lower_case: fields.into_iter().map(|field| field.name().to_lowercase()).collect() }
    }

    /// Returns the name for a new column: `name` with `_` for each control character, because Arrow takes no zero
    /// bytes. If another column has this name, `prefix` comes before it, and then a number after it.
    pub(crate) fn unique(&mut self, name: &str, prefix: &str) -> String {
        let plain = name.replace(char::is_control, "_");
        let mut unique = plain.clone();
        let mut count = 0;
        while !self.lower_case.insert(unique.to_lowercase()) {
            count += 1;
            unique = match count {
                1 => format!("{prefix}{plain}"),
                _ => format!("{prefix}{plain}_{count}"),
            };
        }
        unique
    }
}
