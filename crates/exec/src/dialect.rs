//! Earlier schemas of execution events. The reader converts their events to the present schema.
//!
//! | hash | time | differs by |
//! |---|---|---|
//! | `8933f907…23f3` | since 2025-08-27 | |
//! | `51be78e0…f276` | August 2025 | as the next row, but with RECORD_ERROR, so that all codes are larger by one |
//! | `ddc58d9a…016b` | until August 2025 | no RECORD_ERROR; BLOCK_START of 392 bytes; one event TXN_START of 320 bytes instead of codes 10 to 13 |
//! | any other | | events and fields are found by their names in the schema text |

use eventring::files::CONTENT_TYPE_EXEC;
use eventring::internal::Resolution;
use eventring::schema::exec::{BlockStart, ExecEvent, ExecPayload};
use eventring::schema::{DecodeError, EventPayload as _, EventType as _, Hex, SchemaModel};
use std::fmt;
use std::sync::Arc;

/// A schema of execution events.
#[derive(Clone, Debug)]
pub struct Dialect(Known);

#[derive(Clone, Debug)]
enum Known {
    Today,
    /// The number is that by which codes are larger than in the first schema.
    August(u16),
    Described(Arc<Described>),
}

/// A schema that is known from its text only.
#[derive(Debug)]
struct Described {
    /// The codes in the schema, ascending, with the events of today that have the same names.
    events: Vec<(u16, ExecEvent)>,
    resolution: Resolution,
}

/// The events of the first schema, from code 1 on.
const AUGUST: [ExecEvent; 20] = {
    use ExecEvent as E;
    [
        E::BlockStart,
        E::BlockReject,
        E::BlockPerfEvmEnter,
        E::BlockPerfEvmExit,
        E::BlockEnd,
        E::BlockQc,
        E::BlockFinalized,
        E::BlockVerified,
        E::TxnHeaderStart,
        E::TxnReject,
        E::TxnPerfEvmEnter,
        E::TxnPerfEvmExit,
        E::TxnEvmOutput,
        E::TxnLog,
        E::TxnCallFrame,
        E::TxnEnd,
        E::AccountAccessListHeader,
        E::AccountAccess,
        E::StorageAccess,
        E::EvmError,
    ]
};

impl Dialect {
    /// The schema of today.
    pub const TODAY: Self = Self(Known::Today);

    /// Returns the schema with this hash.
    ///
    /// # Errors
    /// These are no execution events, or nobody knows the schema.
    pub fn from_schema_hash(content_type: u16, schema_hash: [u8; 32]) -> Result<Self, UnknownSchema> {
        // Of the earlier hashes only the ends are known.
        let ends = (&schema_hash[..4], &schema_hash[30..]);
        let unknown = || UnknownSchema { content_type, schema_hash, differences: None };
        match ends {
            _ if content_type != CONTENT_TYPE_EXEC => Err(unknown()),
            _ if schema_hash == ExecEvent::schema_hash() => Ok(Self::TODAY),
            ([0xdd, 0xc5, 0x8d, 0x9a], [0x01, 0x6b]) => Ok(Self(Known::August(0))),
            ([0x51, 0xbe, 0x78, 0xe0], [0xf2, 0x76]) => Ok(Self(Known::August(1))),
            _ => Err(unknown()),
        }
    }

    /// [`Self::from_schema_hash`], of a ring with this schema, if it has one: the ring's own, or one that the program was
    /// [given](eventring::schema::give_schema). A schema that this crate does not know by its hash is read as today's,
    /// event by event and field by field, by their names.
    ///
    /// # Errors
    /// These are no execution events, nobody knows the schema, or it lacks fields that blocks are made of.
    pub fn of_schema(
        content_type: u16,
        schema_hash: [u8; 32],
        model: Option<&SchemaModel>,
    ) -> Result<Self, UnknownSchema> {
        let (unknown, model) = match (Self::from_schema_hash(content_type, schema_hash), model) {
            (Err(unknown), Some(model)) if content_type == CONTENT_TYPE_EXEC => (unknown, model),
            (known, _) => return known,
        };
        let today = ExecEvent::schema();
        let resolution = Resolution::by_name(model, today.info());
        if !resolution.is_compatible() {
            return Err(UnknownSchema { differences: Some(resolution.differences()), ..unknown });
        }
        let meaning = |name: &str| today.info().events.iter().find(|event| event.name == name);
        let events = model
            .events()
            .iter()
            .filter_map(|event| Some((event.code(), ExecEvent::from_code(meaning(event.name())?.code)?)));
        Ok(Self(Known::Described(Arc::new(Described { events: events.collect(), resolution }))))
    }

    /// Returns the event that a code means; `None` if the schema has no such code.
    #[inline]
    #[must_use]
    pub fn meaning(&self, code: u16) -> Option<ExecEvent> {
        match &self.0 {
            Known::Today => ExecEvent::from_code(code),
            Known::August(1) if code == 1 => Some(ExecEvent::RecordError),
            Known::August(larger) => AUGUST.get(usize::from(code.checked_sub(1 + larger)?)).copied(),
            Known::Described(known) => {
                known.events.binary_search_by_key(&code, |(code, _)| *code).ok().map(|at| known.events[at].1)
            }
        }
    }

