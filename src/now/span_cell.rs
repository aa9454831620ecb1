//! The cell of an open span. The module defines the words of the cell, and writes and reads them.
//!
//! | word | bits | |
//! |---|---|---|
//! | 0 | 0–52 | span id; the index of the cell is bits 0 to 23. 0 if the cell was never used |
//! | 0 | 63 | the span has ended |
//! | 1 | | span id of the parent, or 0 |
//! | 2 | | time of the begin, nanoseconds since the epoch |
//! | 3 | 0–44 | time at which a thread has entered or left the span: nanoseconds since the begin, plus 1; with bit 45, units of 1024 ns. All zero if no thread was in the span |
//! | 3 | 45 | the time in bits 0–44 is in units of 1024 ns |
//! | 3 | 46 | other threads have entered the span while the thread was in it |
//! | 3 | 47 | the thread is in the span |
//! | 3 | 48–63 | the low bits of that thread's id |
//! | 4 | 0–31 | id of the call site |
//! | 4 | 32–47 | flags of the SPAN_NEW event, [`HAS_ERROR`] and [`HAS_RECORDED`] |
//! | 4 | 48–55 | number of the event's fields; 255 if there are more |
//! | 4 | 56–63 | bytes of fields in words 6 and 7: 16, or all that there are |
//! | 5 | 0–52 | seqno of the SPAN_NEW event |
//! | 5 | 53–63 | index of the shard that has it |
//! | 6, 7 | | the first bytes of the fields, encoded as in the event. The last field may be cut |
//!
//! **Order.** Word 0 is stored last when a span begins, and first when it ends. A reader loads word 0 before and after
//! the other words. If both values are equal, and bit 63 is clear, the other words belong to this span.
//!
//! Word 3 changes while the span is open. It holds all that is stored of an enter or exit, so a reader never gets a
//! mixture of two.
//!
//! Word 3 describes the thread that entered first, until this thread leaves the span. So it names the thread that polls
//! a task.

use crate::layout::now::CELL_WORDS;
use crate::ring::mutation::{self, Mutation};
use crate::sync::{AtomicU64, Ordering, fence};

/// Number of bits of a span id that are the index of its cell.
pub(super) const INDEX_BITS: u32 = 24;
pub(super) const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// The span has ended. With this bit and not one for open spans, the fast paths compare and store ids as they are.
const ENDED: u64 = 1 << 63;
const ID_MASK: u64 = (1 << 53) - 1;
const SEQNO_BITS: u32 = 53;
const FLAGS_SHIFT: u32 = 32;
const COUNT_SHIFT: u32 = 48;
const SINCE_BITS: u32 = 45;
const COARSE: u64 = 1 << SINCE_BITS;
/// Power of two of the nanoseconds in a unit of times that are long after the begin.
const COARSE_SHIFT: u32 = 10;
const OTHERS: u64 = 1 << 46;
const INSIDE: u64 = 1 << 47;
const THREAD_SHIFT: u32 = 48;
const INLINE_SHIFT: u32 = 56;
/// The most bytes of fields that a cell holds.
pub(crate) const INLINE_BYTES: usize = 16;
/// Flag of a span in a cell: an event of the level ERROR was recorded in it. Flags of events are below.
pub(crate) const HAS_ERROR: u16 = 1 << 15;
/// Flag of a span in a cell: fields of it were recorded after its begin.
pub(crate) const HAS_RECORDED: u16 = 1 << 14;

type Cell = [AtomicU64; CELL_WORDS];

/// What is known of a span when it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) id: u64,
    pub(crate) call_site_id: u32,
    pub(crate) parent: u64,
    pub(crate) shard: u64,
    pub(crate) epoch_nanos: u64,
    pub(crate) seqno: u64,
    pub(crate) flags: u16,
    pub(crate) field_count: u16,
}

/// Returns word 3 for a thread that enters or leaves a span this long after its begin.
#[inline(always)]
fn presence(thread_id: u32, is_inside: bool, nanos: u64) -> u64 {
    let inside = if is_inside { INSIDE } else { 0 };
    let since = if nanos < COARSE - 1 { nanos + 1 } else { coarse(nanos) };
    u64::from(thread_id) << THREAD_SHIFT | inside | since
}

