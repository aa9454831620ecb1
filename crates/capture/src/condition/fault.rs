//! The error type of conditions.

use std::fmt;

/// Length to which the found text is cut in an error, in bytes.
const FOUND_BYTES_MAX: usize = 40;

/// An error in an expression. Its text has the column, what was found and what was expected, and shows the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConditionError {
    /// The line of the expression that has the fault.
    line: String,
    /// The column of the fault in characters, from 1.
    column: usize,
    message: String,
}

impl ConditionError {
    /// Makes the error that something was expected at the byte `at` of the expression.
    pub(crate) fn expected(text: &str, at: usize, expected: &str) -> Self {
        let rest = text.get(at..).unwrap_or("").trim_end();
        let message = match rest {
            "" => format!("the expression ends, expected {expected}"),
            rest => format!("found `{}`, expected {expected}", &rest[..rest.floor_char_boundary(FOUND_BYTES_MAX)]),
        };
        Self::new(text, at, message)
    }

    /// Makes an error about the byte `at` of the expression.
    pub fn new(text: &str, at: usize, message: String) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next().unwrap_or("");
        // Tabs and other characters without a width would move the mark.
        let line = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { line, column: before[start..].chars().count() + 1, message }
    }

    /// Returns the column of the fault in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "column {}: {}", self.column, self.message)?;
        writeln!(f, "  {}", self.line)?;
        write!(f, "  {:>column$}", '^', column = self.column)
    }
}

impl std::error::Error for ConditionError {}
