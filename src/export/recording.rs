//! The events of a capture, decoded.

use super::kept::Kept;
use super::no_spans;
use super::payloads::PayloadLosses;
use crate::capture::{
    CaptureError, CaptureErrorKind, CaptureEvents, CaptureFile, CapturedRing, ContentRef, RecordRef, RingRole,
};
use crate::reader::{Descriptor, Gap, GapCause, PayloadRead};
use crate::schema::perf::PerfEvent;
use crate::schema::{EventType, ExtWords, Hex, SchemaModel, ext_words};
use crate::tracing::{Catalog, RawRecord, SpanId};
use std::borrow::Cow;

/// A capture, and the schemas of its rings.
pub(super) struct CaptureRecording<'c> {
    pub(super) capture: &'c CaptureFile,
    /// The schema of each ring; `None` if it is not known. The schemas of perf rings are not used.
    models: Vec<Option<Cow<'static, SchemaModel>>>,
    /// The names of each ring's extension words.
    words: Vec<ExtWords>,
    /// The origin of each ring.
    origins: Vec<RingOrigin>,
    /// The processes that wrote the rings, in the order of their numbers.
    processes: Vec<u32>,
    /// For each perf recorder, the index of the ring that is shard 0.
    recorders: Vec<u32>,
}

/// The program and the recorder that wrote a ring.
#[derive(Clone, Copy)]
struct RingOrigin {
    process: u32,
    /// The index of the process in [`CaptureRecording::processes`].
    process_index: usize,
    /// The recorder and the shard, if the ring is a perf ring.
    shard: Option<ShardOrigin>,
}

#[derive(Clone, Copy)]
struct ShardOrigin {
    /// The index of the ring that is shard 0.
    recorder: u32,
    shard: u32,
    /// The index of the recorder in [`CaptureRecording::recorders`].
    recorder_index: usize,
}

/// One event or loss of a recording.
pub(super) struct RecordingEntry<'e> {
    pub(super) ring: u32,
    /// The process that wrote the ring.
    pub(super) process: u32,
    /// The index of the process in [`CaptureRecording::processes`].
    pub(super) process_index: usize,
    pub(super) content: EntryContent<'e>,
}

pub(super) enum EntryContent<'e> {
    /// A record of a perf ring. A perf recorder writes several rings, its shards. `recorder` is the index of the ring
    /// that is shard 0.
    Perf { recorder: u32, record: RawRecord<'e>, catalog: &'e Catalog },
    /// An event of another ring.
    Typed { descriptor: &'e Descriptor, payload: PayloadRead<'e> },
    /// A loss.
    Gap { first_seqno: u64, count: u64, cause: GapCause },
}

/// The entries of a recording in the order of time. Each entry borrows its payload until the next entry is read.
pub(super) struct Entries<'r> {
    recording: &'r CaptureRecording<'r>,
    events: CaptureEvents,
    /// The names of each recorder's call sites and threads, in the order of [`CaptureRecording::recorders`].
    catalogs: Vec<Catalog>,
    /// The counts of lost payloads, by ring.
    payload_losses: Vec<PayloadLosses>,
    kept: Kept,
}

impl<'c> CaptureRecording<'c> {
    pub(super) fn new(capture: &'c CaptureFile) -> Result<Self, CaptureError> {
        for ring in capture.rings().iter().filter(|ring| ring.is_perf()) {
            if ring.schema_hash != PerfEvent::schema_hash() {
                let message = format!(
                    "the perf ring {} has the schema {}…, expected {}…: use the eventring with which it was recorded",
                    ring.name,
                    Hex(&ring.schema_hash[..8]),
                    Hex(&PerfEvent::schema_hash()[..8])
                );
                return Err(CaptureError::new(CaptureErrorKind::WrongSchema, message));
            }
        }
        let model = |ring: &CapturedRing| {
            let text = Some(ring.schema_text.as_str()).filter(|text| !text.is_empty());
            SchemaModel::of_ring(ring.content_type, ring.schema_hash, text).ok()
        };
        let models: Vec<_> = capture.rings().iter().map(model).collect();
        let words = capture.rings().iter().zip(&models);
        let words = words.map(|(ring, model)| ext_words(ring.content_type, model.as_deref())).collect();
        let mut processes: Vec<u32> = capture.rings().iter().map(|ring| ring.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let mut recorders = Vec::new();
        let origin = |(index, ring): (usize, &CapturedRing)| {
            let shard = ring.is_perf().then(|| {
                let (recorder, shard) = match ring.role {
                    RingRole::Shard { recorder, shard } => (recorder, shard),
                    RingRole::Single => (index as u32, 0),
                };
                let known = recorders.iter().position(|known| *known == recorder);
                let recorder_index = known.unwrap_or_else(|| {
                    recorders.push(recorder);
                    recorders.len() - 1
                });
                ShardOrigin { recorder, shard, recorder_index }
            });
            let process_index = processes.binary_search(&ring.process).unwrap_or(0);
            RingOrigin { process: ring.process, process_index, shard }
        };
        let origins = capture.rings().iter().enumerate().map(origin).collect();
        Ok(Self { capture, models, words, origins, processes, recorders })
    }

    /// Returns the numbers of the processes that wrote the rings, in ascending order.
    pub(super) fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Checks that the capture has a perf ring. A truncated or damaged capture passes, because it may have had a perf
    /// ring in the part that is missing. Its problems say what is missing.
    ///
    /// # Errors
    /// There is no perf ring.
    pub(super) fn expect_spans(&self) -> Result<(), CaptureError> {
        let has_spans = self.capture.rings().iter().any(CapturedRing::is_perf);
        if has_spans || !self.capture.problems().is_empty() { Ok(()) } else { Err(no_spans(self.capture)) }
    }

    pub(super) fn entries(&self) -> Entries<'_> {
        let payload_losses = self.capture.rings().iter().map(|ring| PayloadLosses::of_ring(&ring.name)).collect();
        Entries {
            recording: self,
            events: self.capture.events(),
            catalogs: self.recorders.iter().map(|recorder| self.capture.catalog(*recorder)).collect(),
            payload_losses,
            kept: Kept::new(self.capture.file_bytes()),
        }
    }

