//! The names of a descriptor's extension words.

use std::borrow::Cow;

/// Number of extension words of a descriptor.
const WORDS: usize = 4;
/// The index and the name of the extension word that holds the id of the span in which an event was recorded.
const SPAN: (usize, &str) = (3, "span");

/// The meaning of an extension word's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtWordKind {
    /// A number of the program's own choice.
    #[default]
    Number,
    /// The seqno of an event of the same ring. The word is 0 if it names no event.
    Seqno,
    /// An index that counts from 0. The word holds the index plus one, or 0 if there is no index.
    Index,
}

impl ExtWordKind {
    /// Returns the name of the kind. Schema text contains this name, and a [key](ExtWord::key) ends with it. Returns
    /// `None` for `Number`: this kind is written without a name.
    pub(in crate::schema) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Number => None,
            Self::Seqno => Some("seqno"),
            Self::Index => Some("index"),
        }
    }
}

macro_rules! reserved_keys {
    ($first:literal $(, $key:literal)*) => {
        /// Keys that the lines of an output have already: the lines of `eventring watch --json`, and those of typed
        /// events in the export format `jsonl`. A line shows no extension word under such a key.
        const RESERVED_KEYS: &[&str] = &[$first $(, $key)*];
        const RESERVED_KEY: &str = concat!(
            "JSON output has another key of this name, so it could not show the word: choose another name, none of ",
            $first $(, ", ", $key)*
        );
    };
}

reserved_keys!(
    "code",
    "content_ext",
    "expired",
    "ext",
    "gap",
    "made_anew",
    "malformed",
    "name",
    "payload",
    "process",
    "ring",
    "seqno",
    "size",
    "span",
    "time_ns",
    "ts_ns",
    "type"
);

/// Returns the reason why a program may not give an extension word this name and kind. Returns `None` if it may. The
/// derives call this.
#[must_use]
pub const fn word_problem(name: &str, kind: ExtWordKind) -> Option<&'static str> {
    // The key of a word of another kind ends with the name of the kind. No reserved key ends so.
    if !matches!(kind, ExtWordKind::Number) {
        return None;
    }
    let mut i = 0;
    while i < RESERVED_KEYS.len() {
        if super::segment::is_segment(RESERVED_KEYS[i], name, 0, name.len()) {
            return Some(RESERVED_KEY);
        }
        i += 1;
    }
    None
}

/// The name and kind of an extension word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtWord {
    name: Cow<'static, str>,
    kind: ExtWordKind,
}

impl ExtWord {
    /// Describes a word.
    #[must_use]
    pub const fn new(name: &'static str, kind: ExtWordKind) -> Self {
        Self { name: Cow::Borrowed(name), kind }
    }

    /// Describes a word that a schema text names.
    pub(in crate::schema) fn of_text(name: String, kind: ExtWordKind) -> Self {
        Self { name: Cow::Owned(name), kind }
    }

    /// Returns the name of the word. `record!` and schema text use this name.
    #[must_use]
    pub const fn name(&self) -> &str {
        match &self.name {
            Cow::Borrowed(name) => name,
            Cow::Owned(name) => name.as_str(),
        }
    }

    /// Returns the kind of number that the word holds.
    #[must_use]
    pub const fn kind(&self) -> ExtWordKind {
        self.kind
    }

    /// Returns the key under which output for programs shows the word's [value](Self::value). The key is the word's
    /// name. If the word's kind is not a plain number, the kind follows the name. For a word `block` of the kind seqno,
    /// the key is `block_seqno`.
    #[must_use]
    pub fn key(&self) -> Cow<'_, str> {
        match self.kind.name() {
            None => self.name().into(),
            Some(kind) => format!("{}_{kind}", self.name).into(),
        }
    }

    /// Returns true if lines of JSON cannot show the word, because they have another key of that name. The derive
    /// refuses such names, but the schema text of a ring may have them.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_reserved(&self) -> bool {
        word_problem(self.name(), self.kind).is_some()
    }

    /// Returns the value that `word`, the content of this extension word, stands for. For an index, this is `word`
    /// minus one, or `None` if `word` is 0.
    #[must_use]
    pub const fn value(&self, word: u64) -> Option<u64> {
        match self.kind {
            ExtWordKind::Number | ExtWordKind::Seqno => Some(word),
            ExtWordKind::Index => word.checked_sub(1),
        }
    }
}