/// Returns the time bits of word 3 for a time of nine hours or more.
#[cold]
fn coarse(nanos: u64) -> u64 {
    // A clock that was set back shows a time before the begin.
    if nanos > u64::MAX / 2 { 1 } else { COARSE | (nanos >> COARSE_SHIFT).min(COARSE - 1) }
}

/// Begins a span. `entered_by` is the id of the thread if it also enters the span. `payload` are the encoded fields.
#[inline(always)]
pub(crate) fn begin(cell: &Cell, span: &Begun, entered_by: Option<u32>, payload: &[u8]) {
    // The span before may have ended in another recorder. (A look would take longer than the store.)
    cell[0].store(0, Ordering::Relaxed);
    // The words of the span before must not be seen to change before its end is seen. Pairs with the acquire fence in `read`.
    if !mutation::active(Mutation::MissingWriterFence) {
        fence(Ordering::Release);
    }
    if mutation::active(Mutation::EarlyCommit) {
        cell[0].store(span.id, Ordering::Release);
    }
    let inside = entered_by.map_or(0, |thread_id| presence(thread_id, true, 0));
    cell[1].store(span.parent, Ordering::Relaxed);
    cell[2].store(span.epoch_nanos, Ordering::Relaxed);
    cell[3].store(inside, Ordering::Relaxed);
    let field_bytes = payload.len().min(INLINE_BYTES) as u64;
    let described = u64::from(span.call_site_id) | u64::from(span.flags) << FLAGS_SHIFT | field_bytes << INLINE_SHIFT;
    let field_count = u64::from(span.field_count).min(0xff);
    cell[4].store(described | field_count << COUNT_SHIFT, Ordering::Relaxed);
    cell[5].store(span.seqno | span.shard << SEQNO_BITS, Ordering::Relaxed);
    if field_bytes > 0 {
        let [low, high] = first_words(payload);
        cell[6].store(low, Ordering::Relaxed);
        cell[7].store(high, Ordering::Relaxed);
    }
    // Release, pairs with the acquire in `read`: who sees that the span is open sees its words.
    let order = if mutation::active(Mutation::RelaxedCommit) { Ordering::Relaxed } else { Ordering::Release };
    cell[0].store(span.id, order);
}

/// Returns the length of as many whole fields as fit into `room` bytes.
pub(super) fn whole_fields(payload: &[u8], room: usize) -> usize {
    let mut end = 0;
    // Each field has its index, its type, and the length of its value in two bytes.
    while let Some([_, _, low, high]) = payload.get(end..end + 4) {
        let next = end + 4 + usize::from(u16::from_le_bytes([*low, *high]));
        if next > room.min(payload.len()) {
            break;
        }
        end = next;
    }
    end
}

/// Returns the first [`INLINE_BYTES`] of encoded fields. Bytes after the last field may be anything. (A copy of so few
/// bytes would be a function call.)
#[inline(always)]
fn first_words(payload: &[u8]) -> [u64; 2] {
    let word = |at: Option<&[u8; 8]>| at.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let half = |at: Option<&[u8; 4]>| u64::from(at.map_or(0, |bytes| u32::from_le_bytes(*bytes)));
    match payload.len() {
        INLINE_BYTES.. => [word(payload.first_chunk()), word(payload[8..].first_chunk())],
        // The last bytes, without those that are in the first word already.
        len @ 8.. => {
            [word(payload.first_chunk()), word(payload.last_chunk()).checked_shr(128 - 8 * len as u32).unwrap_or(0)]
        }
        // No field has fewer than four bytes.
        len => [half(payload.first_chunk()) | half(payload.last_chunk()) << (8 * len.saturating_sub(4)), 0],
    }
}

/// Notes that a thread has entered or left the span, if the cell is that of the span. Returns false if it is not, or if
/// another thread is in the span already.
#[inline(always)]
pub(crate) fn set_presence(cell: &Cell, id: u64, thread_id: u32, is_inside: bool, epoch_nanos: u64) -> bool {
    if !is_of(cell, id) {
        return false;
    }
    let before = cell[3].load(Ordering::Relaxed);
    if before & INSIDE != 0 && before >> THREAD_SHIFT != u64::from(thread_id) & 0xffff {
        // Two threads that come at the same moment may each take the other for absent. The next enter mends it.
        cell[3].fetch_or(OTHERS, Ordering::Relaxed);
        return false;
    }
    let nanos = epoch_nanos.wrapping_sub(cell[2].load(Ordering::Relaxed));
    cell[3].store(presence(thread_id, is_inside, nanos), Ordering::Relaxed);
    true
}