    pub(super) fn ring(&self, ring: u32) -> &CapturedRing {
        &self.capture.rings()[ring as usize]
    }

    /// Returns the schema of a ring that is no perf ring.
    pub(super) fn model(&self, ring: u32) -> Option<&SchemaModel> {
        self.models.get(ring as usize)?.as_deref()
    }

    /// Returns the span in which a typed event was recorded. Returns `None` if the event was in no span, or if the
    /// events of its ring do not name their spans.
    pub(super) fn span(&self, ring: u32, descriptor: &Descriptor) -> Option<SpanId> {
        SpanId::new(self.words[ring as usize].span_id(descriptor.content_ext))
    }

    /// Returns the names of the extension words of `ring`, which is not a perf ring.
    pub(super) fn words(&self, ring: u32) -> &ExtWords {
        &self.words[ring as usize]
    }

    /// Returns the recorder and the number of the shard that lost events. Returns `None` if no record of a span is
    /// missing. This is so for a ring that is no perf ring, and for the cause [`GapCause::NeverCommitted`]. (With this
    /// cause, the thread never finished recording the event, so it stayed in its spans.)
    pub(super) fn losing_shard(&self, ring: u32, cause: GapCause) -> Option<(u32, u32)> {
        let shard = self.origins[ring as usize].shard.filter(|_| cause != GapCause::NeverCommitted);
        shard.map(|of| (of.recorder, of.shard))
    }

    /// Returns the name of a typed event.
    pub(super) fn event_name(&self, ring: u32, code: u16) -> Cow<'_, str> {
        match self.model(ring).and_then(|model| model.event(code)) {
            Some(event) => event.name().into(),
            None if code == crate::schema::RECORD_ERROR_CODE => "RECORD_ERROR".into(),
            None => format!("event {code}").into(),
        }
    }
}

impl Entries<'_> {
    /// Returns the problems that were found so far.
    pub(super) fn problems(&self) -> &[String] {
        self.events.problems()
    }

    /// Returns the counts of lost payloads so far, only for rings that have lost any.
    pub(super) fn payload_losses(&self) -> Vec<PayloadLosses> {
        self.payload_losses.iter().filter(|losses| losses.count() > 0).cloned().collect()
    }

    /// Checks the memory that is kept for the entries so far. `more_bytes` is the size of everything that the caller
    /// keeps.
    ///
    /// # Errors
    /// The size exceeds the limit of the capture.
    pub(super) fn check_kept(&self, more_bytes: u64) -> Result<(), CaptureError> {
        self.kept.check(more_bytes)
    }

    /// Returns the next entry.
    pub(super) fn next(&mut self) -> Option<RecordingEntry<'_>> {
        let RecordRef { ring, content } = self.events.next_ref()?;
        let RingOrigin { process, process_index, shard } = self.recording.origins[ring as usize];
        let content = match content {
            ContentRef::Gap(Gap { first_seqno, count, cause }) => EntryContent::Gap { first_seqno, count, cause },
            ContentRef::Event { descriptor, payload, is_omitted } => {
                self.payload_losses[ring as usize].add(payload, is_omitted);
                match shard {
                    Some(ShardOrigin { recorder, shard, recorder_index }) => {
                        let catalog = &mut self.catalogs[recorder_index];
                        let record = RawRecord::new(catalog, shard, descriptor, payload);
                        if let Some(PerfEvent::CallSite | PerfEvent::ThreadStarted) = record.event {
                            self.kept.learn(payload.valid().map_or(0, <[u8]>::len));
                        }
                        EntryContent::Perf { recorder, record, catalog }
                    }
                    None => EntryContent::Typed { descriptor, payload },
                }
            }
        };
        Some(RecordingEntry { ring, process, process_index, content })
    }
}
