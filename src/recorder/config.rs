//! What a recorder is told: what its events are.

use crate::layout::extension::{CONTENT_NAME_BYTES, SCHEMA_TEXT_MAX_BYTES};

/// What the events of a ring are. Its content type and schema hash go into the header where every reader looks; the
/// name and the schema text go into the extension, so that tools can decode a ring they have never seen.
///
/// `ContentDescription::of::<MyEvents>()` makes it from an event-type enum.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentDescription {
    pub(super) content_type: u16,
    pub(super) content_name: String,
    pub(super) schema_hash: [u8; 32],
    pub(super) schema_text: String,
}

impl ContentDescription {
    /// Content type number (1 TEST, 2 EXEC, 3 PERF, own ones from 256) and name (at most 64 bytes are kept). The schema
    /// hash is zero and the text empty until set.
    pub fn new(content_type: u16, content_name: impl Into<String>) -> Self {
        let mut content_name = content_name.into();
        truncate_at_char(&mut content_name, CONTENT_NAME_BYTES);
        Self { content_type, content_name, schema_hash: [0; 32], schema_text: String::new() }
    }

    /// Sets the schema hash.
    #[must_use]
    pub fn schema_hash(mut self, hash: [u8; 32]) -> Self {
        self.schema_hash = hash;
        self
    }

    /// Sets the schema text (see `docs/FORMAT.md`). A text of more than 2,031,616 bytes does not fit the header section
    /// and is left out.
    #[must_use]
    pub fn schema_text(mut self, text: impl Into<String>) -> Self {
        self.schema_text = text.into();
        if self.schema_text.len() > SCHEMA_TEXT_MAX_BYTES {
            self.schema_text.clear();
        }
        self
    }

    /// The content type.
    pub fn content_type(&self) -> u16 {
        self.content_type
    }

    /// The content type's name.
    pub fn content_name(&self) -> &str {
        &self.content_name
    }
}

/// Without the schema text, which is long.
impl std::fmt::Debug for ContentDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentDescription")
            .field("content_type", &self.content_type)
            .field("content_name", &self.content_name)
            .finish_non_exhaustive()
    }
}

/// Keeps at most `bytes` bytes, whole characters only.
pub(super) fn truncate_at_char(text: &mut String, bytes: usize) {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}
