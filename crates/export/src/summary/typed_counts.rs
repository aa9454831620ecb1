//! Counts of typed events, by type.

use eventring::reader::Descriptor;
use eventring_capture::recording::RecordedRings;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// The typed events of one type.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct EventSummary {
    /// The name of the type; `event 7` if the schema of its ring is not known.
    pub name: String,
    /// The name of its content type; empty if the schema of its ring is not known.
    pub content: String,
    /// The code of the type.
    pub code: u16,
    /// The number of events.
    pub count: u64,
    /// The sum of the sizes of their payloads in bytes. A payload that has expired counts, too.
    pub payload_bytes: u64,
    /// The number of events for each second between the first one and the last one; `None` if no time lies between
    /// them.
    pub per_second: Option<f64>,
    /// The time of the first event, in nanoseconds since the epoch.
    #[serde(skip)]
    pub first_nanos: u64,
    /// The time of the last event, in nanoseconds since the epoch.
    #[serde(skip)]
    pub last_nanos: u64,
}

/// Counts typed events.
#[derive(Default)]
pub(crate) struct TypedCounts {
    types: Vec<EventSummary>,
    /// By content, name and code.
    by_name: HashMap<(String, String, u16), usize>,
    /// The index of the type of each ring and code.
    known: HashMap<(u32, u16), usize>,
}

impl TypedCounts {
    /// Counts an event. Returns the bytes that are kept for it.
    pub(crate) fn add(&mut self, rings: &RecordedRings, ring: u32, event: &Descriptor) -> u64 {
        let (index, kept_bytes) = match self.known.get(&(ring, event.event_type)) {
            Some(known) => (*known, 0),
            None => self.find(rings, ring, event),
        };
        let counted = &mut self.types[index];
        counted.count += 1;
        counted.payload_bytes = counted.payload_bytes.saturating_add(event.payload_size.into());
        counted.first_nanos = counted.first_nanos.min(event.record_epoch_nanos);
        counted.last_nanos = counted.last_nanos.max(event.record_epoch_nanos);
        kept_bytes
    }

    #[cold]
    fn find(&mut self, rings: &RecordedRings, ring: u32, event: &Descriptor) -> (usize, u64) {
        let code = event.event_type;
        let (name, content) = (rings.event_name(ring, code).into_owned(), rings.content_name(ring).to_owned());
        let kept_bytes = 256 + 2 * (name.len() + content.len()) as u64;
        let types = &mut self.types;
        let index = *self.by_name.entry((content, name, code)).or_insert_with_key(|(content, name, code)| {
            types.push(EventSummary {
                name: name.clone(),
                content: content.clone(),
                code: *code,
                first_nanos: u64::MAX,
                ..EventSummary::default()
            });
            types.len() - 1
        });
        self.known.insert((ring, code), index);
        (index, kept_bytes)
    }

    /// Returns the types, those with the most events first.
    pub(crate) fn finish(mut self) -> Vec<EventSummary> {
        for of_type in &mut self.types {
            let nanos = of_type.last_nanos.saturating_sub(of_type.first_nanos);
            of_type.per_second = (nanos > 0).then(|| (of_type.count - 1) as f64 * 1e9 / nanos as f64);
        }
        self.types.sort_by(|a, b| {
            b.count.cmp(&a.count).then_with(|| (&a.name, &a.content, a.code).cmp(&(&b.name, &b.content, b.code)))
        });
        self.types
    }
}