    /// Returns true if the schema has TXN_HEADER_END, and before it the entries of lists.
    pub(crate) fn has_header_end(&self) -> bool {
        match &self.0 {
            Known::Today => true,
            Known::August(_) => false,
            Known::Described(known) => known.events.iter().any(|(_, event)| *event == ExecEvent::TxnHeaderEnd),
        }
    }

    /// Decodes the payload of an event of this kind, which has the code `code` in the schema. `scratch` is used for
    /// payloads that have another form today.
    pub(crate) fn decode<'p>(
        &self,
        code: u16,
        kind: ExecEvent,
        payload: &'p [u8],
        scratch: &'p mut Vec<u8>,
    ) -> Result<ExecPayload<'p>, DecodeError> {
        let payload = match (&self.0, kind) {
            (Known::August(_), ExecEvent::TxnHeaderStart) => {
                txn_start_of_august(payload, scratch);
                scratch
            }
            (Known::Described(known), _) => known.resolve(code, payload, scratch),
            _ => payload,
        };
        ExecPayload::decode(kind.code(), payload)
    }

    /// Decodes the payload of BLOCK_START.
    pub(crate) fn block_start(
        &self,
        code: u16,
        payload: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Result<BlockStart, DecodeError> {
        let payload = match &self.0 {
            Known::Today => payload,
            Known::Described(known) => known.resolve(code, payload, scratch),
            Known::August(_) => {
                block_start_of_august(payload, scratch);
                scratch
            }
        };
        BlockStart::decode(payload).map(|(start, _)| start)
    }
}

impl Described {
    /// Returns the payload as today's. A payload that does not fit the schema becomes empty, and is then refused.
    fn resolve<'s>(&self, code: u16, payload: &[u8], scratch: &'s mut Vec<u8>) -> &'s [u8] {
        scratch.clear();
        scratch.extend(payload);
        if !self.resolution.resolve(code, scratch) {
            scratch.clear();
        }
        scratch
    }
}

/// Copies parts of an earlier struct to their places in today's. A payload that is too short leaves `to` empty, and is
/// then refused.
fn copy_parts(from: &[u8], bytes: usize, to: &mut Vec<u8>, today_bytes: usize, parts: &[(usize, usize, usize)]) {
    to.clear();
    let Some(fixed) = from.get(..bytes) else { return };
    to.resize(today_bytes, 0);
    for (from, at, length) in parts {
        to[*at..at + length].copy_from_slice(&fixed[*from..from + length]);
    }
}

fn block_start_of_august(payload: &[u8], today: &mut Vec<u8>) {
    // Tag, round and epoch; the hash of the parent; the chain; the Ethereum header.
    copy_parts(payload, 392, today, 528, &[(0, 0, 56), (56, 145, 32), (88, 80, 32), (120, 184, 272)]);
}

fn txn_start_of_august(payload: &[u8], today: &mut Vec<u8>) {
    // Hash and sender; the header up to the parity; the length of the data. Access lists were not recorded then.
    copy_parts(payload, 320, today, 352, &[(8, 0, 52), (64, 56, 241), (64 + 244, 56 + 280, 4)]);
    if !today.is_empty() {
        today.extend(&payload[320..]);
    }
}

/// Error for a ring whose events nobody can read as execution events.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownSchema {
    content_type: u16,
    schema_hash: [u8; 32],
    /// What differs from today's schema, if a description of the schema is there.
    differences: Option<String>,
}

impl UnknownSchema {
    /// The error for a capture without rings of execution events.
    pub(crate) fn no_ring() -> Self {
        Self { content_type: 0, schema_hash: [0; 32], differences: None }
    }

    /// Returns true if these are no execution events at all.
    #[must_use]
    pub fn is_other_content(&self) -> bool {
        self.content_type != CONTENT_TYPE_EXEC
    }
}

impl fmt::Display for UnknownSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { content_type, schema_hash, differences } = self;
        if *content_type != CONTENT_TYPE_EXEC {
            return write!(
                f,
                "the ring has no execution events: found content type {content_type}, expected {CONTENT_TYPE_EXEC}; name \
                 a ring of execution events"
            );
        }
        if let Some(differences) = differences {
            return write!(
                f,
                "the execution events of schema {} cannot be read as those of today: {differences}; give a schema text in \
                 which the events and fields have the names of today",
                Hex(schema_hash)
            );
        }
        write!(
            f,
            "the schema of the execution events is not known: found the hash {}, expected {} or one of August 2025; a \
             newer version of eventring may know it, and `eventring --schema FILE` reads a description of it",
            Hex(schema_hash),
            Hex(&ExecEvent::schema_hash())
        )
    }
}

impl fmt::Debug for UnknownSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for UnknownSchema {}
