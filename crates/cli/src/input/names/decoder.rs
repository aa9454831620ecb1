//! Names of a ring's events, and the decoding of their payloads.

use crate::text::table::{column_width, shortened_name};
use eventring::internal::decode_event;
use eventring::reader::Reader;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::PerfEvent;
use eventring::schema::test::TestEvent;
use eventring::schema::{DomainModel, EventModel, EventType, SchemaModel, Value};
use eventring_capture::CapturedRing;
use std::collections::HashSet;

/// The largest number of event names that an error message lists.
const NAMED: usize = 12;

/// A decoder for the events of one ring. It uses a schema that this program was built with, or else the schema text in
/// the ring's file.
pub(crate) struct Decoder {
    model: RingModel,
    /// The reason why payloads cannot be decoded, or `None` if they can be decoded.
    problem: Option<String>,
}

enum RingModel {
    BuiltIn(&'static SchemaModel),
    FromText(Box<SchemaModel>),
    Unknown,
}

impl Decoder {
    /// Returns the decoder for that ring.
    pub(crate) fn for_ring(reader: &Reader) -> Self {
        let info = reader.info();
        Self::for_schema(info.content_type, info.schema_hash, || reader.schema_text())
    }

    /// Returns the decoder for that ring of a capture.
    pub(crate) fn for_captured(ring: &CapturedRing) -> Self {
        let text = Some(&ring.schema_text).filter(|text| !text.is_empty());
        Self::for_schema(ring.content_type, ring.schema_hash, || text.cloned())
    }

    /// Returns the decoder for rings of this schema. Calls `text` if this program was not built with the schema.
    pub(crate) fn for_schema(content_type: u16, schema_hash: [u8; 32], text: impl FnOnce() -> Option<String>) -> Self {
        if let Some(model) = [known::<ExecEvent>, known::<PerfEvent>, known::<TestEvent>]
            .iter()
            .find_map(|known| known(content_type, schema_hash))
        {
            return Self { model: RingModel::BuiltIn(model), problem: None };
        }
        let problem = match text().map(|text| SchemaModel::parse(&text)) {
            Some(Ok(model)) => return Self { model: RingModel::FromText(Box::new(model)), problem: None },
            Some(Err(error)) => format!("the ring's own schema cannot be used: {error}"),
            None => match SchemaModel::of_ring(content_type, schema_hash, None) {
                Ok(model) => {
                    return Self { model: RingModel::FromText(Box::new(model.into_owned())), problem: None };
                }
                Err(_) => format!(
                    "schema {} is not known here, and the ring carries no description of it; --schema FILE gives one",
                    eventring::schema::Hex(&schema_hash)
                ),
            },
        };
        Self { model: RingModel::Unknown, problem: Some(problem) }
    }

    /// Returns the schema, if it is known.
    pub(crate) fn model(&self) -> Option<&SchemaModel> {
        match &self.model {
            RingModel::BuiltIn(model) => Some(model),
            RingModel::FromText(model) => Some(model),
            RingModel::Unknown => None,
        }
    }

    fn is_of_spans(&self) -> bool {
        let perf = PerfEvent::schema().model().ok();
        matches!((&self.model, perf), (RingModel::BuiltIn(model), Some(perf)) if std::ptr::eq(*model, perf))
    }

    /// Returns the reason why payloads are shown as hex, or `None` if they are decoded.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the event's name.
    pub(crate) fn name(&self, code: u16) -> Option<&str> {
        // Code 1 is no RECORD_ERROR in the oldest schemas of EXEC, so it has no name in a schema that is not known.
        self.model()?.event(code).map(EventModel::name)
    }

    /// Returns the width of a column of names: the number of characters of the longest one, if that is not too many.
    pub(crate) fn name_width(&self) -> usize {
        let names = self.model().into_iter().flat_map(SchemaModel::events);
        column_width(names.map(|event| event.name().chars().count()))
    }

    /// Returns the names of the schema's domains, by ascending number.
    pub(crate) fn domains(&self) -> impl Iterator<Item = &str> {
        self.model().into_iter().flat_map(SchemaModel::domains).map(DomainModel::name)
    }

    /// Returns the names and codes of all events.
    pub(crate) fn events(&self) -> impl Iterator<Item = (u16, &str)> {
        self.model().into_iter().flat_map(SchemaModel::events).map(|event| (event.code(), event.name()))
    }

    /// Returns the code of the events that the user's name or number stands for. In another schema, the name may stand
    /// for another code.
    pub(crate) fn code_of(&self, name: &str) -> Option<u16> {
        name.parse().ok().or_else(|| Some(self.model()?.event_by_name(name)?.code()))
    }

    /// Returns the decoded payload, or its bytes as they are if the ring's schema is not known.
    pub(crate) fn decode<'a>(&'a self, code: u16, payload: &'a [u8]) -> Value<'a> {
        decode_event(self.model(), code, payload)
    }
}

/// Checks that an event type of `--type` is one of some of these rings.
///
/// # Errors
/// It is none; the message names the types that there are.
pub(crate) fn check_type<'a>(name: &str, rings: impl Iterator<Item = &'a Decoder> + Clone) -> Result<(), String> {
    if rings.clone().any(|ring| ring.code_of(name).is_some()) {
        return Ok(());
    }
    let name = shortened_name(name);
    // Several rings of one schema have the same names. Those of the program's own events come first.
    let mut seen = HashSet::new();
    let own = rings.clone().filter(|ring| !ring.is_of_spans());
    let known = own.chain(rings.filter(|ring| ring.is_of_spans())).flat_map(Decoder::events);
    let mut known: Vec<&str> = known.map(|(_, known)| known).collect();
    known.retain(|name| seen.insert(*name));
    if known.is_empty() {
        return Err(format!("--type {name}: this ring's events have no names here; give a code"));
    }
    let more = known.len().saturating_sub(NAMED);
    known.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(format!("--type {name}: there is no event of that name; there are {}{more}", known.join(", ")))
}

/// Returns the built-in schema of the event type `E` if the ring has the same content type and schema hash, and
/// otherwise `None`.
fn known<E: EventType>(content_type: u16, schema_hash: [u8; 32]) -> Option<&'static SchemaModel> {
    (content_type == E::CONTENT_TYPE && schema_hash == E::schema_hash()).then(|| E::schema().model().ok())?
}