/// Ends the span, if the cell is that of the span; returns false if it is not. The span must still own its cell: until
/// it ends, nobody else may begin a span in it.
#[inline(always)]
pub(crate) fn end(cell: &Cell, id: u64) -> bool {
    let is_its = is_of(cell, id);
    if is_its {
        cell[0].store(id | ENDED, Ordering::Relaxed);
    }
    is_its
}

/// Sets a flag of the span.
pub(crate) fn mark(cell: &Cell, flag: u16) {
    cell[4].fetch_or(u64::from(flag) << FLAGS_SHIFT, Ordering::Relaxed);
}

/// Returns true if the cell is that of this open span.
#[inline(always)]
pub(crate) fn is_of(cell: &Cell, id: u64) -> bool {
    cell[0].load(Ordering::Relaxed) == id
}

/// An open span, as its cell shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpanCell {
    /// The id of the span.
    pub id: u64,
    /// The id of its call site.
    pub call_site_id: u32,
    /// The span id of its parent; 0 if it is a root.
    pub parent: u64,
    /// The time of its begin, in nanoseconds since the epoch.
    pub begun_epoch_nanos: u64,
    /// Where it is.
    pub presence: Presence,
    /// The index of the shard that has its SPAN_NEW event, and the event's seqno.
    pub begun_at: (u64, u64),
    /// The flags of its SPAN_NEW event, `HAS_ERROR` (bit 15) and `HAS_RECORDED` (bit 14).
    pub flags: u16,
    /// True if other threads have entered it while that thread was in it. Whether they still are is not known.
    pub had_others: bool,
    /// The number of the event's fields; 255 if there are more.
    pub field_count: u8,
    pub(super) fields: [u8; INLINE_BYTES],
    pub(super) field_bytes: usize,
}

/// Whether a thread is in a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// No thread has ever been in it.
    NotYet,
    /// This thread has been in it since this time, in nanoseconds since the epoch.
    Inside(u32, u64),
    /// This thread left it last, at this time.
    Left(u32, u64),
}

impl SpanCell {
    /// Returns the first fields of the span, encoded as in events: as many as have room in the cell.
    #[must_use]
    pub fn fields(&self) -> &[u8] {
        self.fields.get(..self.field_bytes).unwrap_or_default()
    }

    /// Returns true if fields of the span were recorded after its begin.
    #[must_use]
    pub fn has_recorded(&self) -> bool {
        self.flags & HAS_RECORDED != 0
    }

    /// Returns true if an event of the level ERROR was recorded in the span.
    #[must_use]
    pub fn has_error(&self) -> bool {
        self.flags & HAS_ERROR != 0
    }
}

/// Number of times that a cell is read before its changes are given up.
const TRIES: usize = if cfg!(loom) { 2 } else { 100 };

/// Reads the words of a cell. Returns `None` if it belongs to no open span, or if it changes all the time: then its
/// spans begin and end in less time than a read takes.
pub(super) fn read(cell: &Cell) -> Option<[u64; CELL_WORDS]> {
    (0..TRIES).find_map(|_| try_read(cell)).flatten()
}

/// Reads the cell. Returns `None` if it has changed meanwhile, and `Some(None)` if it belongs to no open span.
fn try_read(cell: &Cell) -> Option<Option<[u64; CELL_WORDS]>> {
    // Acquire, pairs with the release in `begin`.
    let word = cell[0].load(Ordering::Acquire);
    if word == 0 || word & ENDED != 0 {
        return Some(None);
    }
    let words: [u64; CELL_WORDS] = std::array::from_fn(|at| cell[at].load(Ordering::Relaxed));
    // Acquire, pairs with the release in `begin` of a later span: if one of these words is of a later span, the load
    // below sees that this one has ended.
    if !mutation::active(Mutation::MissingReaderFence) {
        fence(Ordering::Acquire);
    }
    (cell[0].load(Ordering::Relaxed) == word).then_some(Some(words))
}

