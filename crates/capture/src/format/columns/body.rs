//! The bytes of a block: its head, the list of its columns, and the columns. All numbers of the head and the list are
//! varints.
//!
//! The head holds these numbers. A *group* is all events of one type.
//!
//! - A number of seven bits. Bits 0 to 3 show which extension words hold ids. Bits 4 to 6 name one more extension word,
//!   by its index plus one: the word that *goes with an id*. In events that have the same id, this word mostly has the
//!   same value, so it is written as a difference (exclusive or). Bits 4 to 6 are 0 if the block has no such word.
//! - The time of the first event (0 if there are no events).
//! - The number of events, of gaps, and of groups.
//! - For each group: its event type, its number of events, its number of fields, and the width of each field.
//!
//! The list of the columns begins with their number. For each column, the list holds a code (which column it is), a
//! group, a form (how numbers are written), a number of parts, and an entry for each part.
//!
//! The entry is twice the part's size in bytes, plus one if the part is compressed. After the entry of a compressed
//! part, the compressed size follows. If a column with planes is compressed, each plane is a part.

use super::layout::{FIELDS_BYTES_MAX, FIELDS_MAX};
use crate::format::header::{BLOCK_BYTES_MAX, RECORDS_MAX};
use crate::format::varint::{put_varint, take_varint};

/// The codes of columns. A column of a group stands once for each group.
pub(super) mod code {
    /// The group of each event: its number in the head.
    pub(in super::super) const GROUP: u64 = 1;
    /// The sequence number of each event.
    pub(in super::super) const SEQNO: u64 = 2;
    /// The places of the ids that are written as a whole, in the order of the events, and of the words of an event.
    pub(in super::super) const NEW_PLACES: u64 = 4;
    /// The generations of these ids, each less the last one of the same place.
    pub(in super::super) const NEW_GENERATIONS: u64 = 5;
    /// The events without a valid payload: their places among the events.
    pub(in super::super) const STATE_EVENTS: u64 = 16;
    /// The payload state of each of these events.
    pub(in super::super) const STATES: u64 = 17;
    /// For each gap, the number of events before it.
    pub(in super::super) const GAP_EVENTS: u64 = 20;
    /// The first seqno of each gap.
    pub(in super::super) const GAP_SEQNOS: u64 = 21;
    /// The number of seqnos of each gap.
    pub(in super::super) const GAP_COUNTS: u64 = 22;
    /// The cause of each gap.
    pub(in super::super) const GAP_CAUSES: u64 = 23;
    /// The values of the block's events, for readers that look for one: see `format/values`. It stands at the end.
    pub(in super::super) const VALUES: u64 = 24;
    /// Payload size of each event of a group.
    pub(in super::super) const SIZE: u64 = 32;
    /// Extension word 0 of each event of a group, unless it holds ids. Words 1 to 3 have the following codes.
    pub(in super::super) const WORDS: u64 = 36;
    /// Code of the id in extension word 0, for each event of a group. Words 1 to 3 have the following codes. The column
    /// is missing if no event has an id there.
    pub(in super::super) const IDS: u64 = 48;
    /// Time of each event of a group, less the time of the event before it in the block (zigzag). It is 0 for the first
    /// event of the block.
    pub(in super::super) const NANOS: u64 = 33;
    /// Bytes of all valid payloads of a group after their fields, one payload after the other.
    pub(in super::super) const BYTES: u64 = 40;
    /// First field of each event of a group. The further fields have the following codes.
    pub(in super::super) const FIELDS: u64 = 64;
}

/// The form of a column that holds bytes, and no numbers.
pub(super) const BYTES_FORM: u8 = 0;

/// The payload states of events without a valid payload, as in the column `STATES`.
pub(super) mod state {
    /// The payload was overwritten before it could be copied.
    pub const EXPIRED: u8 = 1;
    /// The ring cannot have the payload that the descriptor names.
    pub const MALFORMED: u8 = 2;
    /// The payload is too large for a capture.
    pub(in super::super) const OMITTED: u8 = 3;
}

/// The head of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct BodyHead {
    pub(super) id_words: [bool; 4],
    /// The extension word that is written as its difference (exclusive or) from the word that goes with the id.
    pub(super) word_of_id: Option<usize>,
    pub(super) first_nanos: u64,
    pub(super) events: usize,
    pub(super) gaps: usize,
    pub(super) groups: Vec<GroupHead>,
}

/// The head of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct GroupHead {
    pub(super) event_type: u16,
    pub(super) events: usize,
    /// The widths of the fields that are columns.
    pub(super) fields: Vec<usize>,
}

/// A column in the list of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ColumnEntry {
    pub(super) code: u64,
    /// The group's number, or 0 for a column of all events.
    pub(super) group: u64,
    pub(super) form: u8,
    pub(super) parts: Vec<ColumnPart>,
}

/// A part of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ColumnPart {
    /// Size in bytes.
    pub(super) bytes: usize,
    /// Size in bytes as it stands in the block. Smaller than `bytes` if the part is compressed.
    pub(super) stored_bytes: usize,
    pub(super) is_compressed: bool,
}

