//! Making the events and gaps of a block from its columns. Nothing in the bytes is trusted. For damaged bytes, the
//! functions return `None`.

use super::body::{BYTES_FORM, BodyHead, ColumnEntry, ColumnPart, GroupHead, code, state};
use super::ids::{IdReader, NewIds};
use super::ints::take_ints;
use crate::format::block_records::{BlockRecords, PlacedGap};
use crate::format::header::{BLOCK_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::format::varint::unzigzag;
use eventring::reader::{Descriptor, EventBatch, Gap, GapCause, PayloadPlace};
use std::borrow::Cow;
use std::cell::RefCell;

/// The payloads that a reader wants. Other payloads are not decoded: they count as expired.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PayloadsWanted {
    All,
    /// The payloads of events of these types.
    OfTypes(&'static [u16]),
}

/// Decodes the bytes of a block. `column_bytes` is the size of all columns before compression, as the header of the
/// block states it. The result has at most [`BLOCK_BYTES_MAX`] bytes of payloads.
pub(crate) fn decode(mut bytes: &[u8], ring: u32, column_bytes: u64, wanted: PayloadsWanted) -> Option<BlockRecords> {
    let head = BodyHead::take(&mut bytes)?;
    let columns = ColumnsRead::new(bytes, column_bytes)?;
    let mut descriptors = vec![Descriptor::default(); head.events];
    let mut values = Vec::new();
    columns.ints(code::SEQNO, 0, head.events, &mut values)?;
    descriptors.iter_mut().zip(&values).for_each(|(descriptor, seqno)| descriptor.seqno = *seqno);
    let groups = events_of_groups(&columns, &head)?;
    for (number, (group, events)) in head.groups.iter().zip(&groups).enumerate() {
        events.iter().for_each(|event| descriptors[*event as usize].event_type = group.event_type);
        columns.ints(code::SIZE, number as u64, events.len(), &mut values)?;
        for (event, size) in events.iter().zip(&values) {
            descriptors[*event as usize].payload_size = u32::try_from(*size).ok()?;
        }
        columns.ints(code::NANOS, number as u64, events.len(), &mut values)?;
        for (event, difference) in events.iter().zip(&values) {
            descriptors[*event as usize].record_epoch_nanos = *difference;
        }
        for word in (0..4).filter(|word| !head.id_words[*word]) {
            let code = code::WORDS + word as u64;
            if columns.find(code, number as u64).is_some() {
                columns.ints(code, number as u64, events.len(), &mut values)?;
                for (event, value) in events.iter().zip(&values) {
                    descriptors[*event as usize].content_ext[word] = *value;
                }
            }
        }
    }
    let mut nanos = head.first_nanos;
    for descriptor in &mut descriptors {
        nanos = nanos.wrapping_add(unzigzag(descriptor.record_epoch_nanos));
        descriptor.record_epoch_nanos = nanos;
    }
    take_ids(&columns, &head, &groups, &mut descriptors)?;
    let mut payloads = Payloads { places: states(&columns, head.events)?, bytes: Vec::new() };
    for (number, (group, events)) in head.groups.iter().zip(&groups).enumerate() {
        let is_wanted = match wanted {
            PayloadsWanted::All => true,
            PayloadsWanted::OfTypes(types) => types.contains(&group.event_type),
        };
        if is_wanted {
            payloads.take(&columns, number as u64, group, events, &descriptors)?;
        } else {
            events.iter().for_each(|event| payloads.places[*event as usize].leave_unread());
        }
    }
    let events = EventBatch::from_parts(descriptors, payloads.places, payloads.bytes);
    Some(BlockRecords { ring, events, gaps: take_gaps(&columns, &head)? })
}

/// The columns of a block.
struct ColumnsRead<'b> {
    /// The entries, each with the place of its column in `data`. In ascending order of group and code.
    entries: Vec<(ColumnEntry, usize)>,
    data: &'b [u8],
    decompressor: RefCell<zstd::bulk::Decompressor<'static>>,
}

impl<'b> ColumnsRead<'b> {
    /// Takes the list of columns and then the columns.
    fn new(mut bytes: &'b [u8], column_bytes: u64) -> Option<Self> {
        let list = ColumnEntry::take_list(&mut bytes)?;
        let (mut stored, mut plain) = (0_usize, 0_u64);
        let mut entries: Vec<(ColumnEntry, usize)> = Vec::with_capacity(list.len());
        for entry in list {
            entries.push((entry, stored));
            let (entry, _) = &entries[entries.len() - 1];
            stored = stored.checked_add(entry.stored_bytes())?;
            plain = plain.checked_add(entry.bytes() as u64)?;
        }
        entries.sort_unstable_by_key(|(entry, _)| (entry.group, entry.code));
        let is_twice = entries.windows(2).any(|pair| {
            let [(a, _), (b, _)] = pair else { return false };
            (a.group, a.code) == (b.group, b.code)
        });
        let is_whole = stored == bytes.len() && plain == column_bytes && plain <= BLOCK_BYTES_MAX;
        let decompressor = RefCell::new(zstd::bulk::Decompressor::new().ok()?);
        (is_whole && !is_twice).then_some(Self { entries, data: bytes, decompressor })
    }

