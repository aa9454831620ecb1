//! The *tables of the present* (lists of a program's open spans) may have no room for all fields of a span. This module
//! reads the other fields from the rings, if they are still there.

use eventring::now::SpanCell;
use eventring::reader::{Cursor, Descriptor, Next, Reader, Seek};
use eventring::schema::perf::{PerfEvent, RawFields};
use std::collections::HashMap;

/// What was recorded after the begins of spans, with its time, by span id.
type Recorded = HashMap<u64, Vec<(u64, Vec<u8>)>>;

/// The fields of spans in the rings of a recorder.
#[derive(Debug)]
pub(crate) struct FieldsInRings {
    shards: HashMap<u32, (Reader, Option<Cursor>)>,
    /// What was recorded after the begins of spans, in the order of time; `None` before somebody asks.
    recorded: Option<Recorded>,
    buffer: Vec<u8>,
}

impl FieldsInRings {
    /// Looks in these shards of a recorder.
    pub(crate) fn new<'r>(shards: impl Iterator<Item = (u32, Option<&'r Reader>)>) -> Self {
        let shards = shards.filter_map(|(shard, reader)| Some((shard, (reader?.clone(), None)))).collect();
        Self { shards, recorded: None, buffer: Vec::new() }
    }

    /// Returns the fields of a span, if the rings have more of them than its cell.
    pub(crate) fn of(&mut self, span: &SpanCell) -> Option<Vec<u8>> {
        if !span.has_recorded() {
            let has_all = RawFields::new(span.fields()).count() >= usize::from(span.field_count);
            return if has_all { None } else { self.of_begin(span) };
        }
        let begun = self.of_begin(span);
        let later = self.recorded().get(&span.id)?.iter().map(|(_, payload)| payload.as_slice());
        let begun = begun.unwrap_or_else(|| span.fields().to_vec());
        Some(merged([begun.as_slice()].into_iter().chain(later)))
    }

    /// Returns the fields of the begin of a span, if its ring still has it.
    fn of_begin(&mut self, span: &SpanCell) -> Option<Vec<u8>> {
        let (shard, seqno) = span.begun_at;
        let (reader, cursor) = self.shards.get_mut(&(shard as u32))?;
        let cursor = cursor.get_or_insert_with(|| reader.cursor());
        cursor.seek(Seek::Seqno(seqno));
        let Next::Event(event) = cursor.next() else { return None };
        let is_it = event.event_type == PerfEvent::SpanNew as u16 && event.content_ext[0] == span.id;
        let payload = cursor.payload(&event, &mut self.buffer).valid().filter(|_| is_it)?;
        Some(payload.to_vec())
    }

    /// Reads all that was recorded after begins, once.
    fn recorded(&mut self) -> &Recorded {
        let Self { shards, recorded, buffer } = self;
        recorded.get_or_insert_with(|| {
            let mut found = Recorded::new();
            for (reader, _) in shards.values() {
                read_recorded(reader, buffer, |event, payload| {
                    let of_span = found.entry(event.content_ext[0]).or_default();
                    of_span.push((event.record_epoch_nanos, payload.to_vec()));
                });
            }
            found.values_mut().for_each(|of_span| of_span.sort_by_key(|(epoch_nanos, _)| *epoch_nanos));
            found
        })
    }
}

fn read_recorded(reader: &Reader, buffer: &mut Vec<u8>, mut found: impl FnMut(&Descriptor, &[u8])) {
    let last = reader.info().last_seqno;
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    while cursor.next_seqno() <= last {
        match cursor.next() {
            Next::Event(event) if event.event_type == PerfEvent::SpanRecord as u16 => {
                if let Some(payload) = cursor.payload(&event, buffer).valid() {
                    found(&event, payload);
                }
            }
            Next::Event(_) | Next::Gap(_) => {}
            Next::NotReady => break,
        }
    }
}

/// Returns the last value of each field.
fn merged<'p>(payloads: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut fields: Vec<(u8, &[u8])> = Vec::new();
    for payload in payloads {
        let (mut raw, mut start) = (RawFields::new(payload), 0);
        while let Some(Ok(field)) = raw.next() {
            let bytes = &payload[start..raw.offset()];
            start = raw.offset();
            match fields.iter_mut().find(|(index, _)| *index == field.index) {
                Some((_, known)) => *known = bytes,
                None => fields.push((field.index, bytes)),
            }
        }
    }
    fields.into_iter().flat_map(|(_, bytes)| bytes).copied().collect()
}
