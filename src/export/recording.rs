//! The events of a capture, decoded.

use super::kept::Kept;
use super::no_spans;
use super::payloads::PayloadLosses;
use crate::capture::{
    CaptureError, CaptureErrorKind, CaptureEvents, CaptureFile, CapturedContent, CapturedPayload, CapturedRecord,
    CapturedRing, RingRole,
};
use crate::reader::{Descriptor, GapCause};
use crate::schema::perf::PerfEvent;
use crate::schema::{EventType, ExtWords, Hex, SchemaModel, ext_words};
use crate::tracing::{Catalog, PerfRecord, SpanId, decode_record};
use std::borrow::Cow;
use std::collections::HashMap;

/// A capture, and the schemas of its rings.
pub(super) struct CaptureRecording<'c> {
    pub(super) capture: &'c CaptureFile,
    /// The schema of each ring; `None` if it is not known. The schemas of perf rings are not used.
    models: Vec<Option<Cow<'static, SchemaModel>>>,
    /// The names of each ring's extension words.
    words: Vec<ExtWords>,
}

/// One event or loss of a recording.
pub(super) struct RecordingEntry {
    pub(super) ring: u32,
    /// The process that wrote the ring.
    pub(super) process: u32,
    pub(super) content: EntryContent,
}

pub(super) enum EntryContent {
    /// A record of a perf ring. A perf recorder writes several rings, its shards. `recorder` is the index of the ring
    /// that is shard 0.
    Perf { recorder: u32, record: PerfRecord },
    /// An event of another ring.
    Typed { descriptor: Descriptor, payload: CapturedPayload },
    /// A loss.
    Gap { first_seqno: u64, count: u64, cause: GapCause },
}

/// The entries of a recording in the order of time.
pub(super) struct Entries<'r> {
    recording: &'r CaptureRecording<'r>,
    events: CaptureEvents,
    catalogs: HashMap<u32, Catalog>,
    /// The counts of lost payloads, by ring.
    payload_losses: Vec<PayloadLosses>,
    kept: Kept,
    /// The reason why the entries end early.
    refused: Option<CaptureError>,
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
        Ok(Self { capture, models, words })
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
        let kept = Kept::new(self.capture.file_bytes());
        Entries {
            recording: self,
            events: self.capture.events(),
            catalogs: HashMap::new(),
            payload_losses,
            kept,
            refused: None,
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
        let is_of_records = self.ring(ring).is_perf() && cause != GapCause::NeverCommitted;
        is_of_records.then(|| self.shard(ring))
    }

    /// Returns two numbers for a perf ring. The first is the index of the ring that is shard 0 of the same recorder.
    /// The second is the number of the given ring among the recorder's shards.
    fn shard(&self, ring: u32) -> (u32, u32) {
        match self.ring(ring).role {
            RingRole::Shard { recorder, shard } => (recorder, shard),
            RingRole::Single => (ring, 0),
        }
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

    /// Returns the reason why the entries ended early, if they did.
    pub(super) fn refused(&mut self) -> Option<CaptureError> {
        self.refused.take()
    }
}

impl Iterator for Entries<'_> {
    type Item = RecordingEntry;

    fn next(&mut self) -> Option<RecordingEntry> {
        // A seqno that was given up never had an event, so it is not shown as a loss.
        let shows = |item: &CapturedRecord| match item.content {
            CapturedContent::Gap { cause, .. } => cause.is_loss(),
            CapturedContent::Event { .. } => true,
        };
        if self.refused.is_some() {
            return None;
        }
        let item = self.events.by_ref().find(shows)?;
        let ring = self.recording.ring(item.ring);
        if let CapturedContent::Event { payload, .. } = &item.content {
            self.payload_losses[item.ring as usize].add(payload);
        }
        let content = match item.content {
            CapturedContent::Gap { first_seqno, count, cause } => EntryContent::Gap { first_seqno, count, cause },
            CapturedContent::Event { descriptor, payload } if ring.is_perf() => {
                let (recorder, shard) = self.recording.shard(item.ring);
                let capture = self.recording.capture;
                if [PerfEvent::CallSite as u16, PerfEvent::ThreadStarted as u16].contains(&descriptor.event_type) {
                    self.kept.learn(payload.as_read().valid().map_or(0, <[u8]>::len));
                }
                let catalog = self.catalogs.entry(recorder).or_insert_with(|| capture.catalog(recorder));
                EntryContent::Perf { recorder, record: decode_record(catalog, shard, &descriptor, payload.as_read()) }
            }
            CapturedContent::Event { descriptor, payload } => EntryContent::Typed { descriptor, payload },
        };
        let entry = RecordingEntry { ring: item.ring, process: ring.process, content };
        self.kept.count(&entry);
        match self.kept.check() {
            Ok(()) => Some(entry),
            Err(error) => {
                self.refused = Some(error);
                None
            }
        }
    }
}
