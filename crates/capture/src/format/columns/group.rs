//! A group: the events of a block that have one type, and their columns.

use super::body::{BYTES_FORM, GroupHead, code};
use super::ints::PutForm;
use super::layout::RingLayout;
use super::put::PutColumns;
use crate::format::block_records::{BlockRecords, RecordRange};
use std::io;

/// The least number of events for which that pays.
const EQUAL_PAYLOADS_MIN: usize = 32;
/// The largest payload in which fields are looked for that the layout does not know.
const EQUAL_PAYLOAD_BYTES_MAX: usize = 128;

/// The events of one type.
#[derive(Default)]
pub(super) struct EventGroup {
    event_type: u16,
    /// The places of the events among the events of the block.
    pub(super) events: Vec<u32>,
    /// The widths of the fields that become columns. Every event has a valid payload that has all of them.
    fields: Vec<usize>,
}

/// The part of a block that its groups have in common.
#[derive(Clone, Copy)]
pub(super) struct OfBlock<'b> {
    pub(super) records: &'b BlockRecords,
    pub(super) part: &'b RecordRange,
    pub(super) layout: &'b RingLayout,
    /// For each event of the part, its time less that of the event before it (zigzag).
    pub(super) nanos: &'b [u64],
    /// For each extension word that holds ids, the code of each event.
    pub(super) codes: &'b [Vec<u8>; 4],
    /// For each event of the part, the word that goes with its id, as far as it is not predicted. Empty if the layout
    /// has no such word.
    pub(super) rests: &'b [u64],
}

/// A finder of the number of an event type's group. The types of a block get numbers in the order in which they come.
pub(super) struct GroupFinder {
    types: Vec<u16>,
    /// The number of the group of a type with this low byte, if it was the last one looked up.
    recent: [u16; 256],
}

impl Default for GroupFinder {
    fn default() -> Self {
        Self { types: Vec::new(), recent: [0; 256] }
    }
}

impl GroupFinder {
    pub(super) fn clear(&mut self) {
        self.types.clear();
    }

    /// Returns the number of a type's group. A new type gets the next number.
    #[inline]
    pub(super) fn number(&mut self, event_type: u16) -> usize {
        let recent = &mut self.recent[usize::from(event_type) % 256];
        if self.types.get(usize::from(*recent)) == Some(&event_type) {
            return usize::from(*recent);
        }
        let number = self.types.iter().position(|known| *known == event_type).unwrap_or_else(|| {
            self.types.push(event_type);
            self.types.len() - 1
        });
        *recent = number as u16;
        number
    }
}

impl EventGroup {
    pub(super) fn begin(&mut self, event_type: u16) {
        self.event_type = event_type;
        self.events.clear();
    }

    /// Finds the fields of the events: those that the layout knows, if all events have them, and otherwise what the
    /// payloads show.
    pub(super) fn find_fields(&mut self, records: &BlockRecords, part: &RecordRange, layout: &RingLayout) {
        let payload = |event: &u32| records.events.payload(part.events.start + *event as usize).valid();
        let known = layout.fields(self.event_type);
        let bytes: usize = known.iter().sum();
        let have_known = || self.events.iter().all(|event| payload(event).is_some_and(|it| it.len() >= bytes));
        self.fields = if bytes > 0 && have_known() {
            known.to_vec()
        } else if self.events.len() >= EQUAL_PAYLOADS_MIN {
            fields_of_equal_payloads(self.events.iter().map(payload)).unwrap_or_default()
        } else {
            Vec::new()
        };
    }

    pub(super) fn head(&self) -> GroupHead {
        GroupHead { event_type: self.event_type, events: self.events.len(), fields: self.fields.clone() }
    }

