//! Recording one event: the fast paths, and the slow paths for all other cases.
//!
//! A fast path handles the common case: recording is on, the clock's current calibration segment covers this moment,
//! the thread's run of payload memory has room, and the next slot is free. The fast path for events with payload is
//! inlined where the event is recorded. `record_slow` and `record_empty_slow` handle all other cases.
//!
//! Most functions that are not inlined get the four extension words as four arguments. An array would be stored word by
//! word and loaded two words at a time. The load would wait, because the processor cannot forward two pending stores to
//! it.

use super::core::Core;
use super::payload::{Payload, total_bytes};
use super::thread_cursors;
use crate::layout::record_error;
use crate::ring::claim::Claim;
use crate::ring::commit::DescriptorFields;
use crate::ring::payload::cursor::PayloadCursor;
use crate::ring::reserve::Unfinished;
use std::sync::Arc;

/// What became of a recording call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    /// The seqno of the event; 0 if it was not recorded.
    pub(crate) seqno: u64,
    /// The time of the event, in nanoseconds since the epoch; 0 if it was not recorded.
    pub(crate) epoch_nanos: u64,
}

impl Recorded {
    /// The event was not recorded.
    pub(crate) const NOT: Self = Self { seqno: 0, epoch_nanos: 0 };
}

/// The point at which a fast path stopped without recording its event. The slow path continues from there.
enum Stopped<'c> {
    /// A stop before the reservation: nothing has been changed.
    BeforeReserving,
    /// A stop during the reservation. The slow path finishes this reservation, and records the event with
    /// `epoch_nanos`, the time that the fast path has read.
    WhileReserving { cursor: &'c PayloadCursor, unfinished: Unfinished, epoch_nanos: u64 },
}

