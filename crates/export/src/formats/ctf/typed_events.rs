//! The events of a ring that is no perf ring.

use super::identifiers::Identifiers;
use super::metadata::{Metadata, put_text};
use super::payload;
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::{ExtWordKind, Shape};
use eventring::tracing::SpanId;
use eventring_capture::recording::CaptureRecording;
use std::collections::{HashMap, HashSet};
use std::io;

/// The number of an event class is the event's code, plus this number if the event has the payload as a text of JSON.
const AS_JSON: u32 = 1 << 16;
/// The number of an event class is the event's code, plus this number if the event has lost its payload.
const LOST: u32 = 1 << 17;

/// The estimated number of bytes that are kept for an event class, and for a part of its structure.
const CLASS_BYTES: u64 = 256;
const PART_BYTES: u64 = 96;

/// The classes of events of one ring, and the event that is being written.
pub(super) struct TypedEvents<'r> {
    recording: &'r CaptureRecording<'r>,
    ring: u32,
    /// The structure of the payload by the event's code; `None` if it is not known or too large.
    shapes: HashMap<u16, Option<Shape<'r>>>,
    /// The numbers of the event classes that the metadata has.
    classes: HashSet<u32>,
    kept_bytes: u64,
    /// The bytes of the event that was encoded last, from its context on.
    pub(super) content: Vec<u8>,
}

impl<'r> TypedEvents<'r> {
    pub(super) fn of_ring(recording: &'r CaptureRecording<'r>, ring: u32) -> Self {
        Self { recording, ring, shapes: HashMap::new(), classes: HashSet::new(), kept_bytes: 0, content: Vec::new() }
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    /// Returns the number of the class of the ring's streams.
    pub(super) fn stream_class(&self) -> u32 {
        self.ring + 1
    }

    /// Returns the declarations of the fields that each event has before its own fields.
    pub(super) fn context(&self) -> String {
        let mut identifiers = Identifiers::default();
        let mut text = String::new();
        let mut put = |ty: &str, name: &str| text.push_str(&format!("{ty} {}; ", identifiers.add(name)));
        put("uint32_t", "vpid");
        put("uint64_t", "span_id");
        put("uint64_t", "seqno");
        put("uint16_t", "code");
        let words = self.recording.rings().words(self.ring);
        for (_, word) in words.iter_own() {
            put(if word.kind() == ExtWordKind::Index { "int64_t" } else { "uint64_t" }, &word.key());
        }
        if self.recording.ring(self.ring).is_exec() {
            put("int64_t", "block_number");
        }
        if self.has_nameless_words() {
            text.push_str(&format!("uint64_t {}[4]; ", identifiers.add("content_ext")));
        }
        text
    }

    /// Returns true if an extension word has no name. Then the events have all words under `content_ext`.
    fn has_nameless_words(&self) -> bool {
        self.recording.rings().words(self.ring).iter().count() < 4
    }

    /// Encodes an event into [`Self::content`], and returns the number of its class.
    pub(super) fn encode(
        &mut self,
        pid: u32,
        descriptor: &Descriptor,
        (payload, block_number): (PayloadRead<'_>, Option<u64>),
        metadata: &mut Metadata,
    ) -> io::Result<u32> {
        self.content.clear();
        self.put_context(pid, descriptor, block_number);
        let (model, code) = (self.recording.rings().model(self.ring), descriptor.event_type);
        let PayloadRead::Valid(bytes) = payload else {
            let problem = if matches!(payload, PayloadRead::Expired) { "expired" } else { "malformed" };
            put_text(&mut self.content, problem);
            return self.class(u32::from(code) + LOST, code, metadata, |_| "string _payload_problem; ".into());
        };
        let shape = self.shapes.entry(code).or_insert_with(|| {
            let shape = model.and_then(|model| model.payload_shape(code));
            self.kept_bytes += CLASS_BYTES + PART_BYTES * shape.as_ref().map_or(0, payload::parts);
            shape
        });
        let value = decode_event(model, code, bytes);
        let start = self.content.len();
        if shape.as_ref().is_some_and(|shape| payload::put(shape, &value, &mut self.content)) {
            return self.class(code.into(), code, metadata, |shape| match shape {
                Some(Shape::Struct(fields)) => payload::declarations(fields),
                _ => String::new(),
            });
        }
        self.content.truncate(start);
        put_text(&mut self.content, &serde_json::to_string(&value)?);
        self.class(u32::from(code) + AS_JSON, code, metadata, |_| "string _payload_json; ".into())
    }

    fn put_context(&mut self, pid: u32, descriptor: &Descriptor, block_number: Option<u64>) {
        let rings = self.recording.rings();
        let words = rings.words(self.ring);
        let out = &mut self.content;
        out.extend(pid.to_le_bytes());
        out.extend(rings.span(self.ring, descriptor).map_or(0, SpanId::get).to_le_bytes());
        out.extend(descriptor.seqno.to_le_bytes());
        out.extend(descriptor.event_type.to_le_bytes());
        for (index, word) in words.iter_own() {
            // The index −1 stands for none.
            out.extend(word.value(descriptor.content_ext[index]).unwrap_or(u64::MAX).to_le_bytes());
        }
        if self.recording.ring(self.ring).is_exec() {
            out.extend(block_number.unwrap_or(u64::MAX).to_le_bytes());
        }
        if self.has_nameless_words() {
            self.content.extend(descriptor.content_ext.iter().flat_map(|word| word.to_le_bytes()));
        }
    }

    /// Describes an event class if the metadata does not have it yet. Returns its number.
    fn class(
        &mut self,
        id: u32,
        code: u16,
        metadata: &mut Metadata,
        declarations: impl FnOnce(Option<&Shape<'_>>) -> String,
    ) -> io::Result<u32> {
        if self.classes.insert(id) {
            self.kept_bytes += CLASS_BYTES;
            let shape = self.shapes.get(&code).and_then(Option::as_ref);
            let name = self.recording.rings().event_name(self.ring, code);
            metadata.event_class(self.stream_class(), id, &name, &declarations(shape))?;
        }
        Ok(id)
    }
}
