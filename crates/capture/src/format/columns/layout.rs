//! The columns of a ring. The layout only chooses forms that take fewer bytes. Reading needs no layout, because each
//! block lists its columns.

use crate::format::values::tables::{RecorderTables, RingNames};
use crate::format::values::typed::TypedNames;
use eventring::files::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use eventring::internal::ext_words;
use eventring::schema::{ExtWords, SchemaModel};
use std::sync::Arc;

/// The largest number of fields of a payload that become columns. Further fields are left to the rest of the payload.
pub(super) const FIELDS_MAX: usize = 256;
/// The largest size of all fields of a payload that become columns.
pub(super) const FIELDS_BYTES_MAX: usize = 1 << 16;

/// The columns of a ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct RingLayout {
    /// For each extension word, true if it holds ids that come again soon, such as span ids.
    pub(super) id_words: [bool; 4],
    /// The extension word that is nearly always the same for events with the same id in the first word of `id_words`.
    pub(super) word_of_id: Option<usize>,
    /// True for a perf ring: word 2 holds a call site id and a thread id.
    pub(super) is_perf: bool,
    /// For each event type with a known payload, the widths of its fields in bytes. In ascending order of types.
    fields: Vec<(u16, Vec<usize>)>,
    /// The names of the events' fields, if they are known. Without them, blocks have no column of values.
    pub(crate) names: Option<RingNames>,
}

impl RingLayout {
    /// Returns the layout of a ring with this content type and schema.
    pub(crate) fn of_ring(content_type: u16, schema_hash: [u8; 32], schema_text: &str) -> Self {
        let text = Some(schema_text).filter(|text| !text.is_empty());
        let model = SchemaModel::of_ring(content_type, schema_hash, text).ok();
        let words = ext_words(content_type, model.as_deref());
        let (mut id_words, mut word_of_id) = ([false; 4], None);
        let is_perf = content_type == CONTENT_TYPE_PERF;
        if is_perf {
            // The span of the event, and its parent.
            id_words = [true, true, false, false];
            // The call site of the span, and the thread.
            word_of_id = Some(2);
        } else if words.has_span() {
            id_words[ExtWords::SPAN_INDEX] = true;
        }
        let events = model.as_deref().map(SchemaModel::events).unwrap_or_default();
        let fields = events.iter().filter_map(|event| Some((event.code(), columns(model.as_deref()?, event.code())?)));
        let fields = fields.collect();
        // Most values of execution events are hashes and amounts. Keys of them take longer than the rest of a capture.
        let has_names = !is_perf && content_type != CONTENT_TYPE_EXEC;
        let typed = model.filter(|_| has_names).map(|model| TypedNames::new(model.into_owned(), words));
        let names = typed.map(|names| RingNames::Typed(Arc::new(names)));
        Self { id_words, word_of_id, is_perf, fields, names }
    }

    /// Gives the layout of a perf ring the tables of its recorder.
    pub(crate) fn with_tables(mut self, tables: impl FnOnce() -> RecorderTables) -> Self {
        if self.is_perf {
            self.names = Some(RingNames::Perf(Arc::new(tables())));
        }
        self
    }

    /// Returns the widths of the fields of an event type, or an empty list if nothing is known of its payload.
    pub(super) fn fields(&self, event_type: u16) -> &[usize] {
        let found = self.fields.binary_search_by_key(&event_type, |(code, _)| *code);
        found.map_or(&[], |index| &self.fields[index].1)
    }
}

/// Returns the widths of the first fields of an event's payload. Returns `None` if the payload has no fields.
fn columns(model: &SchemaModel, code: u16) -> Option<Vec<usize>> {
    let mut widths = model.field_widths(code);
    widths.truncate(FIELDS_MAX);
    let mut bytes = 0;
    let kept = widths.iter().take_while(|width| {
        bytes += **width;
        bytes <= FIELDS_BYTES_MAX
    });
    let kept = kept.count();
    widths.truncate(kept);
    Some(widths).filter(|widths| !widths.is_empty())
}