    fn find(&self, code: u64, group: u64) -> Option<&(ColumnEntry, usize)> {
        let found = self.entries.binary_search_by_key(&(group, code), |(entry, _)| (entry.group, entry.code));
        found.ok().map(|index| &self.entries[index])
    }

    /// Returns the bytes of a column and its form. Returns `None` if there is no such column, or if it is damaged.
    fn bytes(&self, code: u64, group: u64) -> Option<(u8, Cow<'b, [u8]>)> {
        let (entry, place) = self.find(code, group)?;
        let mut stored = self.data.get(*place..)?.get(..entry.stored_bytes())?;
        if let [ColumnPart { is_compressed: false, .. }] = entry.parts.as_slice() {
            return Some((entry.form, stored.into()));
        }
        let mut bytes = Vec::with_capacity(entry.bytes());
        for part in &entry.parts {
            let (of_part, later) = stored.split_at_checked(part.stored_bytes)?;
            stored = later;
            if part.is_compressed {
                let plain = self.decompressor.borrow_mut().decompress(of_part, part.bytes).ok()?;
                bytes.extend_from_slice(Some(&plain).filter(|plain| plain.len() == part.bytes)?);
            } else {
                bytes.extend_from_slice(of_part);
            }
        }
        Some((entry.form, bytes.into()))
    }

    /// Replaces `values` by a column of `count` numbers.
    fn ints(&self, code: u64, group: u64, count: usize, values: &mut Vec<u64>) -> Option<()> {
        values.clear();
        let (form, bytes) = self.bytes(code, group)?;
        take_ints(form, &bytes, count, values)
    }

    /// Returns a column of bytes.
    fn plain(&self, code: u64, group: u64) -> Option<Cow<'b, [u8]>> {
        let (form, bytes) = self.bytes(code, group)?;
        (form == BYTES_FORM).then_some(bytes)
    }
}

fn take_ids(
    columns: &ColumnsRead<'_>,
    head: &BodyHead,
    groups: &[Vec<u32>],
    descriptors: &mut [Descriptor],
) -> Option<()> {
    if head.id_words == [false; 4] {
        return Some(());
    }
    let mut codes: [Vec<u8>; 4] = Default::default();
    let mut new_ids = 0;
    for word in (0..4).filter(|word| head.id_words[*word]) {
        codes[word].resize(head.events, 0);
        for (number, events) in groups.iter().enumerate() {
            let code = code::IDS + word as u64;
            if columns.find(code, number as u64).is_none() {
                continue;
            }
            let of_group = columns.plain(code, number as u64)?;
            if of_group.len() != events.len() {
                return None;
            }
            events.iter().zip(of_group.iter()).for_each(|(event, code)| codes[word][*event as usize] = *code);
        }
        new_ids += IdReader::count_new(&codes[word]);
    }
    let mut written = NewIds::default();
    columns.ints(code::NEW_PLACES, 0, new_ids, &mut written.places)?;
    columns.ints(code::NEW_GENERATIONS, 0, new_ids, &mut written.generations)?;
    let mut ids = IdReader::new(&written);
    let id_word = head.id_words.iter().position(|has_ids| *has_ids).unwrap_or(0);
    for (event, descriptor) in descriptors.iter_mut().enumerate() {
        for word in (0..4).filter(|word| head.id_words[*word]) {
            let code = codes[word][event];
            descriptor.content_ext[word] = ids.id(code)?;
            if let Some(with_id) = head.word_of_id.filter(|_| word == id_word) {
                let rest = descriptor.content_ext[with_id];
                descriptor.content_ext[with_id] = rest ^ ids.word_of(code, rest);
            }
        }
    }
    Some(())
}

/// Returns, for each group, the places of its events among the events of the block.
fn events_of_groups(columns: &ColumnsRead<'_>, head: &BodyHead) -> Option<Vec<Vec<u32>>> {
    if let [group] = head.groups.as_slice() {
        return Some(vec![(0..group.events as u32).collect()]);
    }
    let mut groups: Vec<Vec<u32>> = head.groups.iter().map(|group| Vec::with_capacity(group.events)).collect();
    if head.events > 0 {
        let mut numbers = Vec::new();
        columns.ints(code::GROUP, 0, head.events, &mut numbers)?;
        for (event, number) in numbers.into_iter().enumerate() {
            groups.get_mut(usize::try_from(number).ok()?)?.push(event as u32);
        }
    }
    let is_right = groups.iter().zip(&head.groups).all(|(events, group)| events.len() == group.events);
    is_right.then_some(groups)
}

