//! `Recorder`: record, recordv, reserve.

use super::build::RecorderBuilder;
use super::config::ContentDescription;
use super::events::{self, TakenEvents};
use super::in_place::Reservation;
use super::lane;
use super::payload::{Payload, total_bytes};
use crate::clock::Clock;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::layout::record_error::{self, ErrorType};
use crate::layout::{Geometry, extension};
use crate::ring::lane::Lane;
use crate::ring::memory::{ControlWord, MappedMemory, RingMemory};
use crate::ring::writer::{Claim, Fields, RingWriter, Unfinished};
use crate::shm;
use crate::sync::{AtomicBool, Ordering};
use std::path::Path;
use std::sync::Arc;

/// What all handles of one recorder share. What each event needs comes first, in three cache lines with the writer's.
#[repr(C)]
pub(crate) struct Core {
    enabled: AtomicBool,
    /// Never used twice in a process: threads find their lanes by it.
    pub(super) id: u64,
    pub(super) clock: &'static Clock,
    /// Unrounded payload sizes up to here can be recorded: less than 2^32.
    ordinary_bytes: u64,
    fork_guard: shm::ForkGuard,
    pub(super) writer: RingWriter<MappedMemory>,
    /// From this rounded size on a payload could expire before it is read.
    overflow_expire_bytes: u64,
    pub(super) file: shm::OwnedRingFile,
    description: ContentDescription,
    pub(super) taken_events: TakenEvents,
}

/// Records events into one ring. Cloning gives another handle to the same ring; the last one closes it.
///
/// All methods take `&self` and may be called from any thread, at any time, also from a payload's own code and while the
/// thread ends. None of them waits for a reader, for another writer, or fails: what cannot be recorded becomes a
/// RECORD_ERROR event. A signal handler may record on threads that have recorded to the ring before: the first event of a thread
/// allocates memory.
///
/// In a forked child a recorder is disabled for good: its ring belongs to the parent. Create a new one there.
///
/// ```
/// use eventring::recorder::{ContentDescription, Recorder};
///
/// let recorder = Recorder::builder(ContentDescription::new(300, "GREETINGS")).anonymous().build()?;
/// let seqno = recorder.record(2, [0; 4], b"hello");
/// assert_eq!(seqno, 1);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    pub(crate) core: Arc<Core>,
}

/// What a recorder counted, since its ring was created. The counters are in the ring's header, where readers see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Last sequence number handed out: events recorded, plus holes.
    pub last_seqno: u64,
    /// Holes: seqnos given up because another writer was stalled inside their slot. Their events got other seqnos.
    pub refused_claims: u64,
    /// Holes: seqnos given up because the ring had gone round before they were claimed.
    pub lapped_claims: u64,
    /// Attempts to get payload memory that met a stalled writer's chunk.
    pub skipped_chunks: u64,
    /// Events that became RECORD_ERROR.
    pub record_errors: u64,
    /// Events that `record!` refused, because the ring was made for events with another schema. They have no seqno.
    pub foreign_events: u64,
}

impl Recorder {
    /// Starts the configuration of a recorder for the events that `description` names.
    pub fn builder(description: ContentDescription) -> RecorderBuilder {
        RecorderBuilder::new(description)
    }

