//! A batch of events, which a cursor copies out of a ring together. Payloads that are adjacent in the ring are copied
//! in one copy.

use super::batch::ReadyEvent;
use super::cursor::{Cursor, Next};
use super::payload::PayloadRead;
use crate::layout::Descriptor;
use crate::reader::source::Source;
use std::ops::{ControlFlow, Range};

/// The largest number of bytes between two payloads that are still copied together. Payloads begin at multiples of 16.
const JOINED_GAP_BYTES: u64 = 64;
/// The largest number of bytes that are copied together, except for a single larger payload. After each copy, the
/// reader checks which bytes have expired meanwhile: fewer bytes expire if this is done often.
const JOINED_BYTES_MAX: u64 = 1 << 16;

/// The largest number of payload bytes in a batch. All offsets are smaller than the special values of
/// [`PayloadPlace`].
const BATCH_BYTES_MAX: usize = 1 << 31;

/// The place of a payload in a batch: its offset, or the reason why the batch does not have it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PayloadPlace(u32);

impl PayloadPlace {
    /// The payload was overwritten before the copy ended.
    pub const EXPIRED: Self = Self(u32::MAX);
    /// The ring cannot have such a payload.
    pub const MALFORMED: Self = Self(u32::MAX - 1);
    /// The payload is larger than the batch takes.
    pub const LEFT_OUT: Self = Self(u32::MAX - 2);
    /// The payload was not wanted.
    const UNREAD: Self = Self(u32::MAX - 3);

    /// Returns the place at an offset in the bytes of the batch.
    pub const fn from_offset(offset: u32) -> Self {
        Self(offset)
    }

    /// Returns true if the batch has the payload.
    #[inline(always)]
    pub const fn is_valid(self) -> bool {
        self.0 < Self::UNREAD.0
    }

    /// Returns the offset of a payload that the batch has.
    #[inline(always)]
    pub const fn offset(self) -> usize {
        self.0 as usize
    }

    /// Marks a payload that the batch could have as not wanted.
    pub fn leave_unread(&mut self) {
        if self.is_valid() {
            *self = Self::UNREAD;
        }
    }
}

/// Copies of events of one ring: their descriptors and payloads, in the order of seqnos. [`Cursor::copy_batch`] fills
/// a batch, which keeps its memory for the next use.
#[derive(Clone, Default)]
pub struct EventBatch {
    descriptors: Vec<Descriptor>,
    /// For each descriptor, the place of its payload in `bytes`.
    places: Vec<PayloadPlace>,
    /// The copied bytes. Only the first `used_bytes` belong to the batch; the memory after them is kept for later use.
    bytes: Vec<u8>,
    used_bytes: usize,
    /// The batch is full if it has this many bytes.
    bytes_max: usize,
    payload_bytes_max: u32,
}

/// Neighbouring payloads that are to be copied together: their range of unwrapped offsets, and the first of their
/// events.
struct Joined {
    offsets: Range<u64>,
    first_event: usize,
}

impl EventBatch {
    /// Makes an empty batch. It counts as full when its descriptors and payloads have `bytes_max` bytes or more.
    /// Payloads larger than `payload_bytes_max` are not copied: [`Self::is_left_out`] returns true for them. No
    /// limit is larger than 2 GiB.
    #[must_use]
    pub fn new(bytes_max: usize, payload_bytes_max: u32) -> Self {
        Self {
            bytes_max: bytes_max.min(BATCH_BYTES_MAX),
            payload_bytes_max: payload_bytes_max.min(BATCH_BYTES_MAX as u32),
            ..Self::default()
        }
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Returns true if the batch has no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Returns the descriptors of the events.
    #[must_use]
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// Returns the payload of the event with this index. A payload that was left out counts as expired.
    ///
    /// # Panics
    /// Panics if there is no such event.
    #[must_use]
    #[inline]
    pub fn payload(&self, index: usize) -> PayloadRead<'_> {
        let place = self.places[index];
        if place.is_valid() {
            let bytes = self.descriptors[index].payload_size as usize;
            PayloadRead::Valid(&self.bytes[place.offset()..][..bytes])
        } else if place == PayloadPlace::MALFORMED {
            PayloadRead::Malformed
        } else {
            PayloadRead::Expired
        }
    }

