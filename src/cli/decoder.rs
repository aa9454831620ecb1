//! What a ring's events are called and what their payloads mean.

use super::format::hex;
use eventring::reader::Reader;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::PerfEvent;
use eventring::schema::test::TestEvent;
use eventring::schema::{EventType, RECORD_ERROR_CODE, SchemaModel, Value, decode_event};

/// Decodes the events of one ring: by a schema that this program was built with, else by the schema text that the ring
/// carries, else not at all.
pub(super) struct Decoder {
    by: By,
    /// Why it is not decoded.
    problem: Option<String>,
}

enum By {
    Known(&'static SchemaModel),
    OwnText(Box<SchemaModel>),
    Nothing,
}

impl Decoder {
    /// The decoder for that ring.
    pub(super) fn of(reader: &Reader) -> Self {
        let info = reader.info();
        if let Some(model) = [known::<ExecEvent>, known::<PerfEvent>, known::<TestEvent>]
            .iter()
            .find_map(|known| known(info.content_type, info.schema_hash))
        {
            return Self { by: By::Known(model), problem: None };
        }
        let problem = match reader.schema_text().map(|text| SchemaModel::parse(&text)) {
            Some(Ok(model)) => return Self { by: By::OwnText(Box::new(model)), problem: None },
            Some(Err(error)) => format!("the ring's own schema cannot be used: {error}"),
            None => format!(
                "schema {} is not known here, and the ring carries no description of it",
                hex(&info.schema_hash)
            ),
        };
        Self { by: By::Nothing, problem: Some(problem) }
    }

    fn model(&self) -> Option<&SchemaModel> {
        match &self.by {
            By::Known(model) => Some(model),
            By::OwnText(model) => Some(model),
            By::Nothing => None,
        }
    }

    /// Why payloads are shown as hex, if they are.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The event's name.
    pub(super) fn name(&self, code: u16) -> Option<&str> {
        match self.model().and_then(|model| model.event(code)) {
            Some(event) => Some(event.name()),
            // In every schema.
            None => (code == RECORD_ERROR_CODE).then_some("RECORD_ERROR"),
        }
    }

    /// The longest name, in characters.
    pub(super) fn name_width(&self) -> usize {
        let names = self.model().into_iter().flat_map(SchemaModel::events);
        names.map(|event| event.name().chars().count()).max().unwrap_or(0)
    }

    /// The names and codes of all events.
    pub(super) fn events(&self) -> impl Iterator<Item = (u16, &str)> {
        self.model().into_iter().flat_map(SchemaModel::events).map(|event| (event.code(), event.name()))
    }

    /// What the payload holds; bytes if nothing is known of it.
    pub(super) fn decode<'a>(&'a self, code: u16, payload: &'a [u8]) -> Value<'a> {
        decode_event(self.model(), code, payload)
    }
}

/// The schema of `E`, if that is what the header names.
fn known<E: EventType>(content_type: u16, schema_hash: [u8; 32]) -> Option<&'static SchemaModel> {
    (content_type == E::CONTENT_TYPE && schema_hash == E::schema_hash()).then(|| E::schema().model().ok())?
}