    /// Records an event with one buffer of payload, or none if it is empty.
    ///
    /// `event_type` is the event's code, `content_ext` its four extension words. Gives the event's sequence number, 0 if the
    /// recorder is disabled. A payload of 4 GiB or more, or one that with its padding to 16 bytes does not stay below the size of
    /// the payload buffer less 32 MiB (less a sixteenth of it below 128 MiB: twice the step of its window), becomes a RECORD_ERROR event that
    /// carries its first 8,176 bytes.
    #[inline(always)]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.core.record(event_type, content_ext, payload)
    }

    /// Records an event whose payload is gathered from several buffers, in order; nothing is allocated.
    ///
    /// Otherwise as [`Self::record`].
    #[inline]
    pub fn recordv(&self, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        self.core.recordv(event_type, content_ext, payload)
    }

    /// Reserves an event with `payload_bytes` bytes of payload, to be filled in place and committed.
    ///
    /// Its seqno and its time are those of the reservation. Dropping it without commit records a RECORD_ERROR in its
    /// place. `None` if the recorder is disabled. Reservations may be nested; they stay on their thread.
    #[inline]
    pub fn reserve(&self, event_type: u16, content_ext: [u64; 4], payload_bytes: u64) -> Option<Reservation<'_>> {
        self.core.reserve_in_place(event_type, content_ext, payload_bytes)
    }

    /// Whether events are recorded now. Always false in a forked child.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.core.may_record()
    }

    /// Switches recording on or off, for all handles.
    pub fn set_enabled(&self, enabled: bool) {
        self.core.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Whether the recorder was made by this process, and not inherited by a fork.
    pub fn belongs_to_this_process(&self) -> bool {
        self.core.fork_guard.is_original_process()
    }

    /// What the user should know about the ring's place (no huge pages, say); the recorder works all the same.
    pub fn warning(&self) -> Option<&shm::PlaceWarning> {
        self.core.file.warning()
    }

    /// Whether the file stays when the recorder ends; changes what the builder was told.
    pub fn keep(&self, keep: bool) {
        self.core.file.keep(keep);
    }

    /// Path of the ring file; `None` for an anonymous ring.
    pub fn path(&self) -> Option<&Path> {
        self.core.file.path()
    }

    /// A file descriptor of the ring, to hand to another process. Anyone who has it and the permission may map the ring.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.core.file.descriptor()
    }

    /// The ring's sizes.
    pub fn geometry(&self) -> Geometry {
        *self.core.writer.memory().geometry()
    }

    /// What the recorder was told about its events.
    pub fn description(&self) -> &ContentDescription {
        &self.core.description
    }

    /// The clock that stamps events.
    pub fn clock(&self) -> &'static Clock {
        self.core.clock
    }

    /// Whether somebody truncated the ring file under the recorder. Events recorded since go nowhere.
    pub fn was_truncated(&self) -> bool {
        self.core.writer.memory().mapping().was_truncated()
    }

    /// Counters.
    pub fn stats(&self) -> RecorderStats {
        let read = |word| self.core.writer.memory().control(word).load(Ordering::Relaxed);
        RecorderStats {
            last_seqno: read(ControlWord::LastSeqno),
            refused_claims: read(ControlWord::RefusedClaims),
            lapped_claims: read(ControlWord::LappedClaims),
            skipped_chunks: read(ControlWord::SkippedChunks),
            record_errors: read(ControlWord::RecordErrors),
            foreign_events: events::refused(self.core.writer.memory()),
        }
    }

    /// Copies `bytes` into the ring's context area; false if they do not fit. For tables that a content type keeps there.
    pub fn write_context(&self, offset: u64, bytes: &[u8]) -> bool {
        self.core.may_record() && self.core.writer.memory().store_context_bytes(offset, bytes)
    }

    /// Publishes a word of the context area with release ordering, after the bytes that it announces; false if it is
    /// outside of the area or unaligned.
    pub fn publish_context_word(&self, offset: u64, value: u64) -> bool {
        if !self.core.may_record() {
            return false;
        }
        let word = self.core.writer.memory().context_word(offset);
        word.inspect(|word| word.store(value, Ordering::Release)).is_some()
    }

    pub(crate) fn from_core(core: Core) -> Self {
        let core = Arc::new(core);
        let weak = Arc::downgrade(&core);
        core.file.at_exit(move || {
            if let Some(core) = weak.upgrade() {
                core.publish_header_word(extension::STATE, extension::STATE_EXITING);
            }
        });
        Self { core }
    }

    /// Has `hook` called when the process exits in good order while the recorder lives, and other threads may still record.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "the perf recorder's business"))]
    pub(crate) fn at_exit(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.core.file.at_exit(hook);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).field("description", &self.core.description).finish()
    }
}