    /// Returns true if the payload of the event with this index was not copied because of its size.
    ///
    /// # Panics
    /// Panics if there is no such event.
    #[must_use]
    pub fn is_left_out(&self, index: usize) -> bool {
        self.places[index] == PayloadPlace::LEFT_OUT
    }

    /// Removes all events. The memory stays for the next use.
    pub fn clear(&mut self) {
        self.descriptors.clear();
        self.places.clear();
        self.used_bytes = 0;
    }

    fn is_full(&self) -> bool {
        self.used_bytes + size_of::<Descriptor>() * self.descriptors.len() >= self.bytes_max
    }

    /// Makes room for this many bytes after the used bytes, and returns the place of the room.
    fn make_room(&mut self, bytes: usize) -> usize {
        let place = self.used_bytes;
        self.used_bytes += bytes;
        if self.bytes.len() < self.used_bytes {
            self.bytes.resize(self.used_bytes, 0);
        }
        place
    }

    /// Sets the limits that [`Self::new`] sets.
    pub fn set_limits(&mut self, bytes_max: usize, payload_bytes_max: u32) {
        self.bytes_max = bytes_max.min(BATCH_BYTES_MAX);
        self.payload_bytes_max = payload_bytes_max.min(BATCH_BYTES_MAX as u32);
    }

    /// Returns true if every event of the batch has a valid payload.
    pub fn has_all_payloads(&self) -> bool {
        // The special places are the largest numbers.
        self.places.iter().fold(0, |max, place| max.max(place.0)) < PayloadPlace::UNREAD.0
    }

    /// Returns the memory that the batch has taken, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + (size_of::<Descriptor>() + size_of::<PayloadPlace>()) * self.descriptors.capacity()
    }

    /// Makes a batch from its parts. Each valid place, with the size in the descriptor, lies in `bytes`.
    pub fn from_parts(descriptors: Vec<Descriptor>, places: Vec<PayloadPlace>, bytes: Vec<u8>) -> Self {
        let used_bytes = bytes.len();
        Self { descriptors, places, bytes, used_bytes, ..Self::default() }
    }

    /// Marks the payload of the event with this index as one that the ring cannot have.
    pub fn refuse_payload(&mut self, index: usize) {
        self.places[index] = PayloadPlace::MALFORMED;
    }

    /// Removes all events after the first `events`.
    pub fn truncate(&mut self, events: usize) {
        self.descriptors.truncate(events);
        self.places.truncate(events);
    }

    /// Removes the events for which `keeps` returns false. Their payloads stay in the memory of the batch.
    pub fn retain(&mut self, mut keeps: impl FnMut(&Descriptor, PayloadRead<'_>) -> bool) {
        let mut kept = 0;
        for index in 0..self.descriptors.len() {
            if keeps(&self.descriptors[index], self.payload(index)) {
                self.descriptors.swap(kept, index);
                self.places.swap(kept, index);
                kept += 1;
            }
        }
        self.truncate(kept);
    }

    /// Adds an event whose payload is not in the batch.
    fn push_without_payload(&mut self, descriptor: &Descriptor, place: PayloadPlace) {
        self.descriptors.push(*descriptor);
        self.places.push(place);
    }

    /// Adds an event with a payload that the caller has copied already.
    pub fn push(&mut self, descriptor: &Descriptor, payload: PayloadRead<'_>) {
        let place = match payload {
            PayloadRead::Valid(bytes) if bytes.len() > self.payload_bytes_max as usize => PayloadPlace::LEFT_OUT,
            PayloadRead::Valid(bytes) => {
                let place = self.make_room(bytes.len());
                self.bytes[place..][..bytes.len()].copy_from_slice(bytes);
                PayloadPlace::from_offset(place as u32)
            }
            PayloadRead::Expired => PayloadPlace::EXPIRED,
            PayloadRead::Malformed => PayloadPlace::MALFORMED,
        };
        self.push_without_payload(descriptor, place);
    }

    /// Adds a ready event. Its payload is copied later, together with its neighbours, by [`Self::copy_joined`].
    #[inline(always)]
    fn add(&mut self, event: &ReadyEvent<'_>, joined: &mut Joined) {
        let (descriptor, source) = (event.descriptor(), event.source);
        let bytes = u64::from(descriptor.payload_size);
        let start = descriptor.payload_buf_offset;
        let Some(end) = start.checked_add(bytes).filter(|_| source.can_have_payload(descriptor.payload_size)) else {
            return self.push_without_payload(descriptor, PayloadPlace::MALFORMED);
        };
        if bytes == 0 {
            return self.push_without_payload(descriptor, PayloadPlace::from_offset(self.used_bytes as u32));
        }
        if descriptor.payload_size > self.payload_bytes_max {
            return self.push_without_payload(descriptor, PayloadPlace::LEFT_OUT);
        }
        let Range { start: first, end: last } = joined.offsets;
        let is_neighbour = start >= last && start - last <= JOINED_GAP_BYTES && end - first <= JOINED_BYTES_MAX;
        if !is_neighbour {
            self.copy_joined(joined, source);
            *joined = Joined { offsets: start..start, first_event: self.len() };
        }
        joined.offsets.end = end;
        // The place is relative to the first of the joined payloads until they are copied.
        self.push_without_payload(descriptor, PayloadPlace::from_offset((start - joined.offsets.start) as u32));
    }

    /// Copies the joined payloads, and marks those that have expired by the end of the copy.
    fn copy_joined(&mut self, joined: &mut Joined, source: &Source) {
        let Range { start, end } = joined.offsets;
        if start == end {
            return;
        }
        let bytes = (end - start) as usize;
        let place = self.make_room(bytes);
        let valid_from = source.copy_payload_bytes(start, &mut self.bytes[place..][..bytes]);
        let events = self.descriptors[joined.first_event..].iter().zip(&mut self.places[joined.first_event..]);
        for (descriptor, relative) in events {
            if descriptor.payload_size == 0 || !relative.is_valid() {
                continue;
            }
            let is_valid = descriptor.payload_buf_offset >= valid_from;
            *relative =
                if is_valid { PayloadPlace::from_offset(place as u32 + relative.0) } else { PayloadPlace::EXPIRED };
        }
        joined.offsets = end..end;
        joined.first_event = self.descriptors.len();
    }
}