impl SpanCell {
    /// Returns what the words of a cell mean.
    #[inline]
    pub(super) fn of_words(words: &[u64; CELL_WORDS]) -> Self {
        let mut fields = [0; INLINE_BYTES];
        fields[..8].copy_from_slice(&words[6].to_le_bytes());
        fields[8..].copy_from_slice(&words[7].to_le_bytes());
        Self {
            id: words[0] & ID_MASK,
            call_site_id: words[4] as u32,
            parent: words[1],
            begun_epoch_nanos: words[2],
            presence: read_presence(words[3], words[2]),
            had_others: words[3] & OTHERS != 0,
            begun_at: (words[5] >> SEQNO_BITS, words[5] & ((1 << SEQNO_BITS) - 1)),
            flags: (words[4] >> FLAGS_SHIFT) as u16,
            field_count: (words[4] >> COUNT_SHIFT) as u8,
            fields,
            field_bytes: whole_fields(&fields, ((words[4] >> INLINE_SHIFT) as usize).min(INLINE_BYTES)),
        }
    }
}

fn read_presence(word: u64, begun_epoch_nanos: u64) -> Presence {
    if word == 0 {
        return Presence::NotYet;
    }
    let value = word & (COARSE - 1);
    let nanos = if word & COARSE == 0 { value.saturating_sub(1) } else { value << COARSE_SHIFT };
    let (thread_id, since) = ((word >> THREAD_SHIFT) as u32, begun_epoch_nanos.saturating_add(nanos));
    if word & INSIDE != 0 { Presence::Inside(thread_id, since) } else { Presence::Left(thread_id, since) }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// Returns the fields of a span that begins with this payload, as its cell shows them.
    fn fields_of(payload: &[u8]) -> Vec<u8> {
        let cell: Cell = std::array::from_fn(|_| AtomicU64::new(0));
        let id = 5 << INDEX_BITS | 3;
        let (call_site_id, parent, shard, epoch_nanos, seqno, flags, field_count) = (1, 0, 0, 7, 9, 0, 1);
        let span = Begun { id, call_site_id, parent, shard, epoch_nanos, seqno, flags, field_count };
        begin(&cell, &span, None, payload);
        SpanCell::of_words(&read(&cell).unwrap()).fields().to_vec()
    }

    #[test]
    fn a_cell_shows_when_a_thread_has_entered_and_left_to_the_nanosecond_and_after_hours_to_the_microsecond() {
        let hour = 3_600_000_000_000;
        for nanos in [0, 1, 1000, hour, 9 * hour, 10 * hour, 24 * 365 * hour] {
            for is_inside in [false, true] {
                let (thread_id, since) = match read_presence(presence(7, is_inside, nanos), 5) {
                    Presence::Inside(thread_id, since) if is_inside => (thread_id, since),
                    Presence::Left(thread_id, since) if !is_inside => (thread_id, since),
                    other => panic!("{other:?}"),
                };
                let exact = if nanos > 9 * hour { nanos >> COARSE_SHIFT << COARSE_SHIFT } else { nanos };
                assert_eq!((thread_id, since), (7, 5 + exact));
            }
        }
        // The control: two years are too long, and stay the longest time that there is.
        let longest = read_presence(presence(7, true, u64::MAX / 2), 0);
        assert_eq!(longest, Presence::Inside(7, (COARSE - 1) << COARSE_SHIFT));
    }

    #[test]
    fn a_cell_has_as_many_whole_fields_as_have_room_whatever_their_lengths() {
        let field = |index: u8, len: u8| [&[index, 1, len, 0][..], &vec![0xf0 | index; len.into()]].concat();
        assert!(fields_of(&[]).is_empty());
        for first in 0..30 {
            let one = field(1, first);
            assert_eq!(fields_of(&one), if first <= 12 { &one[..] } else { &[] }, "{first}");
            for second in 0..30 {
                let two = [&one[..], &field(2, second)].concat();
                let expected = [&two[..], &one, &[]].into_iter().find(|fields| fields.len() <= INLINE_BYTES);
                assert_eq!(Some(&fields_of(&two)[..]), expected, "{first}, {second}");
            }
        }
    }
}
