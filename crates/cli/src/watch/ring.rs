//! A ring that is watched.

use super::perf::Perf;
use crate::input::names::decoder::Decoder;
use crate::input::names::fields::KnownFields;
use eventring::exec::KnownBlocks;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::internal::ext_words;
use eventring::reader::{Descriptor, PayloadRead, Reader, SetRing};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::schema::{EventType as _, ExtWords};
use eventring_capture::CapturedRing;
use eventring_capture::condition::{SeenContent, TypedContent};
use std::cell::RefCell;

/// The content type and the schema hash of a ring. Codes of events mean something only together with them.
pub(super) type RingSchema = (u16, [u8; 32]);

/// A ring that is watched.
pub(super) struct Ring {
    /// The reader of the ring; `None` if the ring is in a capture.
    pub reader: Option<Reader>,
    pub schema: RingSchema,
    /// A number of the process that wrote it. Ids of spans are unique in a process.
    pub process: u64,
    /// The last seqno in a capture.
    captured_seqno: u64,
    pub decoder: Decoder,
    /// The name on the command line. A shard has its number added.
    pub label: String,
    /// True for a ring of execution events: its events have a block, a transaction and an account.
    pub is_exec: bool,
    /// The names of its events' extension words.
    pub words: ExtWords,
    /// The decoder of a perf ring; `None` for other rings.
    pub perf: Option<Perf>,
    /// The blocks of a ring of execution events, as far as they are known.
    blocks: RefCell<KnownBlocks>,
    /// True if this entry stands for a shard that could not be opened. It then has the reader and the name of shard 0.
    pub is_missed: bool,
}

impl Ring {
    fn new(reader: Reader, label: String, perf: Option<Perf>) -> Self {
        Self {
            schema: (reader.info().content_type, reader.info().schema_hash),
            process: reader.info().extension.map_or(0, |extension| extension.writer.pid.into()),
            captured_seqno: 0,
            decoder: Decoder::for_ring(&reader),
            label,
            is_exec: reader.info().content_type == CONTENT_TYPE_EXEC,
            words: reader.ext_words(),
            perf,
            blocks: RefCell::new(KnownBlocks::of_ring(&reader)),
            is_missed: false,
            reader: Some(reader),
        }
    }

    /// Describes a ring of a capture. Its decoder is `perf` if it is a shard of a perf recorder.
    pub(super) fn captured(ring: &CapturedRing, last_seqno: u64, perf: Option<Perf>, blocks: KnownBlocks) -> Self {
        Self {
            schema: (ring.content_type, ring.schema_hash),
            process: ring.process.into(),
            captured_seqno: last_seqno,
            decoder: Decoder::for_captured(ring),
            label: ring.name.clone(),
            is_exec: ring.content_type == CONTENT_TYPE_EXEC,
            words: ext_words(ring.content_type, ring.schema().ok().as_deref()),
            perf,
            blocks: RefCell::new(blocks),
            is_missed: false,
            reader: None,
        }
    }

    /// Returns the fields that its events have.
    pub(super) fn known_fields(&self) -> KnownFields {
        match &self.perf {
            Some(perf) => perf.known_fields(),
            None => KnownFields::of_typed(self.decoder.model(), &self.words),
        }
    }

    /// Returns the newest seqno of the ring.
    pub(super) fn last_seqno(&self) -> u64 {
        self.reader.as_ref().map_or(self.captured_seqno, |reader| reader.info().last_seqno)
    }

    /// Describes a ring that the command line names.
    pub(super) fn named(reader: &Reader) -> Self {
        let info = reader.info();
        let is_perf = info.content_type == PerfEvent::CONTENT_TYPE && info.schema_hash == PerfEvent::schema_hash();
        let perf = is_perf.then(|| Perf::new(reader));
        let label = reader.name().unwrap_or("ring".as_ref()).to_string_lossy().into_owned();
        Self::new(reader.clone(), label, perf)
    }

    /// Describes a shard, even a shard that could not be opened. The call sites and threads of its events are in the
    /// tables of `shard0`.
    pub(super) fn shard(shard0: &Self, ring: &SetRing) -> Option<Self> {
        let perf = shard0.perf.as_ref().map(|perf| perf.of_shard(ring.shard()));
        Some(match ring.reader() {
            Some(reader) => Self::new(reader.clone(), format!("{}.{}", shard0.label, ring.shard()), perf),
            None => Self { is_missed: true, ..Self::new(shard0.reader.clone()?, shard0.label.clone(), perf) },
        })
    }

    /// Returns the number of the block that an execution event is about, if it is known. Reads the payload only of
    /// events about a whole block. Later calls know a block of which the BLOCK_START was read. Returns `None` for
    /// events of other schemas.
    pub(super) fn block_number<'p>(
        &self,
        event: &Descriptor,
        payload: impl FnOnce() -> PayloadRead<'p>,
    ) -> Option<u64> {
        if self.is_exec { self.blocks.borrow_mut().block_number_of(event, payload) } else { None }
    }

    /// Calls `take` with what an event says.
    pub(super) fn with_content<R>(
        &self,
        event: &Descriptor,
        payload: PayloadRead<'_>,
        take: impl FnOnce(SeenContent<'_>) -> R,
    ) -> R {
        match &self.perf {
            Some(perf) => perf.with_raw(event, payload, |record, catalog| take(SeenContent::Record(record, catalog))),
            None => {
                let (model, words) = (self.decoder.model(), &self.words);
                take(SeenContent::Typed(TypedContent { descriptor: event, payload, model, words }))
            }
        }
    }

    /// Returns the id of the event's span: the span that the event is about, or in which it was recorded. Returns 0 if
    /// there is no such span.
    pub(super) fn span_id(&self, event: &Descriptor) -> u64 {
        match &self.perf {
            Some(_) => PerfExt::from_words(event.content_ext).span_id,
            None => self.words.span_id(event.content_ext),
        }
    }
}
