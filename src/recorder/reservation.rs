//! `Reservation`: an event that is filled in place.

use super::core::Core;
use super::thread_cursors;
use crate::layout::record_error::{self, ErrorType};
use crate::ring::claim::Claim;
use crate::ring::commit::DescriptorFields;
use crate::ring::payload::cursor::PayloadCursor;
use std::marker::PhantomData;
use std::sync::Arc;

/// An event that the program is filling. It has its slot already, and normally also its payload memory.
///
/// [`Recorder::reserve`](super::Recorder::reserve) makes reservations. Readers wait at this event until it is
/// committed, so fill it without delay. (Other writers do not wait.) If the reservation is dropped without a commit,
/// by an early return or a panic, a RECORD_ERROR event is committed instead.
///
/// Payload bytes that are not written are zero.
///
/// A reservation belongs to the process that made it. In a forked child, all its methods and its drop do nothing.
#[must_use = "a reservation that is dropped records an error in its place"]
pub struct Reservation<'r> {
    core: &'r Arc<Core>,
    cursor: Option<&'r PayloadCursor>,
    /// The claim, until commit or drop takes it.
    claim: Option<Claim<'r>>,
    fields: DescriptorFields,
    /// Number of payload bytes that the caller may write, from `start` on.
    capacity: u64,
    /// Offset in the payload at which the caller's bytes begin. It is 0, except in an oversized event: there the
    /// caller's bytes come after the error struct.
    start: u64,
    /// Number of the caller's bytes, from `start` on, that have been stored, including zeros that fill gaps.
    written: u64,
    requested: u64,
    overflow: Option<ErrorType>,
    /// Marker: a payload cursor belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl Core {
    #[inline]
    pub(crate) fn reserve_in_place(
        self: &Arc<Self>,
        event_type: u16,
        content_ext: [u64; 4],
        payload_bytes: u64,
    ) -> Option<Reservation<'_>> {
        if !self.may_record() {
            return None;
        }
        let overflow = self.overflow(payload_bytes);
        let (capacity, start) = match overflow {
            Some(_) => (record_error::TRUNCATED_PAYLOAD_BYTES as u64, record_error::FIXED_BYTES as u64),
            None => (payload_bytes, 0),
        };
        let epoch_nanos = self.clock.now_epoch_nanos();
        let cursor = thread_cursors::of_this_thread(self);
        // The claim has room for at least the error struct: if the reservation is dropped without a commit, the error
        // struct is stored there.
        let claim = self.writer.reserve(cursor, (start + capacity).max(record_error::FIXED_BYTES as u64));
        // The sum fits into 32 bits: if the caller asked for too many bytes, `overflow` is set and `capacity` is
        // small.
        let reserved_bytes = (start + capacity) as u32;
        Some(Reservation {
            core: self,
            cursor,
            capacity: if claim.has_payload_memory() { capacity } else { 0 },
            claim: Some(claim),
            fields: DescriptorFields { event_type, payload_bytes: reserved_bytes, epoch_nanos, content_ext },
            start,
            written: 0,
            requested: payload_bytes,
            overflow,
            _not_send: PhantomData,
        })
    }
}