impl Core {
    /// Records an event with one buffer of payload.
    #[inline(always)]
    pub(crate) fn record(self: &Arc<Self>, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> Recorded {
        self.record_one(|| self.try_time(), event_type, content_ext, payload)
    }

    /// Records an event with the time `epoch_nanos`, which the caller has got from [`Self::try_now`]. Two kinds of
    /// events get the time of this call instead: events without payload, and events for which the fast path stops
    /// before the reservation.
    ///
    /// Reading the clock takes long. If a caller reads the clock first and then makes the payload, the processor does
    /// both at the same time. Between [`Self::try_now`] and this call, the thread should record no other event.
    /// Otherwise the other event would get an earlier seqno, but a later time.
    #[inline(always)]
    pub(crate) fn record_stamped(
        self: &Arc<Self>,
        epoch_nanos: u64,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[u8],
    ) -> Recorded {
        self.record_one(|| Some(move || epoch_nanos), event_type, content_ext, payload)
    }

    #[inline(always)]
    fn record_one<T: FnOnce() -> u64>(
        self: &Arc<Self>,
        time: impl FnOnce() -> Option<T>,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[u8],
    ) -> Recorded {
        let [ext0, ext1, ext2, ext3] = content_ext;
        if payload.is_empty() {
            return self.record_empty(event_type, ext0, ext1, ext2, ext3);
        }
        match self.try_record(time, event_type, content_ext, payload.len() as u64, payload) {
            Ok(recorded) => recorded,
            Err(stopped) => self.record_one_slow(stopped, event_type, ext0, ext1, ext2, ext3, payload),
        }
    }

    /// Records an event with several buffers of payload, in order; returns its seqno.
    #[inline]
    pub(crate) fn recordv(self: &Arc<Self>, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        let bytes = total_bytes(payload);
        if bytes == 0 {
            let [ext0, ext1, ext2, ext3] = content_ext;
            return self.record_empty(event_type, ext0, ext1, ext2, ext3).seqno;
        }
        match self.try_record(|| self.try_time(), event_type, content_ext, bytes, payload) {
            Ok(recorded) => recorded.seqno,
            Err(stopped) => self.record_slow(stopped, event_type, content_ext, payload).seqno,
        }
    }

    /// Records an event without payload.
    #[inline(never)]
    fn record_empty(&self, event_type: u16, ext0: u64, ext1: u64, ext2: u64, ext3: u64) -> Recorded {
        if self.is_switched_on()
            && let Some(recorded) = self.try_record_empty(|| true, event_type, ext0, ext1, ext2, ext3)
        {
            return recorded;
        }
        self.record_empty_slow(event_type, ext0, ext1, ext2, ext3)
    }

    /// Returns the present time if the clock's current calibration segment covers it, otherwise `None`.
    #[inline(always)]
    pub(crate) fn try_now(&self) -> Option<u64> {
        self.try_time().map(|time| time())
    }

    /// Reads the clock like [`Self::try_now`], and returns a function that computes the time.
    #[inline(always)]
    fn try_time(&self) -> Option<impl FnOnce() -> u64 + use<>> {
        let time = self.clock.try_now()?;
        Some(move || time.epoch_nanos())
    }

    /// Records an event with `bytes` bytes of payload, which must not be 0. This is the fast path of [`Self::record`]
    /// and [`Self::recordv`].
    #[inline(always)]
    fn try_record<'c, T: FnOnce() -> u64>(
        &'c self,
        time: impl FnOnce() -> Option<T>,
        event_type: u16,
        content_ext: [u64; 4],
        bytes: u64,
        payload: &(impl Payload + ?Sized),
    ) -> Result<Recorded, Stopped<'c>> {
        if !self.takes_fast_path(event_type) || bytes > self.payload_bytes_max {
            return Err(Stopped::BeforeReserving);
        }
        let Some(cursor) = thread_cursors::remembered(self) else { return Err(Stopped::BeforeReserving) };
        // The clock is read before `try_reserve`. In this order, the processor does all other work of this function
        // while it reads the tick counter, which takes longer. In the other order, the read would first have to wait
        // for the locked instruction in `try_reserve`.
        // The time is computed after `try_reserve`: the locked instruction waits for all that stands before it.
        let Some(time) = time() else { return Err(Stopped::BeforeReserving) };
        let claim = match self.writer.try_reserve(cursor, bytes) {
            Ok(claim) => claim,
            Err(unfinished) => return Err(Stopped::WhileReserving { cursor, unfinished, epoch_nanos: time() }),
        };
        let epoch_nanos = time();
        payload.fill(&self.writer, &claim);
        let seqno = claim.seqno;
        let fields = DescriptorFields { event_type, payload_bytes: bytes as u32, epoch_nanos, content_ext };
        self.writer.commit(Some(cursor), claim, &fields);
        Ok(Recorded { seqno, epoch_nanos })
    }

    /// Records an event without payload on the fast path. The caller has checked that recording is switched on.
    /// Returns `None` if the common case does not apply; then call [`Self::record_empty_slow`].
    ///
    /// `is_common` is asked after the clock was read. What it has not seen yet is later than the event.
    #[inline(always)]
    pub(crate) fn try_record_empty(
        &self,
        is_common: impl FnOnce() -> bool,
        event_type: u16,
        ext0: u64,
        ext1: u64,
        ext2: u64,
        ext3: u64,
    ) -> Option<Recorded> {
        if !self.is_surely_original_process() {
            return None;
        }
        let time = self.try_time()?;
        if !is_common() {
            return None;
        }
        let claim = self.writer.try_reserve_empty()?;
        let (seqno, epoch_nanos) = (claim.seqno, time());
        let content_ext = [ext0, ext1, ext2, ext3];
        self.writer.commit(None, claim, &DescriptorFields { event_type, payload_bytes: 0, epoch_nanos, content_ext });
        Some(Recorded { seqno, epoch_nanos })
    }

    /// Records an event without payload. This slow path handles every case.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_empty_slow(&self, event_type: u16, ext0: u64, ext1: u64, ext2: u64, ext3: u64) -> Recorded {
        if !self.may_record() {
            return Recorded::NOT;
        }
        let epoch_nanos = self.clock.now_epoch_nanos();
        let claim = self.writer.reserve_empty();
        let seqno = claim.seqno;
        let content_ext = [ext0, ext1, ext2, ext3];
        self.writer.commit(None, claim, &DescriptorFields { event_type, payload_bytes: 0, epoch_nanos, content_ext });
        Recorded { seqno, epoch_nanos }
    }

    /// Records an event with one buffer of payload, after the fast path has stopped at `stopped`.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "four words instead of an array, see the module")]
    fn record_one_slow(
        self: &Arc<Self>,
        stopped: Stopped<'_>,
        event_type: u16,
        ext0: u64,
        ext1: u64,
        ext2: u64,
        ext3: u64,
        payload: &[u8],
    ) -> Recorded {
        self.record_slow(stopped, event_type, [ext0, ext1, ext2, ext3], &[payload])
    }

    /// Records an event with payload, in every case. Continues at the point where the fast path stopped.
    #[cold]
    #[inline(never)]
    fn record_slow(
        self: &Arc<Self>,
        stopped: Stopped<'_>,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[&[u8]],
    ) -> Recorded {
        let bytes = total_bytes(payload);
        let (cursor, claim, epoch_nanos) = match stopped {
            Stopped::WhileReserving { cursor, unfinished, epoch_nanos } => {
                (Some(cursor), self.writer.reserve_slow(cursor, unfinished, bytes), epoch_nanos)
            }
            Stopped::BeforeReserving if !self.may_record() => return Recorded::NOT,
            Stopped::BeforeReserving if self.keeps_start_record(event_type) || bytes > self.payload_bytes_max => {
                return self.record_reserved(event_type, content_ext, bytes, payload);
            }
            Stopped::BeforeReserving => {
                let epoch_nanos = self.clock.now_epoch_nanos();
                let cursor = thread_cursors::of_this_thread(self);
                (cursor, self.writer.reserve(cursor, bytes), epoch_nanos)
            }
        };
        let fields = DescriptorFields { event_type, payload_bytes: bytes as u32, epoch_nanos, content_ext };
        let seqno = claim.seqno;
        if !claim.has_payload_memory() {
            self.commit_without_payload(cursor, claim, fields);
            return Recorded { seqno, epoch_nanos };
        }
        payload.fill(&self.writer, &claim);
        self.writer.commit(cursor, claim, &fields);
        Recorded { seqno, epoch_nanos }
    }

    /// Records an event by a reservation: a start whose record the ring keeps, or an event whose payload is too large,
    /// which becomes a RECORD_ERROR.
    #[cold]
    fn record_reserved(
        self: &Arc<Self>,
        event_type: u16,
        content_ext: [u64; 4],
        bytes: u64,
        payload: &[&[u8]],
    ) -> Recorded {
        let Some(mut reservation) = self.reserve_in_place(event_type, content_ext, bytes) else { return Recorded::NOT };
        for part in payload {
            reservation.append(part);
        }
        Recorded { seqno: reservation.commit(), epoch_nanos: self.clock.now_epoch_nanos() }
    }

    /// Commits an event that got no payload memory, because stalled writers hold every chunk. The event becomes a
    /// RECORD_ERROR without payload.
    #[cold]
    pub(super) fn commit_without_payload(
        &self,
        cursor: Option<&PayloadCursor>,
        claim: Claim<'_>,
        fields: DescriptorFields,
    ) {
        self.count_record_error();
        self.writer.commit(
            cursor,
            claim,
            &DescriptorFields { event_type: record_error::EVENT_TYPE, payload_bytes: 0, ..fields },
        );
    }
}