    /// Makes the columns of the group.
    pub(super) fn put(
        &self,
        number: u64,
        of_block: &OfBlock<'_>,
        columns: &mut impl PutColumns,
        values: &mut Vec<u64>,
    ) -> io::Result<()> {
        let OfBlock { records, part, layout, nanos, codes, rests } = *of_block;
        let descriptors = &records.events.descriptors()[part.events.clone()];
        let of_group = || self.events.iter().map(|event| &descriptors[*event as usize]);
        values.clear();
        values.extend(of_group().map(|descriptor| u64::from(descriptor.payload_size)));
        columns.put_values(code::SIZE, number, values)?;
        values.clear();
        values.extend(self.events.iter().map(|event| nanos[*event as usize]));
        columns.put_values(code::NANOS, number, values)?;
        for word in (0..4).filter(|word| layout.id_words[*word]) {
            let of_group = self.events.iter().map(|event| codes[word][*event as usize]);
            if of_group.clone().any(|code| code != 0) {
                columns.put_with(code::IDS + word as u64, number, |out, _| {
                    out.extend(of_group);
                    PutForm::plain(BYTES_FORM)
                })?;
            }
        }
        for word in (0..4).filter(|word| !layout.id_words[*word]) {
            values.clear();
            if layout.word_of_id == Some(word) {
                values.extend(self.events.iter().map(|event| rests[*event as usize]));
            } else if of_group().any(|descriptor| descriptor.content_ext[word] != 0) {
                values.extend(of_group().map(|descriptor| descriptor.content_ext[word]));
            }
            // The words of most events are 0, and such a column is not written.
            if values.iter().any(|value| *value != 0) {
                columns.put_values(code::WORDS + word as u64, number, values)?;
            }
        }
        let payloads = || {
            let indices = self.events.iter().map(|event| part.events.start + *event as usize);
            indices.filter_map(|index| records.events.payload(index).valid())
        };
        let mut offset = 0;
        for (field, width) in self.fields.iter().copied().enumerate() {
            let code = code::FIELDS + field as u64;
            let of_field = payloads().map(|payload| &payload[offset..][..width]);
            if width <= 8 {
                values.clear();
                values.extend(of_field.map(number_of));
                columns.put_values(code, number, values)?;
            } else {
                columns.put_with(code, number, |out, _| {
                    of_field.for_each(|bytes| out.extend_from_slice(bytes));
                    PutForm::plain(BYTES_FORM)
                })?;
            }
            offset += width;
        }
        let fields_bytes = offset;
        if payloads().any(|payload| payload.len() > fields_bytes) {
            columns.put_with(code::BYTES, number, |out, _| {
                payloads().for_each(|payload| out.extend_from_slice(&payload[fields_bytes..]));
                PutForm::plain(BYTES_FORM)
            })?;
        }
        Ok(())
    }
}

/// Returns the fields of payloads whose fields nobody knows: runs of bytes that are the same in all of them, and runs
/// of bytes that are not. The log records of a hot loop are such payloads: what describes a number is always the same,
/// and so are its high bytes. Returns `None` if the payloads have not the same size, or if one is missing or large.
fn fields_of_equal_payloads<'p>(mut payloads: impl Iterator<Item = Option<&'p [u8]>>) -> Option<Vec<usize>> {
    let first = payloads.next()??;
    if first.is_empty() || first.len() > EQUAL_PAYLOAD_BYTES_MAX {
        return None;
    }
    let mut differences = vec![0; first.len()];
    for payload in payloads {
        let payload = payload.filter(|payload| payload.len() == first.len())?;
        differences.iter_mut().zip(first.iter().zip(payload)).for_each(|(seen, (first, this))| *seen |= first ^ this);
    }
    let runs = differences.chunk_by(|one, next| (*one == 0) == (*next == 0));
    // A number that is always the same takes no bytes for each event, and has at most eight.
    let widths = runs.flat_map(|run| run.chunks(if run[0] == 0 { 8 } else { run.len() }).map(<[u8]>::len));
    Some(widths.collect())
}

/// Returns a field of at most eight bytes as a number, little endian.
#[inline]
fn number_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