impl Cursor {
    /// Copies the events that are ready to `batch`, after the events that it has already. Returns `None` if the batch
    /// is full. Otherwise stops at the first event that is not ready or is missing, and returns the result of
    /// [`Self::next`] for that event: [`Next::NotReady`] or [`Next::Gap`]. Never waits. Call this again after a gap.
    ///
    /// This is the fastest way to copy all events of a ring, because payloads that lie together are copied together.
    /// The payloads are as they were recorded, also if the ring was opened with
    /// [`compatible`](crate::reader::ReaderOptions::compatible): only the ring's own schema decodes them.
    ///
    /// ```
    /// use eventring::reader::{EventBatch, Next, Reader};
    /// use eventring::recorder::{ContentDescription, Recorder};
    ///
    /// let recorder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).build()?;
    /// let mut cursor = Reader::options().open_fd(recorder.as_fd())?.cursor();
    /// for n in 0..3u8 {
    ///     recorder.record(2, [0; 4], &[n; 100]);
    /// }
    /// let mut batch = EventBatch::new(1 << 20, 1 << 16);
    /// assert_eq!(cursor.copy_batch(&mut batch), Some(Next::NotReady));
    /// assert_eq!(batch.len(), 3);
    /// assert_eq!(batch.payload(2).valid(), Some(&[2; 100][..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy_batch(&mut self, batch: &mut EventBatch) -> Option<Next> {
        let is_sparse = self.parts().0.is_sparse();
        let mut joined = Joined { offsets: 0..0, first_event: batch.len() };
        let mut buffer = Vec::new();
        let next = self.each_ready(|event| {
            if is_sparse {
                // The bytes of a sparse file may have to be mapped first, for each payload.
                batch.push(event.descriptor(), event.source.recorded_payload(event.descriptor(), &mut buffer));
            } else {
                batch.add(&event, &mut joined);
            }
            if batch.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        batch.copy_joined(&mut joined, self.parts().0);
        next
    }
}

impl std::fmt::Debug for EventBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventBatch").field("len", &self.len()).field("bytes", &self.used_bytes).finish_non_exhaustive()
    }
}
