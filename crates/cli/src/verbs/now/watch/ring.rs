//! A ring that is watched.

use crate::input::names::decoder::Decoder;
use eventring::exec::KnownBlocks;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::internal::ext_words;
use eventring::reader::{Descriptor, PayloadRead, Reader, SetRing};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords};
use eventring_capture::{CapturedRing, RingRole};
use std::cell::RefCell;

/// The content type and the schema hash of a ring. Codes of events mean something only together with them.
pub(super) type RingSchema = (u16, [u8; 32]);

/// A ring that is watched.
pub(super) struct Ring {
    /// The reader of the ring; `None` if the ring is in a capture.
    pub reader: Option<Reader>,
    pub schema: RingSchema,
    /// The last seqno in a capture.
    captured_seqno: u64,
    pub decoder: Decoder,
    /// The name on the command line. A shard has its number added.
    pub label: String,
    /// True for a ring of execution events: its events have a block, a transaction and an account.
    pub is_exec: bool,
    /// The names of its events' extension words.
    pub words: ExtWords,
    /// True for a ring of spans and log records.
    pub is_perf: bool,
    /// The blocks of a ring of execution events, as far as they are known.
    blocks: RefCell<KnownBlocks>,
    /// True if it is a shard of another ring, and not named on the command line.
    pub is_shard: bool,
    /// True if this entry stands for a shard that could not be opened. It then has the reader and the name of shard 0.
    pub is_missed: bool,
}

impl Ring {
    fn new(schema: RingSchema, label: String, decoder: Decoder, blocks: KnownBlocks) -> Self {
        Self {
            reader: None,
            schema,
            captured_seqno: 0,
            label,
            is_exec: schema.0 == CONTENT_TYPE_EXEC,
            words: ext_words(schema.0, decoder.model()),
            decoder,
            is_perf: schema == (PerfEvent::CONTENT_TYPE, PerfEvent::schema_hash()),
            blocks: RefCell::new(blocks),
            is_shard: false,
            is_missed: false,
        }
    }

    /// Describes a ring of a capture, by its index.
    pub(super) fn captured(ring: &CapturedRing, index: u32, last_seqno: u64, blocks: KnownBlocks) -> Self {
        let is_shard = matches!(ring.role, RingRole::Shard { recorder, .. } if recorder != index);
        let schema = (ring.content_type, ring.schema_hash);
        let described = Self::new(schema, ring.name.clone(), Decoder::for_captured(ring), blocks);
        Self { captured_seqno: last_seqno, is_shard, ..described }
    }

    fn of_reader(reader: &Reader, label: String) -> Self {
        let schema = (reader.info().content_type, reader.info().schema_hash);
        let described = Self::new(schema, label, Decoder::for_ring(reader), KnownBlocks::of_ring(reader));
        Self { reader: Some(reader.clone()), ..described }
    }

    /// Describes a ring that the command line names.
    pub(super) fn named(reader: &Reader) -> Self {
        Self::of_reader(reader, reader.name().unwrap_or("ring".as_ref()).to_string_lossy().into_owned())
    }

    /// Describes a shard, even a shard that could not be opened.
    pub(super) fn shard(shard0: &Self, ring: &SetRing) -> Option<Self> {
        let described = match ring.reader() {
            Some(reader) => Self::of_reader(reader, format!("{}.{}", shard0.label, ring.shard())),
            None => Self { is_missed: true, ..Self::of_reader(shard0.reader.as_ref()?, shard0.label.clone()) },
        };
        Some(Self { is_shard: true, ..described })
    }

    /// Returns the newest seqno of the ring.
    pub(super) fn last_seqno(&self) -> u64 {
        self.reader.as_ref().map_or(self.captured_seqno, |reader| reader.info().last_seqno)
    }

    /// Returns the number of the block that an execution event is about, if it is known. Later calls know a block of
    /// which the BLOCK_START came. Returns `None` for events of other schemas.
    pub(super) fn block_number(&self, event: &Descriptor, payload: PayloadRead<'_>) -> Option<u64> {
        if self.is_exec { self.blocks.borrow_mut().block_number_of(event, || payload) } else { None }
    }

    /// Returns the id of the event's span: the span that the event is about, or in which it was recorded. Returns 0 if
    /// there is no such span.
    pub(super) fn span_id(&self, event: &Descriptor) -> u64 {
        match self.is_perf {
            true => PerfExt::from_words(event.content_ext).span_id,
            false => self.words.span_id(event.content_ext),
        }
    }
}
