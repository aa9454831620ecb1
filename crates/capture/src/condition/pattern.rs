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
        match self.exact() {
            Some(wanted) => names_span(wanted, target, name),
            None => self.fits(name) || self.text.contains("::") && self.fits(&format!("{target}::{name}")),
        }
    }

    /// Returns true if a typed event fits: by its name in the schema (`ORDER_PLACED`), by its name in the program's
    /// source (`OrderPlaced`), or by its code, if this is known.
    #[must_use]
    pub fn fits_typed(&self, name: &str, code: Option<u16>) -> bool {
        fn letters(name: &str) -> impl Iterator<Item = u8> {
            name.bytes().filter(|letter| *letter != b'_').map(|letter| letter.to_ascii_lowercase())
        }
        self.fits(name)
            || self.is_source_name() && letters(&self.text).eq(letters(name))
            || code.is_some() && self.code() == code
    }

    /// Returns true if this may be the name of a typed event in the program's source. Case and underscores do not
    /// matter then.
    pub(super) fn is_source_name(&self) -> bool {
        self.text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
            && self.text.bytes().any(|letter| letter.is_ascii_lowercase())
    }

    /// Returns the code of typed events that this may be.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.text.parse().ok()
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

/// Returns true if a user who writes `wanted` means a span: its name, or its target and its name (`shop::db::query`).
///
/// ```
/// use eventring_capture::names_span;
///
/// assert!(names_span("query", "shop::db", "query") && names_span("shop::db::query", "shop::db", "query"));
/// assert!(!names_span("db::query", "shop::db", "query"));
/// ```
#[must_use]
pub fn names_span(wanted: &str, target: &str, name: &str) -> bool {
    wanted.strip_suffix(name).is_some_and(|before| before.is_empty() || before.strip_suffix("::") == Some(target))
}
