//! Which schema a ring file has.

use std::borrow::Cow;

use crate::layout::header::CONTENT_TYPE_EXEC;

use super::model::{SchemaModel, SchemaTextError, SchemaTextErrorKind};

#[cfg(feature = "macros")]
use super::{EventType as _, Schema, exec::ExecEvent, test::TestEvent};

/// The schema of this crate with that content type and hash: TEST or EXEC.
#[cfg(feature = "macros")]
#[must_use]
pub fn published_schema(content_type: u16, schema_hash: [u8; 32]) -> Option<&'static Schema> {
    [TestEvent::schema(), ExecEvent::schema()]
        .into_iter()
        .find(|schema| schema.content_type() == content_type && schema.hash() == schema_hash)
}

/// Whether the events of a ring with that content type carry the id of the span in which they were recorded, in word
/// [`SPAN_WORD`](super::SPAN_WORD) of their content extension. `model` is what is known of its schema. Execution events do in every version: who does not know of spans leaves the word 0.
#[must_use]
pub fn carries_span(content_type: u16, model: Option<&SchemaModel>) -> bool {
    content_type == CONTENT_TYPE_EXEC || model.is_some_and(SchemaModel::carries_span)
}

impl SchemaModel {
    /// The schema of a ring file: `published_schema` if its header names one of these (files of other implementations carry no text),
    /// else its schema text, if that is of the content type and hash that the header states.
    ///
    /// # Errors
    /// There is no text, it cannot be read, or it belongs to another schema.
    pub fn of_ring(
        content_type: u16,
        schema_hash: [u8; 32],
        text: Option<&str>,
    ) -> Result<Cow<'static, Self>, SchemaTextError> {
        #[cfg(feature = "macros")]
        if let Some(Ok(model)) = published_schema(content_type, schema_hash).map(Schema::model) {
            return Ok(Cow::Borrowed(model));
        }
        let not_of_this_ring =
            |problem: String| SchemaTextError { kind: SchemaTextErrorKind::NotOfThisRing, line: 0, problem };
        let Some(text) = text else {
            let problem =
                format!("the ring of content type {content_type} carries none, and its schema is not published");
            return Err(not_of_this_ring(problem));
        };
        let model = Self::parse(text)?;
        if (model.content_type, model.schema_hash) != (content_type, schema_hash) {
            let problem = format!(
                "it describes content type {} with another schema hash than the ring, which has content type {content_type}",
                model.content_type
            );
            return Err(not_of_this_ring(problem));
        }
        Ok(Cow::Owned(model))
    }
}