/// Returns the payload state of each event. A valid payload has the place 0 for now.
fn states(columns: &ColumnsRead<'_>, events: usize) -> Option<Vec<PayloadPlace>> {
    let mut places = vec![PayloadPlace::from_offset(0); events];
    if columns.find(code::STATES, 0).is_none() {
        return Some(places);
    }
    let states = columns.plain(code::STATES, 0)?;
    let mut values = Vec::new();
    columns.ints(code::STATE_EVENTS, 0, states.len(), &mut values)?;
    for (event, state) in values.into_iter().zip(states.iter()) {
        let place = places.get_mut(usize::try_from(event).ok()?)?;
        *place = match *state {
            state::EXPIRED => PayloadPlace::EXPIRED,
            state::MALFORMED => PayloadPlace::MALFORMED,
            state::OMITTED => PayloadPlace::LEFT_OUT,
            _ => return None,
        };
    }
    Some(places)
}

/// The payloads of a block.
struct Payloads {
    places: Vec<PayloadPlace>,
    bytes: Vec<u8>,
}

impl Payloads {
    /// Takes the payloads of a group.
    fn take(
        &mut self,
        columns: &ColumnsRead<'_>,
        number: u64,
        group: &GroupHead,
        events: &[u32],
        descriptors: &[Descriptor],
    ) -> Option<()> {
        let fields_bytes = group.fields_bytes();
        let start = self.bytes.len();
        let (mut end, mut rest_bytes, mut valid) = (start, 0_usize, 0_usize);
        for event in events {
            let size = descriptors[*event as usize].payload_size as usize;
            let place = &mut self.places[*event as usize];
            if !place.is_valid() {
                continue;
            }
            *place = PayloadPlace::from_offset(end as u32);
            valid += 1;
            end += size;
            rest_bytes += size.checked_sub(fields_bytes)?;
            if size > PAYLOAD_BYTES_MAX || end as u64 > BLOCK_BYTES_MAX {
                return None;
            }
        }
        let rest = if rest_bytes > 0 { columns.plain(code::BYTES, number)? } else { Cow::default() };
        if rest.len() != rest_bytes {
            return None;
        }
        if fields_bytes == 0 {
            self.bytes.extend_from_slice(&rest);
            return Some(());
        }
        self.bytes.resize(end, 0);
        let mut offset = 0;
        let mut values = Vec::new();
        let places = || events.iter().map(|event| self.places[*event as usize]).filter(|place| place.is_valid());
        for (field, width) in group.fields.iter().copied().enumerate() {
            let code = code::FIELDS + field as u64;
            if width <= 8 {
                columns.ints(code, number, valid, &mut values)?;
                for (place, value) in places().zip(&values) {
                    self.bytes[place.offset() + offset..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
                }
            } else {
                let column = columns.plain(code, number)?;
                if column.len() != width.checked_mul(valid)? {
                    return None;
                }
                for (place, value) in places().zip(column.chunks_exact(width)) {
                    self.bytes[place.offset() + offset..][..width].copy_from_slice(value);
                }
            }
            offset += width;
        }
        let mut rest = &rest[..];
        for event in events.iter().filter(|event| self.places[**event as usize].is_valid()) {
            let size = descriptors[*event as usize].payload_size as usize - fields_bytes;
            let (bytes, later) = rest.split_at_checked(size)?;
            rest = later;
            let place = self.places[*event as usize].offset() + fields_bytes;
            self.bytes[place..][..size].copy_from_slice(bytes);
        }
        Some(())
    }
}

fn take_gaps(columns: &ColumnsRead<'_>, head: &BodyHead) -> Option<Vec<PlacedGap>> {
    if head.gaps == 0 {
        return Some(Vec::new());
    }
    let mut read: [Vec<u64>; 4] = Default::default();
    let codes = [code::GAP_EVENTS, code::GAP_SEQNOS, code::GAP_COUNTS, code::GAP_CAUSES];
    for (code, values) in codes.into_iter().zip(&mut read) {
        columns.ints(code, 0, head.gaps, values)?;
    }
    let [before, seqnos, counts, causes] = read;
    let mut gaps = Vec::with_capacity(head.gaps);
    for (index, events_before) in before.into_iter().enumerate() {
        let cause = *GapCause::OF_RINGS.get(usize::try_from(causes[index]).ok()?)?;
        let gap = Gap { first_seqno: seqnos[index], count: counts[index], cause };
        let events_before = usize::try_from(events_before).ok().filter(|before| *before <= head.events)?;
        gaps.push(PlacedGap { events_before, gap });
    }
    gaps.is_sorted_by_key(|gap| gap.events_before).then_some(gaps)
}
