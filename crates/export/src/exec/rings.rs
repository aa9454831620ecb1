//! Making blocks from rings of execution events while a recording is replayed.

use eventring::exec::flow_tag;
use eventring::schema::exec::ExecEvent;
use eventring_capture::CapturedRing;
use eventring_capture::recording::{CaptureRecording, EntryContent, RecordingEntry};
use eventring_exec::{BlockBuilder, ChainEvent, Dialect, Wanted};

/// What an event of an open block takes beside its payload, at most.
const EVENT_BYTES: u64 = 512;

/// A builder of blocks for each ring of execution events whose schema is known.
pub struct ExecRings {
    rings: Vec<Option<ExecRing>>,
    wanted: Wanted,
}

struct ExecRing {
    dialect: Dialect,
    builder: BlockBuilder,
    /// The flow tag of the open block; 0 if there is none.
    open_tag: u64,
    /// An estimate of the bytes that the open block takes.
    open_bytes: u64,
}

impl ExecRings {
    pub fn new(recording: &CaptureRecording<'_>, wanted: Wanted) -> Self {
        let of_ring = |ring: &CapturedRing| {
            let model = ring.schema().ok();
            let dialect = Dialect::of_schema(ring.content_type, ring.schema_hash, model.as_deref()).ok()?;
            let builder = BlockBuilder::new(dialect.clone(), wanted);
            Some(ExecRing { dialect, builder, open_tag: 0, open_bytes: 0 })
        };
        let rings = recording.capture.rings().iter().map(|ring| of_ring(ring).filter(|_| ring.is_exec())).collect();
        Self { rings, wanted }
    }

    /// Returns the number of rings that have blocks.
    pub fn count(&self) -> usize {
        self.rings.iter().flatten().count()
    }

    /// Returns the number of all rings of the recording.
    pub fn len(&self) -> u32 {
        self.rings.len() as u32
    }

    /// Returns true if the recording has no rings.
    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Returns true if the ring has blocks.
    #[inline]
    pub fn has(&self, ring: u32) -> bool {
        self.rings.get(ring as usize).is_some_and(Option::is_some)
    }

    /// Returns the event of today's schema that a code means.
    pub fn meaning(&self, ring: u32, code: u16) -> Option<ExecEvent> {
        self.rings.get(ring as usize)?.as_ref()?.dialect.meaning(code)
    }

    /// Takes seqnos that never had an event. Without them, a block would seem to have lost events.
    #[inline]
    pub fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        if let EntryContent::Gap(gap) = &entry.content
            && !gap.is_loss()
        {
            self.take(entry);
        }
    }

    /// Takes an event or a loss. [`Self::pop`] returns what follows from it.
    pub fn take(&mut self, entry: &RecordingEntry<'_>) {
        let Some(ring) = self.rings.get_mut(entry.ring as usize).and_then(Option::as_mut) else { return };
        match &entry.content {
            EntryContent::Typed { descriptor, payload } => {
                if ring.dialect.meaning(descriptor.event_type) == Some(ExecEvent::BlockStart) {
                    (ring.open_tag, ring.open_bytes) = (descriptor.seqno, 0);
                }
                if self.wanted.transactions && ring.open_tag != 0 && flow_tag(descriptor) == ring.open_tag {
                    ring.open_bytes += EVENT_BYTES + 2 * u64::from(descriptor.payload_size);
                }
                ring.builder.push(descriptor, || *payload);
            }
            EntryContent::Gap(gap) => ring.builder.push_gap(*gap),
            EntryContent::Perf { .. } => {}
        }
    }

    /// Returns the next thing that was found in a ring.
    pub fn pop(&mut self, ring: u32) -> Option<ChainEvent> {
        let ring = self.rings.get_mut(ring as usize)?.as_mut()?;
        let found = ring.builder.pop()?;
        if let ChainEvent::Block(block) = &found
            && block.start_seqno == ring.open_tag
        {
            (ring.open_tag, ring.open_bytes) = (0, 0);
        }
        Some(found)
    }

    /// Says that no more events come. Blocks that are open are found as they are.
    pub fn end(&mut self) {
        self.rings.iter_mut().flatten().for_each(|ring| ring.builder.end());
    }

    /// Returns an estimate of the bytes that the open blocks take.
    pub fn kept_bytes(&self) -> u64 {
        self.rings.iter().flatten().map(|ring| ring.open_bytes).fold(0, u64::saturating_add)
    }
}
