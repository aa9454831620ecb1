//! The words of an expression, and their places.

use super::ConditionError;
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
        let end = self.rest().find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '#')));
        &self.rest()[..end.unwrap_or(self.rest().len())]
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
        let (mut text, mut is_escaped) = (String::new(), false);
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                // As `watch` prints texts.
                _ if is_escaped => {
                    text.push(match c {
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        '0' => '\0',
                        other => other,
                    });
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                '"' => {
                    self.advance(at + 1);
                    return Ok(Word { text: text.into(), is_quoted: true, place });
                }
                c => text.push(c),
            }
        }
        Err(ConditionError::at(self.text, place, "this quoted text has no end; write a quotation mark after it".into()))
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
        ConditionError::at(self.text, place, message.to_owned())
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
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | '\\')) {
        write_quoted(f, text)
    } else {
        f.write_str(text)
    }
}

/// Writes a text in quotation marks.
pub(crate) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    f.write_str("\"")
}