impl Core {
    pub(super) fn new(
        memory: MappedMemory,
        file: shm::OwnedRingFile,
        fork_guard: shm::ForkGuard,
        clock: &'static Clock,
        description: ContentDescription,
    ) -> Self {
        static NEXT_ID: crate::sync::AtomicU64 = crate::sync::AtomicU64::new(1);
        let overflow_expire_bytes = memory.geometry().overflow_expire_bytes();
        let writer = RingWriter::new(memory);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            overflow_expire_bytes,
            // A size up to `limit - align` rounds to at most that; a larger one rounds to the limit or more.
            ordinary_bytes: overflow_expire_bytes.min(1 << 32) - PAYLOAD_ALIGN,
            writer,
            clock,
            enabled: AtomicBool::new(true),
            fork_guard,
            file,
            description,
            taken_events: TakenEvents::none(),
        }
    }

    /// Not in a forked child, as far as that is known without asking the operating system.
    #[inline(always)]
    pub(super) fn is_surely_original_process(&self) -> bool {
        self.fork_guard.is_surely_original_process()
    }

    /// Not in a forked child.
    #[inline(always)]
    pub(super) fn is_original_process(&self) -> bool {
        self.fork_guard.is_original_process()
    }

    #[inline(always)]
    pub(super) fn is_switched_on(&self) -> bool {
        // Relaxed: a switch, which orders nothing.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Enabled, and in the process that owns the ring.
    #[inline(always)]
    pub(crate) fn may_record(&self) -> bool {
        self.is_switched_on() && self.is_original_process()
    }

    /// As [`Self::may_record`] in the ordinary case. False where that has to be asked: by callers that have a slow way of
    /// their own, so that nothing is kept on the stack over the question.
    #[inline(always)]
    fn may_record_at_once(&self) -> bool {
        self.is_switched_on() && self.is_surely_original_process()
    }

    #[inline(always)]
    pub(crate) fn record(self: &Arc<Self>, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        if payload.is_empty() {
            let [ext0, ext1, ext2, ext3] = content_ext;
            return self.record_empty(event_type, ext0, ext1, ext2, ext3);
        }
        self.record_payload(|| self.now_at_once(), event_type, content_ext, payload)
    }

    /// Records an event with payload. `now` gives the time if that is known at once.
    #[inline(always)]
    pub(super) fn record_payload(
        self: &Arc<Self>,
        now: impl FnOnce() -> Option<u64>,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[u8],
    ) -> u64 {
        let bytes = payload.len() as u64;
        match self.record_in_lane(now, event_type, content_ext, bytes, payload) {
            Ok(seqno) => seqno,
            Err(unfinished) => {
                let [ext0, ext1, ext2, ext3] = content_ext;
                self.record_one_otherwise(unfinished, event_type, ext0, ext1, ext2, ext3, payload)
            }
        }
    }

    /// The time, if the clock's line has it.
    #[inline(always)]
    pub(crate) fn now_at_once(&self) -> Option<u64> {
        self.clock.now_epoch_nanos_at_once()
    }

    /// [`Self::record_otherwise`] for one slice. Takes single words, for an array would be put into memory on the way to the
    /// ordinary case too.
    #[cold]
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "see above")]
    fn record_one_otherwise(
        self: &Arc<Self>,
        unfinished: Option<(&Lane, Unfinished, u64)>,
        event_type: u16,
        ext0: u64,
        ext1: u64,
        ext2: u64,
        ext3: u64,
        payload: &[u8],
    ) -> u64 {
        self.record_otherwise(unfinished, event_type, [ext0, ext1, ext2, ext3], &[payload])
    }

    #[inline]
    pub(crate) fn recordv(self: &Arc<Self>, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        let bytes = total_bytes(payload);
        if bytes == 0 {
            let [ext0, ext1, ext2, ext3] = content_ext;
            return self.record_empty(event_type, ext0, ext1, ext2, ext3);
        }
        match self.record_in_lane(|| self.now_at_once(), event_type, content_ext, bytes, payload) {
            Ok(seqno) => seqno,
            Err(unfinished) => self.record_otherwise(unfinished, event_type, content_ext, payload),
        }
    }

    /// Records in the ordinary case: recording is on, the clock's line has the time, the thread's lane has room, the slot is free. Every
    /// other case ends here and goes on in [`Self::record_otherwise`], so that this needs few instructions and registers.
    #[inline(always)]
    fn record_in_lane<'c>(
        &'c self,
        now: impl FnOnce() -> Option<u64>,
        event_type: u16,
        content_ext: [u64; 4],
        bytes: u64,
        payload: &(impl Payload + ?Sized),
    ) -> Result<u64, Option<(&'c Lane, Unfinished, u64)>> {
        if !self.may_record_at_once() || bytes > self.ordinary_bytes {
            return Err(None);
        }
        let Some(lane) = lane::remembered(self) else { return Err(None) };
        // Before the locked instructions: reading the tick counter takes longer than all the rest, which the processor does
        // meanwhile. Behind them it would have to wait.
        let Some(epoch_nanos) = now() else { return Err(None) };
        let claim = match self.writer.reserve_in_lane(lane, bytes) {
            Ok(claim) => claim,
            Err(unfinished) => return Err(Some((lane, unfinished, epoch_nanos))),
        };
        payload.fill(&self.writer, &claim);
        let seqno = claim.seqno;
        let fields = Fields { event_type, payload_bytes: bytes as u32, epoch_nanos, content_ext };
        self.writer.commit_in_lane(lane, claim, &fields);
        Ok(seqno)
    }

    /// Records what is not an ordinary case, from where that was found out.
    #[cold]
    #[inline(never)]
    fn record_otherwise(
        self: &Arc<Self>,
        unfinished: Option<(&Lane, Unfinished, u64)>,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[&[u8]],
    ) -> u64 {
        if unfinished.is_none() && !self.may_record() {
            return 0;
        }
        let bytes = total_bytes(payload);
        if bytes > self.ordinary_bytes {
            return self.record_oversized(event_type, content_ext, bytes, payload);
        }
        let (lane, claim, epoch_nanos) = match unfinished {
            Some((lane, unfinished, epoch_nanos)) => {
                (Some(lane), self.writer.resume(lane, unfinished, bytes), epoch_nanos)
            }
            None => {
                let epoch_nanos = self.clock.now_epoch_nanos();
                let lane = lane::of_this_thread(self);
                (lane, self.writer.reserve(lane, bytes), epoch_nanos)
            }
        };
        let fields = Fields { event_type, payload_bytes: bytes as u32, epoch_nanos, content_ext };
        let seqno = claim.seqno;
        if !claim.placed {
            self.commit_unplaced(lane, claim, fields);
            return seqno;
        }
        let mut at = 0;
        for part in payload {
            self.writer.fill(&claim, at, part);
            at += part.len() as u64;
        }
        self.writer.commit(lane, claim, &fields);
        seqno
    }

    /// Records the RECORD_ERROR that stands for a payload too large to record.
    #[cold]
    fn record_oversized(
        self: &Arc<Self>,
        event_type: u16,
        content_ext: [u64; 4],
        bytes: u64,
        payload: &[&[u8]],
    ) -> u64 {
        let Some(mut reservation) = self.reserve_in_place(event_type, content_ext, bytes) else { return 0 };
        for part in payload {
            reservation.append(part);
        }
        reservation.commit()
    }

    /// Which overflow, if any, a payload of `bytes` is.
    pub(super) fn overflow(&self, bytes: u64) -> Option<ErrorType> {
        let rounded = bytes.checked_next_multiple_of(PAYLOAD_ALIGN);
        match rounded {
            Some(rounded) if rounded <= u64::from(u32::MAX) => {
                (rounded >= self.overflow_expire_bytes).then_some(ErrorType::OverflowExpire)
            }
            _ => Some(ErrorType::Overflow4Gb),
        }
    }

    /// Commits a claim that found no payload memory at all (every chunk is inside a stalled writer): a RECORD_ERROR without
    /// payload.
    #[cold]
    pub(super) fn commit_unplaced(&self, lane: Option<&Lane>, claim: Claim, fields: Fields) {
        self.count_record_error();
        self.writer.commit(lane, claim, &Fields { event_type: record_error::EVENT_TYPE, payload_bytes: 0, ..fields });
    }

    pub(super) fn count_record_error(&self) {
        self.writer.memory().control(ControlWord::RecordErrors).fetch_add(1, Ordering::Relaxed);
    }

    /// Adds to one of the extension's counters.
    pub(crate) fn add_to_counter(&self, offset: usize, value: u64) {
        if self.may_record() {
            self.writer.memory().header_word(offset).fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Publishes a word of the extension, whether events are recorded now or not.
    pub(crate) fn publish_header_word(&self, offset: usize, value: u64) {
        if self.fork_guard.is_original_process() {
            self.writer.memory().header_word(offset).store(value, Ordering::Release);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Released: whoever reads "ended" has every event behind it.
        self.publish_header_word(extension::STATE, extension::STATE_ENDED);
    }
}
