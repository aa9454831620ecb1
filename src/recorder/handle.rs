//! `Recorder`: the handle through which a program records.

use super::config::ContentDescription;
use super::core::Core;
use super::reservation::Reservation;
use crate::clock::Clock;
use crate::layout::{Geometry, extension};
use crate::ring::memory::{ControlWord, RingMemory};
use crate::shm;
use crate::sync::Ordering;
use std::path::Path;
use std::sync::Arc;

/// Handle through which a program records events to one ring. A clone is another handle to the same ring. When the
/// last handle is dropped, the ring is closed.
///
/// All methods take `&self` and may be called from any thread at any time, also while a reservation is open, and also
/// while the thread ends. No method waits for a reader or another writer. Recording does not fail: an event whose
/// payload cannot be recorded becomes a RECORD_ERROR event. The first event that a thread records to a ring allocates
/// memory. Therefore a signal handler may record only on threads that have recorded to the ring before.
///
/// In a forked child the recorder is disabled for good, because its ring belongs to the parent. The child may create a
/// recorder of its own.
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

/// Counters of a recorder since its ring was created. They are stored in the ring's header, where readers see them,
/// too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Newest sequence number handed out. It is the number of recorded events plus the number of holes (seqnos given
    /// up).
    pub last_seqno: u64,
    /// Number of seqnos skipped (holes) because another writer was stalled inside their slot. The event that should
    /// have had such a seqno got a later one.
    pub refused_claims: u64,
    /// Number of seqnos skipped (holes) because their writer tried to claim the slot too late: the ring had already
    /// gone round by a whole lap.
    pub overrun_claims: u64,
    /// Number of failed attempts to take payload chunks. An attempt fails if a stalled writer holds one of the chunks.
    pub skipped_chunks: u64,
    /// Number of events that became RECORD_ERROR events.
    pub record_errors: u64,
    /// Number of events that `record!` refused because the ring was made for events of another schema. Such events
    /// have no seqno.
    pub foreign_events: u64,
}

