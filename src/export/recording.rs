//! The events of a capture, decoded.

use super::kept::Kept;
use super::no_spans;
use super::payloads::PayloadLosses;
use crate::capture::{
    CaptureError, CaptureErrorKind, CaptureEvents, CaptureFile, CapturedContent, CapturedPayload, CapturedRecord,
    CapturedRing, RingRole,
};
use crate::reader::{Descriptor, GapCause as LossCause};
use crate::schema::perf::PerfEvent;
use crate::schema::{EventType, ExtWords, SchemaModel, ext_words};
use crate::tracing::{Catalog, PerfRecord, SpanId, decode_record};
use std::borrow::Cow;
use std::collections::HashMap;

/// A capture and what decodes its rings.
pub(super) struct Recording<'c> {
    pub(super) capture: &'c CaptureFile,
    /// What decodes each ring that is no perf ring.
    models: Vec<Option<Cow<'static, SchemaModel>>>,
    /// The names of each ring's extension words.
    words: Vec<ExtWords>,
}

/// One entry of the stream.
pub(super) struct Entry {
    pub(super) ring: u32,
    /// The process that wrote the ring.
    pub(super) process: u32,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// Of a perf ring; `recorder` is the ring that is shard 0.
    Perf {
        recorder: u32,
        record: PerfRecord,
    },
    /// Of another ring.
    Other {
        descriptor: Descriptor,
        payload: CapturedPayload,
    },
    Gap {
        first_seqno: u64,
        count: u64,
        cause: LossCause,
    },
}

/// The entries in the order of time.
pub(super) struct Entries<'r> {
    recording: &'r Recording<'r>,
    events: CaptureEvents<'r>,
    catalogs: HashMap<u32, Catalog>,
    /// By ring.
    payload_losses: Vec<PayloadLosses>,
    kept: Kept,
    /// Why they end before their end.
    refused: Option<CaptureError>,
}

impl<'c> Recording<'c> {
    pub(super) fn new(capture: &'c CaptureFile) -> Result<Self, CaptureError> {
        for ring in capture.rings().iter().filter(|ring| ring.is_perf()) {
            if ring.schema_hash != PerfEvent::schema_hash() {
                let hex = |hash: [u8; 32]| hash[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let message = format!(
                    "the perf ring {} has the schema {}…, expected {}…: use the eventring with which it was recorded",
                    ring.name,
                    hex(ring.schema_hash),
                    hex(PerfEvent::schema_hash())
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

    /// That there is a perf ring.
    pub(super) fn expect_spans(&self) -> Result<(), CaptureError> {
        match self.capture.rings().iter().any(CapturedRing::is_perf) {
            true => Ok(()),
            false => Err(no_spans(self.capture)),
        }
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

    /// What decodes the events of a ring that is no perf ring.
    pub(super) fn model(&self, ring: u32) -> Option<&SchemaModel> {
        self.models.get(ring as usize)?.as_deref()
    }

    /// The span in which an event of such a ring was recorded, if its events say so.
    pub(super) fn span(&self, ring: u32, descriptor: &Descriptor) -> Option<SpanId> {
        SpanId::new(self.words[ring as usize].span_id(descriptor.content_ext))
    }

    /// The names of the extension words of such a ring.
    pub(super) fn words(&self, ring: u32) -> &ExtWords {
        &self.words[ring as usize]
    }

    /// The name of an event of such a ring.
    pub(super) fn event_name(&self, ring: u32, code: u16) -> Cow<'_, str> {
        match self.model(ring).and_then(|model| model.event(code)) {
            Some(event) => event.name().into(),
            None if code == crate::schema::RECORD_ERROR_CODE => "RECORD_ERROR".into(),
            None => format!("event {code}").into(),
        }
    }
}

impl Entries<'_> {
    /// What was found wrong so far.
    pub(super) fn problems(&self) -> &[String] {
        self.events.problems()
    }

    /// The rings of which payloads were missing so far.
    pub(super) fn payload_losses(&self) -> Vec<PayloadLosses> {
        self.payload_losses.iter().filter(|losses| losses.count() > 0).cloned().collect()
    }

    /// Why they ended before their end, if they did.
    pub(super) fn refused(&mut self) -> Option<CaptureError> {
        self.refused.take()
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        // Numbers that were given up stand for nothing that there is to show.
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
            CapturedContent::Gap { first_seqno, count, cause } => Content::Gap { first_seqno, count, cause },
            CapturedContent::Event { descriptor, payload } if ring.is_perf() => {
                let (recorder, shard) = match ring.role {
                    RingRole::Shard { recorder, shard } => (recorder, shard),
                    RingRole::Single => (item.ring, 0),
                };
                let capture = self.recording.capture;
                if [PerfEvent::CallSite as u16, PerfEvent::ThreadStarted as u16].contains(&descriptor.event_type) {
                    self.kept.learn(payload.as_read().valid().map_or(0, <[u8]>::len));
                }
                let catalog = self.catalogs.entry(recorder).or_insert_with(|| capture.catalog(recorder));
                Content::Perf { recorder, record: decode_record(catalog, shard, &descriptor, payload.as_read()) }
            }
            CapturedContent::Event { descriptor, payload } => Content::Other { descriptor, payload },
        };
        let entry = Entry { ring: item.ring, process: ring.process, content };
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
