//! The description of a recorder's events.

use crate::layout::extension::{CONTENT_NAME_BYTES, SCHEMA_TEXT_MAX_BYTES};

/// Description of the events of a ring. The content type and the schema hash are stored in the ring's fixed header,
/// which every reader checks. The name and the schema text are stored in the header extension. With them a tool can
/// decode the events of a ring even if it was built without their types.
///
/// `ContentDescription::from_event_type::<MyEvents>()` makes the description from an enum of event types.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentDescription {
    pub(super) content_type: u16,
    pub(super) content_name: String,
    pub(super) schema_hash: [u8; 32],
    pub(super) schema_text: String,
    /// The numbers and names of the schema's domains, by ascending number.
    pub(super) domains: Vec<(u8, &'static str)>,
}

impl ContentDescription {
    /// Creates a description from a content type number and a name. The number is 1 for TEST, 2 for EXEC and 3 for
    /// PERF; programs use numbers from 256 for their own events. A name of more than 64 bytes is cut. The schema hash
    /// is zero until [`Self::schema_hash`] sets it, and the schema text is empty until [`Self::schema_text`] sets it.
    pub fn new(content_type: u16, content_name: impl Into<String>) -> Self {
        let mut content_name = content_name.into();
        truncate_at_char(&mut content_name, CONTENT_NAME_BYTES);
        Self { content_type, content_name, schema_hash: [0; 32], schema_text: String::new(), domains: Vec::new() }
    }

    /// Sets the schema hash.
    #[must_use]
    pub fn schema_hash(mut self, hash: [u8; 32]) -> Self {
        self.schema_hash = hash;
        self
    }

    /// Sets the schema text (see `docs/FORMAT.md`). A text of more than 2,031,616 bytes does not fit into the header
    /// section. Instead of such a text, an empty text is set.
    #[must_use]
    pub fn schema_text(mut self, text: impl Into<String>) -> Self {
        self.schema_text = text.into();
        if self.schema_text.len() > SCHEMA_TEXT_MAX_BYTES {
            self.schema_text.clear();
        }
        self
    }

    /// Sets the numbers and names of the schema's domains.
    pub(crate) fn domains(mut self, domains: impl Iterator<Item = (u8, &'static str)>) -> Self {
        self.domains = domains.collect();
        self
    }

    /// Returns the content type.
    pub fn content_type(&self) -> u16 {
        self.content_type
    }

    /// Returns the content type's name.
    pub fn content_name(&self) -> &str {
        &self.content_name
    }
}

/// Debug output without the schema text, which is long.
impl std::fmt::Debug for ContentDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentDescription")
            .field("content_type", &self.content_type)
            .field("content_name", &self.content_name)
            .finish_non_exhaustive()
    }
}

/// Cuts the text to at most `bytes` bytes, at the end of a character.
pub(super) fn truncate_at_char(text: &mut String, bytes: usize) {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}
