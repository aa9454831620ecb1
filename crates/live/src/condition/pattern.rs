//! Patterns of names.

use std::fmt;

/// A pattern of a name: a text in which each `*` stands for any characters, also none.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NamePattern {
    text: String,
}

impl NamePattern {
    /// Makes a pattern.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Returns true if the whole name fits the pattern.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        let Some((first, rest)) = self.text.split_once('*') else { return self.text == name };
        let Some(mut name) = name.strip_prefix(first) else { return false };
        let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in between.split('*') {
            let Some(at) = name.find(part) else { return false };
            name = &name[at + part.len()..];
        }
        name.ends_with(last)
    }

    /// Returns true if a span fits: by its name, or by its target and its name (`http_service::query`).
    #[must_use]
    pub fn fits_span(&self, target: &str, name: &str) -> bool {
        self.fits(name) || self.text.contains("::") && self.fits(&format!("{target}::{name}"))
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name if the pattern fits only one.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        (!self.text.contains('*')).then_some(self.text.as_str())
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::tokens::write_word(f, &self.text)
    }
}
