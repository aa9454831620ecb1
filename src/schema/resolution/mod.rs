//! Schema resolution: reading a ring whose schema is another version of the reader's schema.
//!
//! A ring contains the *writer's schema*, with which it was written. A program reads the ring with the *reader's
//! schema*, which was compiled into the program. `docs/FORMAT.md`, "Versions of a schema", has the rules.

mod difference;
mod fields;
mod payload;
mod resolver;
mod types;

use super::description::describe::{EventInfo, SchemaInfo};
use super::dynamic::model::{EventModel, SchemaModel};
use super::record_error::RECORD_ERROR_CODE;
pub(crate) use difference::Differences;
pub use difference::SchemaDifference;
use payload::PayloadResolution;
use resolver::{Resolver, index_of};

/// How payloads of the writer's schema become payloads of the reader's schema.
#[derive(Debug)]
pub struct Resolution {
    /// The events of both schemas, by ascending code, without those whose payloads have the same bytes in both. Empty
    /// if the schemas are not compatible.
    payloads: Vec<(u16, PayloadResolution)>,
    differences: Differences,
}

impl Resolution {
    /// Compares the schemas.
    #[must_use]
    pub fn new(writer: &SchemaModel, reader: &SchemaInfo) -> Self {
        Self::with(writer, reader, true)
    }

    /// Compares schemas whose events may have other codes: they are the same events if they have the same names.
    /// [`Self::resolve`] is called with the codes of the writer.
    #[must_use]
    pub fn by_name(writer: &SchemaModel, reader: &SchemaInfo) -> Self {
        Self::with(writer, reader, false)
    }

    fn with(writer: &SchemaModel, reader: &SchemaInfo, keeps_codes: bool) -> Self {
        let mut resolver = Resolver { writer, keeps_codes, differences: Differences::default() };
        resolver.content(reader);
        let mut payloads: Vec<_> = reader.events.iter().filter_map(|event| resolver.event(event)).collect();
        payloads.sort_by_key(|(code, _)| *code);
        for event in writer.events() {
            if keeps_codes && reader.events.binary_search_by_key(&event.code(), |known| known.code).is_err() {
                resolver.differences.allow(format_args!("{} is an event of the ring only", event.name()));
            }
        }
        let differences = resolver.differences;
        if !differences.are_compatible() {
            payloads.clear();
        }
        Self { payloads, differences }
    }

    /// Returns true if the reader's schema can read all events that both schemas have.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.differences.are_compatible()
    }

    /// Returns true if the payloads of an event have other bytes in the reader's schema than in the writer's.
    pub(crate) fn is_needed(&self) -> bool {
        !self.payloads.is_empty()
    }

    /// Returns what differs, in words.
    #[must_use]
    pub fn differences(&self) -> String {
        self.differences.to_string()
    }

    pub(crate) fn into_differences(self) -> Differences {
        self.differences
    }

    /// Replaces a payload of the writer's schema by that of the reader's schema. Leaves the payload of an event that
    /// the reader's schema does not have as it is. Returns false if the payload does not fit the writer's schema.
    #[must_use]
    pub fn resolve(&self, code: u16, payload: &mut Vec<u8>) -> bool {
        // A RECORD_ERROR has no payload if the ring had no payload memory left for it.
        let is_empty_error = code == RECORD_ERROR_CODE && payload.is_empty();
        match self.payloads.binary_search_by_key(&code, |(code, _)| *code) {
            Ok(found) if !is_empty_error => self.payloads[found].1.resolve(payload),
            _ => true,
        }
    }
}

impl Resolver<'_> {
    fn content(&mut self, reader: &SchemaInfo) {
        let writer = self.writer;
        if (writer.content_type(), writer.name()) != (reader.content_type, reader.name) {
            self.differences.forbid(format_args!(
                "the ring has {} events (content type {}), expected {} ({}): they are other events",
                writer.name(),
                writer.content_type(),
                reader.name,
                reader.content_type
            ));
        }
        if writer.version() != reader.version {
            self.differences.forbid(format_args!(
                "the schema has version {} in the ring and {} here: its author says that a payload has another meaning",
                writer.version(),
                reader.version
            ));
        }
    }

    /// Compares an event of the reader's schema. Returns how its payloads change, if they do.
    fn event(&mut self, event: &EventInfo) -> Option<(u16, PayloadResolution)> {
        let (writer, name, code) = (self.writer, event.name, event.code);
        let found = index_of(writer.events(), EventModel::name, name, &event.evolution);
        match found.map(|index| &writer.events()[index]) {
            Some(found) if found.code() == code || !self.keeps_codes => {
                if found.name() != name {
                    self.differences.allow(format_args!("{name} is called {} in the ring", found.name()));
                }
                Some((found.code(), self.payload(event, found)?))
            }
            Some(found) => {
                self.differences.forbid(format_args!(
                    "{name} has code {} in the ring and {code} here: an event keeps its code; give it code {} again",
                    found.code(),
                    found.code()
                ));
                None
            }
            None => {
                match writer.event(code) {
                    Some(other) if self.keeps_codes => self.differences.forbid(format_args!(
                        "code {code} is {other} in the ring and {name} here: if the event was renamed, say \
                         #[event(alias = \"{other}\")]; otherwise give {name} a code of its own",
                        other = other.name()
                    )),
                    _ => self.differences.allow(format_args!("{name} is no event of the ring: it never comes")),
                }
                None
            }
        }
    }
}