impl BodyHead {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let words = self.id_words.iter().enumerate();
        let id_words = words.fold(0, |bits, (word, has_ids)| bits | u64::from(*has_ids) << word);
        let id_words = id_words | (self.word_of_id.map_or(0, |word| word as u64 + 1)) << 4;
        for number in [id_words, self.first_nanos, self.events as u64, self.gaps as u64, self.groups.len() as u64] {
            put_varint(out, number);
        }
        for group in &self.groups {
            put_varint(out, group.event_type.into());
            put_varint(out, group.events as u64);
            put_varint(out, group.fields.len() as u64);
            group.fields.iter().for_each(|width| put_varint(out, *width as u64));
        }
    }

    pub(super) fn take(bytes: &mut &[u8]) -> Option<Self> {
        let bits = take_varint(bytes).filter(|bits| *bits < 5 << 4)?;
        let (id_words, word_of_id) = (bits & 0xf, (bits >> 4).checked_sub(1).map(|word| word as usize));
        let first_nanos = take_varint(bytes)?;
        let mut take_count = |max: usize| usize::try_from(take_varint(bytes)?).ok().filter(|count| *count <= max);
        let (events, gaps) = (take_count(RECORDS_MAX)?, take_count(RECORDS_MAX)?);
        let groups = take_count(events)?;
        let groups = (0..groups).map(|_| GroupHead::take(bytes)).collect::<Option<Vec<_>>>()?;
        let id_words = [0, 1, 2, 3].map(|word| id_words >> word & 1 == 1);
        let grouped = groups.iter().fold(0_usize, |sum, group| sum.saturating_add(group.events));
        let is_sound = word_of_id.is_none_or(|word| !id_words[word] && id_words.contains(&true));
        (grouped == events && is_sound).then_some(Self { id_words, word_of_id, first_nanos, events, gaps, groups })
    }
}

impl GroupHead {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let event_type = u16::try_from(take_varint(bytes)?).ok()?;
        let mut take_size = |max: usize| usize::try_from(take_varint(bytes)?).ok().filter(|size| *size <= max);
        let (events, fields) = (take_size(RECORDS_MAX)?, take_size(FIELDS_MAX)?);
        let fields = (0..fields).map(|_| take_size(FIELDS_BYTES_MAX)).collect::<Option<Vec<_>>>()?;
        let fields_bytes = fields.iter().sum::<usize>();
        (fields_bytes <= FIELDS_BYTES_MAX && !fields.contains(&0)).then_some(Self { event_type, events, fields })
    }

    pub(super) fn fields_bytes(&self) -> usize {
        self.fields.iter().sum()
    }
}

impl ColumnEntry {
    /// Returns the size of all parts.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Returns the size of all parts as they stand in the block.
    pub(super) fn stored_bytes(&self) -> usize {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.stored_bytes))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        for number in [self.code, self.group, self.form.into(), self.parts.len() as u64] {
            put_varint(out, number);
        }
        for part in &self.parts {
            put_varint(out, (part.bytes as u64) << 1 | u64::from(part.is_compressed));
            if part.is_compressed {
                put_varint(out, part.stored_bytes as u64);
            }
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (code, group) = (take_varint(bytes)?, take_varint(bytes)?);
        let form = u8::try_from(take_varint(bytes)?).ok()?;
        let parts = take_varint(bytes).filter(|parts| *parts <= 8)?;
        let parts = (0..parts).map(|_| ColumnPart::take(bytes)).collect::<Option<Vec<_>>>()?;
        Some(Self { code, group, form, parts })
    }

    /// Takes the list of columns.
    pub(super) fn take_list(bytes: &mut &[u8]) -> Option<Vec<Self>> {
        // An entry has four bytes at least.
        let count = usize::try_from(take_varint(bytes)?).ok().filter(|count| *count <= bytes.len() / 4)?;
        (0..count).map(|_| Self::take(bytes)).collect()
    }
}

impl ColumnPart {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let size = take_varint(bytes)?;
        let is_compressed = size & 1 == 1;
        let to_size = |size: u64| usize::try_from(size).ok().filter(|size| *size as u64 <= BLOCK_BYTES_MAX);
        let size = to_size(size >> 1)?;
        let stored_bytes = if is_compressed { to_size(take_varint(bytes)?)? } else { size };
        Some(Self { bytes: size, stored_bytes, is_compressed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_entries_come_back_and_shortened_ones_are_refused() {
        let group = GroupHead { event_type: 300, events: 7, fields: vec![8, 4, 32] };
        let id_words = [true, false, false, true];
        let head =
            BodyHead { id_words, word_of_id: Some(2), first_nanos: 1 << 60, events: 7, gaps: 2, groups: vec![group] };
        let parts = vec![
            ColumnPart { bytes: 5000, stored_bytes: 300, is_compressed: true },
            ColumnPart { bytes: 70, stored_bytes: 70, is_compressed: false },
        ];
        let entry = ColumnEntry { code: 70, group: 3, form: 0x25, parts };
        assert_eq!((entry.bytes(), entry.stored_bytes()), (5070, 370));
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        let head_bytes = bytes.len();
        put_varint(&mut bytes, 1);
        entry.put(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(BodyHead::take(&mut rest), Some(head));
        assert_eq!((ColumnEntry::take_list(&mut rest), rest), (Some(vec![entry]), &[][..]));
        for end in 0..head_bytes {
            assert_eq!(BodyHead::take(&mut &bytes[..end]), None, "{end}");
        }
        for end in head_bytes..bytes.len() {
            assert_eq!(ColumnEntry::take_list(&mut &bytes[head_bytes..end]), None, "{end}");
        }
    }

    #[test]
    fn a_head_whose_groups_do_not_add_up_is_refused() {
        let group = |events| GroupHead { event_type: 1, events, fields: Vec::new() };
        let taken = |events, groups| {
            let mut bytes = Vec::new();
            BodyHead { events, groups, ..BodyHead::default() }.put(&mut bytes);
            BodyHead::take(&mut &bytes[..]).is_some()
        };
        assert!(taken(3, vec![group(1), group(2)]));
        assert!(!taken(3, vec![group(1), group(1)]) && !taken(RECORDS_MAX + 1, vec![group(RECORDS_MAX + 1)]));
    }
}