/// The extension words that a schema names.
///
/// The attribute `#[event(ext(0 = order: seqno, 1 = line: index))]`, on an enum that derives
/// [`EventType`](crate::schema::EventType), names extension words. Word 3 is named `span` by default, and holds the id of the
/// span in which an event was recorded. The attribute `no_span` switches this default off. The derive refuses names of
/// keys that JSON output has already, such as `size` and `payload`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtWords([Option<ExtWord>; WORDS]);

impl ExtWords {
    /// The names of a schema that names no words.
    pub const NONE: Self = Self([None, None, None, None]);
    /// The index of the word with the span id.
    pub const SPAN_INDEX: usize = SPAN.0;
    /// The names for a schema that names only word 3, `span`.
    pub const SPAN: Self = Self([None, None, None, Some(ExtWord::new(SPAN.1, ExtWordKind::Number))]);

    /// Names the four words.
    #[must_use]
    pub const fn new(words: [Option<ExtWord>; WORDS]) -> Self {
        Self(words)
    }

    /// Returns the index of the word of that name.
    #[must_use]
    pub const fn index_of(&self, name: &str) -> Option<usize> {
        let mut index = 0;
        while index < WORDS {
            if let Some(word) = &self.0[index]
                && super::segment::is_segment(word.name(), name, 0, name.len())
            {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    /// Returns the indices and descriptions of the named words.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &ExtWord)> {
        self.0.iter().enumerate().filter_map(|(index, word)| Some((index, word.as_ref()?)))
    }

    /// Returns the [value](ExtWord::value) of the word with this name, or with this [key](ExtWord::key). Returns `None`
    /// if there is no such word, or if it has no value.
    #[must_use]
    pub fn value_of(&self, name: &str, content_ext: [u64; WORDS]) -> Option<u64> {
        let (index, word) = self.iter().find(|(_, word)| word.name() == name || word.key() == name)?;
        word.value(content_ext[index])
    }

    /// Returns the named words except `span`.
    pub fn iter_own(&self) -> impl Iterator<Item = (usize, &ExtWord)> {
        self.iter().filter(|(index, word)| (*index, word.name()) != SPAN)
    }

    /// Returns the id of the span in which an event with these extension words was recorded. Returns 0 if the event was
    /// recorded in no span, or if the schema has no word `span`.
    #[must_use]
    pub const fn span_id(&self, content_ext: [u64; WORDS]) -> u64 {
        if self.has_span() { content_ext[SPAN.0] } else { 0 }
    }

    /// Returns true if word 3 is named `span`, so that the events carry the id of the span in which they were
    /// recorded.
    #[must_use]
    pub const fn has_span(&self) -> bool {
        matches!(self.index_of(SPAN.1), Some(index) if index == SPAN.0)
    }

    /// Returns the named words except `span`, as bits: bit *n* is set if word *n* has a name other than `span`.
    #[doc(hidden)]
    #[must_use]
    pub const fn own_bits(&self) -> u8 {
        let (mut bits, mut index) = (0, 0);
        while index < WORDS {
            bits |= (self.0[index].is_some() as u8) << index;
            index += 1;
        }
        if self.has_span() { bits & !(1 << SPAN.0) } else { bits }
    }

    /// Adds the name of a word that schema text states. Ignores a name that contradicts an earlier name. This is no
    /// error, because names of words stand in comment lines of schema text, and a comment may hold anything.
    pub(in crate::schema) fn add(&mut self, index: usize, word: ExtWord) {
        let is_misplaced_span = word.name() == SPAN.1 && (index, word.kind()) != (SPAN.0, ExtWordKind::Number);
        if is_misplaced_span || self.index_of(word.name()).is_some() {
            return;
        }
        if let Some(free @ None) = self.0.get_mut(index) {
            *free = Some(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reserved_key_ends_like_the_key_of_a_word_that_is_no_plain_number() {
        for key in RESERVED_KEYS {
            assert!(!key.ends_with("_seqno") && !key.ends_with("_index"), "{key}");
            assert!(word_problem(key, ExtWordKind::Number).unwrap().contains(key));
            assert_eq!(word_problem(key, ExtWordKind::Seqno), None);
        }
        assert_eq!(word_problem("account_index", ExtWordKind::Number), None);
    }
}