impl Recorder {
    /// Records an event with one buffer of payload, which may be empty. Returns the event's sequence number, or 0 if
    /// the recorder is disabled.
    ///
    /// `event_type` is the event's code. `content_ext` holds its four extension words.
    ///
    /// A payload that is too large becomes a RECORD_ERROR event with the first 8,176 bytes of the payload. A payload
    /// is too large if its size, padded to a multiple of 16 bytes, reaches 4 GiB, or reaches the size of the payload
    /// buffer minus a reserve. The reserve is 32 MiB. In payload buffers smaller than 128 MiB it is a sixteenth of the
    /// buffer.
    #[inline(always)]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.core.record(event_type, content_ext, payload).seqno
    }

    /// Records an event whose payload consists of several buffers, in order. No memory is allocated to join the
    /// buffers.
    ///
    /// In all other respects this method is like [`Self::record`].
    #[inline]
    pub fn recordv(&self, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        self.core.recordv(event_type, content_ext, payload)
    }

    /// Reserves an event with `payload_bytes` bytes of payload. The caller fills the event in place and commits it.
    ///
    /// The event gets its seqno and its time from this call. If the reservation is dropped without a commit, a
    /// RECORD_ERROR event is recorded in its place. A thread may have several reservations open, but cannot send a
    /// reservation to another thread. Returns `None` if the recorder is disabled.
    #[inline]
    pub fn reserve(&self, event_type: u16, content_ext: [u64; 4], payload_bytes: u64) -> Option<Reservation<'_>> {
        self.core.reserve_in_place(event_type, content_ext, payload_bytes)
    }

    /// Returns true if events are recorded now. Always returns false in a forked child. Also returns false while all
    /// domains are switched off.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.core.may_record()
    }

    /// Returns true if events of the domain with this bit are recorded now, or if this is a forked child.
    #[inline(always)]
    pub(crate) fn records(&self, domain: u64) -> bool {
        self.core.recorded_domains() & domain != 0
    }

    /// Returns true if events of the domain with this bit are recorded now.
    #[inline(always)]
    pub(crate) fn is_domain_enabled(&self, domain: u64) -> bool {
        self.records(domain) && self.core.is_original_process()
    }

    /// Returns the bits of the domains that are recorded now, or 0 if the recorder is off.
    pub(crate) fn recorded_domains(&self) -> u64 {
        self.core.recorded_domains()
    }

    /// Returns true if this process made the recorder. Returns false in a forked child, which has inherited the
    /// recorder.
    pub fn belongs_to_this_process(&self) -> bool {
        self.core.is_original_process()
    }

    /// Returns a warning about the ring's location, for example that the ring has no huge pages. The recorder works in
    /// spite of the warning. Returns `None` if there is nothing to warn about.
    pub fn warning(&self) -> Option<&shm::HugePageWarning> {
        self.core.file.warning()
    }

    /// Returns how many bytes were free when the ring was made, if the program set no size and the ring is smaller than
    /// by default because of that. Otherwise returns `None`.
    pub fn reduced_free_bytes(&self) -> Option<u64> {
        match self.core.writer.memory().header_value(extension::REDUCED_FREE_BYTES) {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Sets whether the file stays when the recorder ends. This replaces the setting of [`RecorderBuilder::keep`](super::RecorderBuilder::keep).
    pub fn keep(&self, keep: bool) {
        self.core.file.keep(keep);
    }

    /// Returns the path of the ring file, or `None` if the ring is anonymous.
    pub fn path(&self) -> Option<&Path> {
        self.core.file.path()
    }

    /// Returns a file descriptor of the ring, which the program may send to another process. Any process that has this
    /// descriptor may map the ring for reading and writing.
    pub fn as_fd(&self) -> shm::BorrowedFd<'_> {
        self.core.file.descriptor()
    }

    /// Returns the ring's sizes.
    pub fn geometry(&self) -> Geometry {
        *self.core.writer.memory().geometry()
    }

    /// Returns the description of the recorder's events.
    pub fn description(&self) -> &ContentDescription {
        self.core.description()
    }

    /// Returns the clock that stamps events.
    pub fn clock(&self) -> &'static Clock {
        self.core.clock
    }

    /// Returns true if an access found that a part of the ring file is gone, for example because another program
    /// truncated the file. Events that were recorded since then may be lost.
    pub fn was_truncated(&self) -> bool {
        self.core.writer.memory().mapping().was_truncated()
    }

    /// Returns the counters.
    pub fn stats(&self) -> RecorderStats {
        let read = |word| self.core.writer.memory().control(word).load(Ordering::Relaxed);
        RecorderStats {
            last_seqno: read(ControlWord::LastSeqno),
            refused_claims: read(ControlWord::RefusedClaims),
            overrun_claims: read(ControlWord::OverrunClaims),
            skipped_chunks: read(ControlWord::SkippedChunks),
            record_errors: read(ControlWord::RecordErrors),
            foreign_events: self.core.refused_events(),
        }
    }

    /// Copies `bytes` to `offset` of the ring's context area, which holds tables for readers. Returns false, without
    /// effect, if the bytes do not fit into the area or the recorder is disabled.
    pub fn write_context(&self, offset: u64, bytes: &[u8]) -> bool {
        self.core.may_record() && self.core.writer.memory().store_context_bytes(offset, bytes)
    }

    /// Stores a word of the context area with release ordering. Call this after [`Self::write_context`] has written
    /// the bytes that the word announces. Returns false if the word is outside of the area or unaligned, or the
    /// recorder is disabled.
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

    /// Registers `hook`. If the process exits normally while the recorder exists, the exiting thread calls `hook`.
    /// Other threads may still record during that call.
    pub(crate) fn at_exit(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.core.file.at_exit(hook);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).field("description", self.core.description()).finish()
    }
}
