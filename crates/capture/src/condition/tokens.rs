//! The words of an expression, and their positions in it.

use super::ConditionError;
use eventring::internal::quoted::{take_name, take_quoted, write_name, write_quoted};
use std::borrow::Cow;
use std::fmt;

/// The words of an expression that were not taken yet.
#[derive(Clone)]
pub struct Tokens<'t> {
    text: &'t str,
    at: usize,
    has_bare_fields: bool,
    terms: &'static str,
}

impl<'t> Tokens<'t> {
    /// Begins at the first word of `text`.
    pub fn new(text: &'t str) -> Self {
        let mut tokens = Self { text, at: 0, has_bare_fields: false, terms: "" };
        tokens.skip_space();
        tokens
    }

    /// Says which terms there are, in words, and whether a name that is no word of the language is that of a field.
    pub(crate) fn with_terms(self, terms: &'static str, has_bare_fields: bool) -> Self {
        Self { terms, has_bare_fields, ..self }
    }

    pub(crate) fn terms(&self) -> &'static str {
        self.terms
    }

    pub(crate) fn has_bare_fields(&self) -> bool {
        self.has_bare_fields
    }

    /// Returns the place of the next word in bytes.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Returns the text that was not taken yet.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Takes `sign` if it comes next.
    pub fn take(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.advance(sign.len());
        }
        is_next
    }

    /// Takes the first of `signs` that comes next, and returns its index.
    pub fn take_one_of(&mut self, signs: &[&str]) -> Option<usize> {
        signs.iter().position(|sign| self.take(sign))
    }

    /// Returns the next name without taking it: letters, digits, dots and underscores, and the sign in `size#2`, as the
    /// second field of one name is called.
    pub fn name(&self) -> &'t str {
        let end = self.rest().find(|c| !is_plain(c));
        &self.rest()[..end.unwrap_or(self.rest().len())]
    }

    /// Takes the path of a field after `before`, which comes next; parts of it may be quoted. The path is empty if there
    /// is none.
    pub(crate) fn path(&mut self, before: &str) -> Result<Cow<'t, str>, ConditionError> {
        let (path, rest) = take_name(&self.rest()[before.len()..], is_plain).ok_or_else(|| self.no_end(self.at))?;
        self.advance(self.rest().len() - rest.len());
        Ok(path)
    }

    /// Returns true if a name comes next of which a part is quoted.
    pub(crate) fn has_quoted_name(&self) -> bool {
        self.rest()[self.name().len()..].starts_with('"')
    }

    /// Takes the name `name` if it comes next as a whole.
    pub fn take_name(&mut self, name: &str) -> bool {
        self.name() == name && self.take(name)
    }

    /// Takes a word up to a space or one of `ends`, or a quoted text.
    pub fn word(&mut self, ends: &[char], expected: &str) -> Result<Word<'t>, ConditionError> {
        let place = self.at;
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        if self.rest().starts_with('=') {
            return Err(
                self.expected(&format!("{expected}, after one `=` (a text that begins with `=` in quotation marks)"))
            );
        }
        let end = self.rest().find(|c: char| c.is_whitespace() || c == '"' || ends.contains(&c));
        let word = &self.rest()[..end.unwrap_or(self.rest().len())];
        if word.is_empty() {
            return Err(self.expected(expected));
        }
        self.advance(word.len());
        Ok(Word { text: word.into(), is_quoted: false, place })
    }

    fn quoted(&mut self) -> Result<Word<'t>, ConditionError> {
        let place = self.at;
        let (text, rest) = take_quoted(self.rest()).ok_or_else(|| self.no_end(place))?;
        self.advance(self.rest().len() - rest.len());
        Ok(Word { text: text.into(), is_quoted: true, place })
    }

    fn no_end(&self, place: usize) -> ConditionError {
        self.fault(place, "this quoted text has no end; write a quotation mark after it")
    }

    /// Returns the error that something else was expected here.
    pub fn expected(&self, expected: &str) -> ConditionError {
        self.expected_at(self.at, expected)
    }

    /// Returns the error that something else was expected at an earlier place.
    pub fn expected_at(&self, place: usize, expected: &str) -> ConditionError {
        ConditionError::expected(self.text, place, expected)
    }

    /// Returns an error about a place.
    pub(crate) fn fault(&self, place: usize, message: &str) -> ConditionError {
        ConditionError::new(self.text, place, message.to_owned())
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip_space();
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }
}

/// A word of an expression.
pub struct Word<'t> {
    pub text: Cow<'t, str>,
    pub is_quoted: bool,
    pub place: usize,
}

/// Writes a text so that it is read as one word.
pub fn write_word(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    if text.is_empty()
        || text.starts_with('=')
        || text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | '\\'))
    {
        write_quoted(f, text)
    } else {
        f.write_str(text)
    }
}

/// Writes the path of a field as it is typed: in quotation marks if it has other characters than those of names.
pub fn write_path(f: &mut dyn fmt::Write, path: &str) -> fmt::Result {
    write_name(f, path, is_plain)
}

/// Returns true if the character needs no quotation marks in a name.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '#')
}
