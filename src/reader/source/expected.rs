//! The schema that a caller expects in a ring.

use crate::layout::header::{CONTENT_TYPE_PERF, content_type_name};
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::schema::{EventType, Hex, Resolution, Schema, SchemaModel};
use std::fmt;

/// The events that a ring must hold.
#[derive(Clone)]
pub(in crate::reader) struct Expected {
    schema: &'static Schema,
    /// The Rust type of the events.
    type_name: &'static str,
    /// True if another version of the schema is accepted that is compatible.
    is_any_compatible: bool,
}

impl Expected {
    pub(in crate::reader) fn exactly<E: EventType>() -> Self {
        let type_name = std::any::type_name::<E>();
        let type_name = type_name.rsplit("::").next().unwrap_or(type_name);
        Self { schema: E::schema(), type_name, is_any_compatible: false }
    }

    pub(in crate::reader) fn compatible_with<E: EventType>() -> Self {
        Self { is_any_compatible: true, ..Self::exactly::<E>() }
    }

    /// Checks the content of a ring whose schema text `text` returns. Returns how its payloads become those of the
    /// schema, if they differ.
    pub(in crate::reader) fn check(
        &self,
        content_type: u16,
        schema_hash: [u8; 32],
        text: impl FnOnce() -> Option<String>,
    ) -> Result<Option<Resolution>, ReaderError> {
        let schema = self.schema;
        if content_type != schema.content_type() {
            return Err(ReaderError::new(
                ReaderErrorKind::WrongContentType { found: content_type, expected: schema.content_type() },
                format!(
                    "the ring has content type {} ({}), expected {} ({}); open a ring of that type, or open this one raw",
                    content_type,
                    content_type_name(content_type),
                    schema.content_type(),
                    schema.name(),
                ),
            ));
        }
        if schema_hash == schema.hash() {
            return Ok(None);
        }
        let resolution = SchemaModel::of_ring(content_type, schema_hash, text().as_deref())
            .map(|writer| Resolution::new(&writer, schema.info()));
        match resolution {
            Ok(found) if found.is_compatible() && self.is_any_compatible => {
                Ok(Some(found).filter(Resolution::is_needed))
            }
            Ok(found) => {
                let (is_compatible, differences) = (found.is_compatible(), found.into_differences());
                // Spans are read by eventring itself, which maps nothing.
                let advice = match is_compatible && content_type != CONTENT_TYPE_PERF {
                    true => format!("open the ring with `Reader::options().compatible::<{}>()`", self.type_name),
                    false => "use matching versions, or open the ring raw".to_owned(),
                };
                Err(self
                    .refusal(schema_hash, format_args!("{differences}; {advice}"))
                    .because_of(differences.into_list()))
            }
            Err(error) => Err(self.refusal(
                schema_hash,
                format_args!("what differs cannot be told ({error}); use matching versions, or open the ring raw"),
            )),
        }
    }

    fn refusal(&self, found: [u8; 32], why: fmt::Arguments<'_>) -> ReaderError {
        let (schema, expected) = (self.schema, self.schema.hash());
        let message = format!(
            "the ring's {} events have schema hash {}, expected {}: writer and reader were built with different versions \
             of the events: {why}",
            schema.name(),
            Hex(&found),
            Hex(&expected)
        );
        ReaderError::new(ReaderErrorKind::WrongSchema { found, expected }, message)
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, is_any_compatible) = (self.type_name, self.is_any_compatible);
        f.debug_struct("Expected").field("type_name", &name).field("is_any_compatible", &is_any_compatible).finish()
    }
}
