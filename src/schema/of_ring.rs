//! Reading the schema of a ring file.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use super::description::ext_words::ExtWords;
use super::dynamic::model::{SchemaModel, SchemaTextError, SchemaTextErrorKind};
use super::schema_text::schema::Schema;

#[cfg(feature = "macros")]
use super::{
    payload::{EventPayload as _, EventType as _},
    record_error::{RECORD_ERROR_CODE, RecordError},
    test::TestEvent,
    values::value::Value,
};

/// Returns the published schema (TEST or EXEC) with this content type and hash, or `None` if there is none.
#[must_use]
pub fn published_schema(content_type: u16, schema_hash: [u8; 32]) -> Option<&'static Schema> {
    published_schemas().find(|schema| schema.content_type() == content_type && schema.hash() == schema_hash)
}

fn published_schemas() -> impl Iterator<Item = &'static Schema> {
    let schemas: &[fn() -> &'static Schema] = &[
        #[cfg(feature = "macros")]
        TestEvent::schema,
        #[cfg(feature = "exec")]
        super::exec::ExecEvent::schema,
    ];
    schemas.iter().map(|schema| schema())
}

/// The schemas that this process was given for rings that carry none.
static GIVEN: RwLock<Vec<SchemaModel>> = RwLock::new(Vec::new());

/// Gives this process a schema for rings that carry none and have none of the published schemas: rings of other
/// implementations, whose schema is newer than this crate. From now on [`SchemaModel::of_ring`], and so
/// [`Reader::schema`](crate::reader::Reader::schema), returns it for rings of its content type and hash. If the text of
/// the schema states no hash, it is taken for all such rings of its content type. Of two schemas for a ring, the one
/// that was given last counts.
pub fn give_schema(model: SchemaModel) {
    GIVEN.write().unwrap_or_else(PoisonError::into_inner).push(model);
}

fn given_schema(content_type: u16, schema_hash: [u8; 32]) -> Option<SchemaModel> {
    let given = GIVEN.read().unwrap_or_else(PoisonError::into_inner);
    let is_it = |model: &&SchemaModel| {
        model.content_type == content_type && (!model.states_hash || model.schema_hash == schema_hash)
    };
    let model = given.iter().rev().find(is_it)?.clone();
    Some(SchemaModel { schema_hash, ..model })
}

/// Returns the names of the extension words of a ring. `model` is the ring's schema, or `None` if it is not known.
///
/// Rings of the content types TEST and EXEC always have the words that `docs/FORMAT.md` names, even if they have
/// another version of the schema. This is safe, because a writer that does not know a word stores 0 there.
#[must_use]
pub fn ext_words(content_type: u16, model: Option<&SchemaModel>) -> ExtWords {
    if let Some(schema) = published_schemas().find(|schema| schema.content_type() == content_type) {
        return schema.info().ext_words.clone();
    }
    model.map_or(ExtWords::NONE, |model| model.ext_words.clone())
}

/// Decodes the payload of the event with the code `code`. `model` is the ring's schema, or `None` if it is not known.
///
/// If there is no model, or the model has no such event, returns the payload's bytes. There is one exception: if the
/// code is 1 and the payload is a whole RECORD_ERROR, decodes it. Event 1 is RECORD_ERROR in all known schemas.
#[cfg(feature = "macros")]
#[must_use]
pub fn decode_event<'a>(model: Option<&'a SchemaModel>, code: u16, payload: &'a [u8]) -> Value<'a> {
    if let Some(model) = model.filter(|model| model.event(code).is_some()) {
        return model.decode(code, payload);
    }
    let error = TestEvent::schema().model().ok().filter(|_| code == RECORD_ERROR_CODE && is_record_error(payload));
    error.map_or(Value::Bytes(payload), |model| model.decode(code, payload))
}

#[cfg(feature = "macros")]
fn is_record_error(payload: &[u8]) -> bool {
    let is_whole = |(error, rest): (RecordError, &[u8])| {
        error.reason().is_some() && rest.len() as u64 == u64::from(error.truncated_payload_size)
    };
    // A RECORD_ERROR has no payload if the ring had no payload memory left for it.
    payload.is_empty() || RecordError::decode(payload).is_ok_and(is_whole)
}

impl SchemaModel {
    /// Returns the schema of a ring file. If the header names a published schema, returns that schema and ignores
    /// `text`. (Files of other implementations have no schema text; for these, [`give_schema`] adds schemas.) Otherwise
    /// parses `text`, the schema text in the file. The content type and the hash of this text must be those of the
    /// header.
    ///
    /// # Errors
    /// Returns an error if the schema is not published and there is no text, or if the text cannot be parsed or
    /// belongs to another schema.
    pub fn of_ring(
        content_type: u16,
        schema_hash: [u8; 32],
        text: Option<&str>,
    ) -> Result<Cow<'static, Self>, SchemaTextError> {
        if let Some(Ok(model)) = published_schema(content_type, schema_hash).map(Schema::model) {
            return Ok(Cow::Borrowed(model));
        }
        let not_of_this_ring =
            |problem: String| SchemaTextError { kind: SchemaTextErrorKind::NotOfThisRing, line: 0, problem };
        let Some(text) = text else {
            if let Some(model) = given_schema(content_type, schema_hash) {
                return Ok(Cow::Owned(model));
            }
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
