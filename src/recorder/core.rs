//! The state that all handles of one recorder share.

use super::config::ContentDescription;
use super::events::TakenEvents;
use crate::clock::Clock;
use crate::layout::extension;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::layout::record_error::ErrorType;
use crate::ring::memory::{ControlWord, MappedMemory, RingMemory};
use crate::ring::writer::RingWriter;
use crate::shm;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The state that all handles of one recorder share. The fields that recording an event needs come first: together with
/// the writer's fields they take three cache lines.
#[repr(C)]
pub(crate) struct Core {
    enabled: AtomicBool,
    /// Number that no other recorder of this process ever has. Threads find their payload cursor for this recorder by
    /// the number.
    pub(super) id: u64,
    pub(super) clock: &'static Clock,
    /// Largest payload, before rounding, that can be recorded: less than 2^32.
    pub(super) payload_bytes_max: u64,
    fork_guard: shm::ForkGuard,
    pub(super) writer: RingWriter<MappedMemory>,
    /// Smallest rounded size of a payload that could expire before it is read.
    overflow_expire_bytes: u64,
    pub(super) file: shm::OwnedRingFile,
    description: ContentDescription,
    pub(super) taken_events: TakenEvents,
}

impl Core {
    pub(super) fn new(
        memory: MappedMemory,
        file: shm::OwnedRingFile,
        fork_guard: shm::ForkGuard,
        clock: &'static Clock,
        description: ContentDescription,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let overflow_expire_bytes = memory.geometry().overflow_expire_bytes();
        let writer = RingWriter::new(memory);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            overflow_expire_bytes,
            // A size up to `limit - align` rounds up to at most `limit - align`. A larger size rounds up to the limit
            // or more, and is not recorded.
            payload_bytes_max: overflow_expire_bytes.min(1 << 32) - PAYLOAD_ALIGN,
            writer,
            clock,
            enabled: AtomicBool::new(true),
            fork_guard,
            file,
            description,
            taken_events: TakenEvents::none(),
        }
    }

    /// Returns true if recording is switched on and this process surely owns the ring. If the answer would need a
    /// system call, returns false, also in the process that owns the ring. Fast paths call this function, because they
    /// must not make system calls.
    #[inline(always)]
    pub(super) fn may_surely_record(&self) -> bool {
        self.is_switched_on() && self.is_surely_original_process()
    }

    /// Returns true if recording is switched on, in the process that owns the ring.
    #[inline(always)]
    pub(crate) fn may_record(&self) -> bool {
        self.is_switched_on() && self.is_original_process()
    }

    /// Returns true if this process is known, without a system call, not to be a forked child.
    #[inline(always)]
    pub(super) fn is_surely_original_process(&self) -> bool {
        self.fork_guard.is_surely_original_process()
    }

    /// Returns true if this is not a forked child.
    #[inline(always)]
    pub(super) fn is_original_process(&self) -> bool {
        self.fork_guard.is_original_process()
    }

    #[inline(always)]
    pub(super) fn is_switched_on(&self) -> bool {
        // Relaxed: the switch orders no other memory.
        self.enabled.load(Ordering::Relaxed)
    }

    /// Switches recording on or off.
    pub(super) fn set_enabled(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    /// Returns the description of the events that the ring holds.
    pub(super) fn description(&self) -> &ContentDescription {
        &self.description
    }

    /// Returns the kind of overflow that a payload of `bytes` is, or `None` if it can be recorded.
    pub(super) fn overflow(&self, bytes: u64) -> Option<ErrorType> {
        let rounded = bytes.checked_next_multiple_of(PAYLOAD_ALIGN);
        match rounded {
            Some(rounded) if rounded <= u64::from(u32::MAX) => {
                (rounded >= self.overflow_expire_bytes).then_some(ErrorType::OverflowExpire)
            }
            _ => Some(ErrorType::Overflow4Gb),
        }
    }

    /// Counts an event that became a RECORD_ERROR.
    pub(super) fn count_record_error(&self) {
        self.writer.memory().control(ControlWord::RecordErrors).fetch_add(1, Ordering::Relaxed);
    }

    /// Adds to one of the extension's counters.
    pub(crate) fn add_to_counter(&self, offset: usize, value: u64) {
        if self.may_record() {
            self.writer.memory().header_word(offset).fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Stores a word of the header extension with release ordering, whether events are recorded now or not.
    pub(crate) fn publish_header_word(&self, offset: usize, value: u64) {
        if self.is_original_process() {
            self.writer.memory().header_word(offset).store(value, Ordering::Release);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Release: a reader that sees the state "ended" also sees every event of the recorder.
        self.publish_header_word(extension::STATE, extension::STATE_ENDED);
    }
}