impl Reservation<'_> {
    /// Returns the event's sequence number.
    pub fn seqno(&self) -> u64 {
        self.claim.as_ref().map_or(0, |claim| claim.seqno)
    }

    /// Returns how many bytes can be written. Usually this is the requested number. It is 8,176 if the requested
    /// number was too large. It is 0 if stalled writers hold every chunk of payload memory.
    ///
    /// If the result is 0 although bytes were requested, all bytes that the program writes are lost. The event then
    /// becomes a RECORD_ERROR without payload. This RECORD_ERROR has the time and the extension words of the event. It
    /// does not show the event's type and size.
    pub fn payload_bytes(&self) -> u64 {
        self.capacity
    }

    /// Returns the offset at which the written bytes end. [`Self::append`] continues there.
    pub fn written_bytes(&self) -> u64 {
        self.written
    }

    /// Sets one of the four extension words.
    ///
    /// # Panics
    /// If `index` is not below 4.
    pub fn set_content_ext(&mut self, index: usize, value: u64) {
        self.fields.content_ext[index] = value;
    }

    /// Appends `bytes`, or as many of them as fit before the end of [`Self::payload_bytes`]. Returns how many were
    /// appended.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> usize {
        self.write_at(self.written, bytes)
    }

    /// Writes `bytes` at `offset` of the payload, or as many of them as fit. Returns how many were written. If there
    /// is a gap between the bytes written before and `offset`, the gap is filled with zeros.
    #[inline]
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> usize {
        if offset >= self.capacity || !self.core.is_original_process() {
            return 0;
        }
        self.zero_up_to(offset);
        let room = (self.capacity - offset).min(bytes.len() as u64);
        // `room` is at most bytes.len().
        let bytes = &bytes[..room as usize];
        if let Some(claim) = &self.claim {
            self.core.writer.fill(claim, self.start + offset, bytes);
        }
        self.written = self.written.max(offset + room);
        room as usize
    }

    /// Sets the time of the event, in nanoseconds since the epoch. Without this call it is the time of the reservation.
    /// This is for a program that records once more what was recorded elsewhere.
    pub fn set_epoch_nanos(&mut self, epoch_nanos: u64) {
        self.fields.epoch_nanos = epoch_nanos;
    }

    /// Publishes the event and returns its seqno. An event that is oversized or has no payload memory becomes a
    /// RECORD_ERROR.
    #[inline]
    pub fn commit(mut self) -> u64 {
        self.zero_up_to(self.capacity);
        self.publish()
    }

    /// Publishes the event and returns its seqno. The payload ends where the written bytes end. An oversized event is
    /// published in the same way as by [`Self::commit`].
    #[inline]
    pub fn commit_written(mut self) -> u64 {
        if self.overflow.is_none() {
            self.fields.payload_bytes = self.written as u32;
        } else {
            self.zero_up_to(self.capacity);
        }
        self.publish()
    }

    fn publish(&mut self) -> u64 {
        let Some(claim) = self.claim.take().filter(|_| self.core.is_original_process()) else { return 0 };
        let seqno = claim.seqno;
        if !claim.has_payload_memory() {
            self.core.commit_without_payload(self.cursor, claim, self.fields);
            self.give_back_cursor();
            return seqno;
        }
        if let Some(overflow) = self.overflow {
            let error = record_error::encode(
                overflow,
                self.fields.event_type,
                record_error::TRUNCATED_PAYLOAD_BYTES as u32,
                self.requested,
            );
            self.core.writer.fill(&claim, 0, &error);
            self.fields.event_type = record_error::EVENT_TYPE;
            self.core.count_record_error();
        }
        if self.core.keeps_start_record(self.fields.event_type) {
            self.core.keep_start_record(&claim, &self.fields);
        }
        self.core.writer.commit(self.cursor, claim, &self.fields);
        self.give_back_cursor();
        seqno
    }

    /// Gives the payload cursor back if the cursor's own thread has ended while this reservation was open. Then another
    /// thread can use the cursor.
    fn give_back_cursor(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.core.writer.give_back_orphan(cursor);
        }
    }

    /// Stores zeros from the end of the written bytes up to `end`.
    fn zero_up_to(&mut self, end: u64) {
        const ZEROS: [u8; 256] = [0; 256];
        if !self.core.is_original_process() {
            return;
        }
        while self.written < end {
            let part = (end - self.written).min(ZEROS.len() as u64);
            if let Some(claim) = &self.claim {
                self.core.writer.fill(claim, self.start + self.written, &ZEROS[..part as usize]);
            }
            self.written += part;
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take().filter(|_| self.core.is_original_process()) else { return };
        if !claim.has_payload_memory() {
            self.core.commit_without_payload(self.cursor, claim, self.fields);
            return self.give_back_cursor();
        }
        let error = record_error::encode(ErrorType::MissingEvent, self.fields.event_type, 0, self.requested);
        self.core.writer.fill(&claim, 0, &error);
        self.core.count_record_error();
        let payload_bytes = record_error::FIXED_BYTES as u32;
        let fields = DescriptorFields { event_type: record_error::EVENT_TYPE, payload_bytes, ..self.fields };
        self.core.writer.commit(self.cursor, claim, &fields);
        self.give_back_cursor();
    }
}

impl std::io::Write for Reservation<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(self.append(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
