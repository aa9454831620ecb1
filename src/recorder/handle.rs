//! `Recorder`: the handle through which a program records.

use super::build::RecorderBuilder;
use super::config::ContentDescription;
use super::core::Core;
use super::events;
use super::reservation::Reservation;
use crate::clock::Clock;
use crate::layout::{Geometry, extension};
use crate::ring::memory::{ControlWord, RingMemory};
use crate::shm;
use crate::sync::Ordering;
use std::path::Path;
use std::sync::Arc;

/// Handle through which a program records events to one ring. A clone is another handle to the same ring. The drop of
/// the last handle closes the ring.
///
/// All methods take `&self` and may be called from any thread at any time, also between a reservation and its commit,
/// and while the thread ends. No method waits for a reader or another writer, and no method fails: an event that cannot
/// be recorded becomes a RECORD_ERROR event. A signal handler may record on threads that have recorded to the ring
/// before, because the first event of a thread allocates memory.
///
/// In a forked child a recorder is disabled for good: its ring belongs to the parent. Create a new recorder in the
/// child.
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

/// Counts of a recorder since its ring was created. The counters are in the ring's header, where readers see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Last sequence number handed out: events recorded, plus holes.
    pub last_seqno: u64,
    /// Holes: seqnos given up because another writer was stalled inside their slot. Their events got later seqnos.
    pub refused_claims: u64,
    /// Holes: seqnos given up because the ring was already a lap further when their writer tried to claim the slot.
    pub lapped_claims: u64,
    /// Attempts to take payload memory that failed because a stalled writer held one of the chunks.
    pub skipped_chunks: u64,
    /// Events that became RECORD_ERROR.
    pub record_errors: u64,
    /// Events that `record!` refused because the ring was made for events of another schema. They have no seqno.
    pub foreign_events: u64,
}

impl Recorder {
    /// Starts the configuration of a recorder for the events that `description` names.
    pub fn builder(description: ContentDescription) -> RecorderBuilder {
        RecorderBuilder::new(description)
    }

    /// Records an event with one buffer of payload, which may be empty, and returns its sequence number, or 0 if the
    /// recorder is disabled.
    ///
    /// `event_type` is the event's code, `content_ext` its four extension words.
    ///
    /// A payload that is too large becomes a RECORD_ERROR event with its first 8,176 bytes. The limits are 4 GiB, and
    /// the size of the payload buffer less twice the step of its window. Twice the step is 32 MiB; in buffers below 128
    /// MiB it is a sixteenth of the buffer. Payloads are padded to 16 bytes.
    #[inline(always)]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.core.record(event_type, content_ext, payload)
    }

    /// Records an event whose payload is gathered from several buffers, in order, without an allocation.
    ///
    /// In all other respects this method is like [`Self::record`].
    #[inline]
    pub fn recordv(&self, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        self.core.recordv(event_type, content_ext, payload)
    }

    /// Reserves an event with `payload_bytes` bytes of payload, to be filled in place and committed.
    ///
    /// The event gets its seqno and its time now. A reservation that is dropped without commit becomes a RECORD_ERROR
    /// event. Reservations may be nested. A reservation cannot be sent to another thread. Returns `None` if the
    /// recorder is disabled.
    #[inline]
    pub fn reserve(&self, event_type: u16, content_ext: [u64; 4], payload_bytes: u64) -> Option<Reservation<'_>> {
        self.core.reserve_in_place(event_type, content_ext, payload_bytes)
    }

    /// Returns true if events are recorded now. Always returns false in a forked child.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.core.may_record()
    }

    /// Switches recording on or off, for all handles.
    pub fn set_enabled(&self, enabled: bool) {
        self.core.set_enabled(enabled);
    }

    /// Returns true if this process made the recorder and did not inherit it by a fork.
    pub fn belongs_to_this_process(&self) -> bool {
        self.core.is_original_process()
    }

    /// Returns a warning about the ring's place, for example that it has no huge pages. The recorder works
    /// nevertheless.
    pub fn warning(&self) -> Option<&shm::HugePageWarning> {
        self.core.file.warning()
    }

    /// Sets whether the file stays when the recorder ends, instead of the builder's setting.
    pub fn keep(&self, keep: bool) {
        self.core.file.keep(keep);
    }

    /// Returns the path of the ring file, or `None` if the ring is anonymous.
    pub fn path(&self) -> Option<&Path> {
        self.core.file.path()
    }

    /// Returns a file descriptor of the ring, to send to another process. Any process that has the descriptor and the
    /// permission may map the ring.
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

    /// Returns true if another program truncated the ring file. Events recorded since then are lost.
    pub fn was_truncated(&self) -> bool {
        self.core.writer.memory().mapping().was_truncated()
    }

    /// Returns the counters.
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

    /// Copies `bytes` into the ring's context area, which holds tables of the ring's content type. Returns false if the
    /// bytes do not fit.
    pub fn write_context(&self, offset: u64, bytes: &[u8]) -> bool {
        self.core.may_record() && self.core.writer.memory().store_context_bytes(offset, bytes)
    }

    /// Publishes a word of the context area with release ordering, after the bytes that it announces. Returns false if
    /// the word is outside of the area or unaligned.
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

    /// Registers `hook`, which the exiting thread calls if the process exits normally while the recorder exists. Other
    /// threads may still record during that call.
    #[cfg_attr(not(feature = "tracing"), allow(dead_code, reason = "the perf recorder's business"))]
    pub(crate) fn at_exit(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.core.file.at_exit(hook);
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).field("description", self.core.description()).finish()
    }
}
