//! The state that all handles of one recorder share.

use super::config::ContentDescription;
use super::domain_switch::DomainSwitch;
use crate::clock::Clock;
use crate::layout::extension;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::layout::record_error::ErrorType;
use crate::layout::start_table::{self as table, START_CODE};
use crate::ring::memory::{ControlWord, MappedMemory, RingMemory};
use crate::ring::start_table;
use crate::ring::writer::RingWriter;
use crate::shm;
use crate::sync::interrupted::OwnerTag;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Number of places in which a thread remembers its payload cursors, to find them without a search. The recorder's id
/// modulo this number selects the place. Most programs record to one or two rings.
pub(super) const REMEMBERED: usize = 4;

/// The `id` of the type of events that a recorder accepted last, or 0. With it, most events need no comparison of
/// schemas.
#[derive(Debug)]
pub(super) struct TakenEvents(pub(super) AtomicUsize);

impl TakenEvents {
    const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }
}

/// The state that all handles of one recorder share. The fields that every recording call needs come first. These
/// fields and the part of `writer` that every call needs take three cache lines.
#[repr(C)]
pub(crate) struct Core {
    /// The bits of the domains that are recorded now, or 0 while the recorder is off. `switch` has the values from
    /// which the word is computed.
    recorded_domains: AtomicU64,
    /// True if the ring keeps start records.
    has_start_table: bool,
    /// The place in which a thread remembers its payload cursor.
    pub(super) place: u8,
    /// The index of the ring among the shards of its recorder.
    shard_index: u16,
    /// Tag of `id`, by which a thread finds its payload cursor for this recorder.
    pub(super) tag: OwnerTag,
    pub(super) clock: &'static Clock,
    /// Largest size in bytes, before padding, of a payload that can be recorded. It is less than 2^32.
    pub(super) payload_bytes_max: u64,
    fork_guard: shm::ForkGuard,
    pub(super) writer: RingWriter<MappedMemory>,
    /// Smallest padded size in bytes of a payload that is too large for the buffer: it could expire before it is read.
    overflow_expire_bytes: u64,
    pub(super) file: shm::OwnedRingFile,
    description: ContentDescription,
    pub(super) taken_events: TakenEvents,
    /// The place of the ring on the list of the server of this process.
    #[allow(dead_code, reason = "the ring is on the list as long as this value lives")]
    pub(super) export: Option<super::served::Export>,
    pub(super) switch: DomainSwitch,
    /// Number that no other recorder of this process ever has.
    pub(super) id: u64,
}

impl Core {
    /// Returns the number of events that `record!` refused.
    pub(super) fn refused_events(&self) -> u64 {
        self.writer.memory().header_value(extension::COUNT_FOREIGN_EVENTS)
    }

    pub(super) fn new(
        memory: MappedMemory,
        file: shm::OwnedRingFile,
        fork_guard: shm::ForkGuard,
        clock: &'static Clock,
        description: ContentDescription,
        switch: DomainSwitch,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let overflow_expire_bytes = memory.geometry().overflow_expire_bytes();
        let has_start_table = description.content_type() == table::CONTENT_TYPE && start_table::exists(&memory);
        let shard_index = memory.header_value(extension::SHARD_INDEX) as u16;
        let writer = RingWriter::new(memory);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self {
            tag: OwnerTag::from_number(id),
            place: (id % REMEMBERED as u64) as u8,
            id,
            overflow_expire_bytes,
            // A payload is not recorded if its padded size reaches the limit: `overflow_expire_bytes`, or 2^32 if that
            // is less. The limit is a multiple of the alignment. So the largest size that stays below the limit is one
            // alignment step less.
            payload_bytes_max: overflow_expire_bytes.min(1 << 32) - PAYLOAD_ALIGN,
            writer,
            clock,
            recorded_domains: AtomicU64::new(switch.recorded()),
            has_start_table,
            // There are 1,024 shards at most.
            shard_index,
            fork_guard,
            file,
            description,
            taken_events: TakenEvents::none(),
            export: None,
            switch,
        }
    }

    /// Returns true if an event with this code may take the fast path: recording is switched on, this process is known
    /// to own the ring, and the event is no start whose record the ring keeps. Never makes a system call.
    /// On kernels before 4.14, this function returns false in every process, because only a system call can distinguish
    /// the owner from a forked child. The slow path makes that call.
    #[inline(always)]
    pub(super) fn takes_fast_path(&self, event_type: u16) -> bool {
        // Callers mostly pass a constant. The compiler then leaves out the comparison of the code.
        self.is_switched_on() && !self.keeps_start_record(event_type) && self.is_surely_original_process()
    }

    /// Returns true if an event with this code is a start whose record the ring keeps.
    #[inline(always)]
    pub(super) fn keeps_start_record(&self, event_type: u16) -> bool {
        event_type == START_CODE && self.has_start_table
    }

    /// Returns true if recording is switched on and this process owns the ring. In a forked child it returns false.
    #[inline(always)]
    pub(crate) fn may_record(&self) -> bool {
        self.is_switched_on() && self.is_original_process()
    }

    /// Returns true if the fork guard knows, without a system call, that this process is not a forked child.
    #[inline(always)]
    pub(crate) fn is_surely_original_process(&self) -> bool {
        self.fork_guard.is_surely_original_process()
    }

    /// Returns true if this is not a forked child.
    #[inline(always)]
    pub(super) fn is_original_process(&self) -> bool {
        self.fork_guard.is_original_process()
    }

    #[inline(always)]
    pub(super) fn is_switched_on(&self) -> bool {
        self.recorded_domains() != 0
    }

    /// Returns the bits of the domains that are recorded now, or 0 while the recorder is off.
    #[inline(always)]
    pub(super) fn recorded_domains(&self) -> u64 {
        // Relaxed: the switch orders no other memory.
        self.recorded_domains.load(Ordering::Relaxed)
    }

    /// Stores the bits of the domains that are recorded from now on.
    pub(super) fn publish_recorded_domains(&self, domains: u64) {
        self.recorded_domains.store(domains, Ordering::Relaxed);
    }

    /// Returns the index of the ring among the shards of its recorder.
    #[inline(always)]
    pub(crate) fn shard_index(&self) -> u64 {
        self.shard_index.into()
    }

    /// Returns the description of the events that the ring holds.
    pub(super) fn description(&self) -> &ContentDescription {
        &self.description
    }

    /// Returns the reason why a payload of `bytes` bytes is too large to record, or `None` if it can be recorded.
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

    /// Returns the process id that the header names, and the time at which the ring was made, in nanoseconds since the
    /// epoch.
    #[cfg(feature = "context")]
    pub(crate) fn writer_and_creation(&self) -> (u32, u64) {
        let word = |offset: usize| self.writer.memory().header_word(offset).load(Ordering::Relaxed);
        (word(extension::WRITER_PID) as u32, word(extension::CREATED_EPOCH_NANOS))
    }

    /// Adds to one of the extension's counters.
    pub(crate) fn add_to_counter(&self, offset: usize, value: u64) {
        if self.may_record() {
            self.writer.memory().header_word(offset).fetch_add(value, Ordering::Relaxed);
        }
    }

    /// Stores a word of the header extension with release ordering, also while recording is switched off. In a forked
    /// child this does nothing.
    pub(crate) fn publish_header_word(&self, offset: usize, value: u64) {
        if self.is_original_process() {
            self.writer.memory().header_word(offset).store(value, Ordering::Release);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Release, pairs with the reader's acquire load of the state word: a reader that sees the state "ended" also
        // sees every event of the recorder.
        self.publish_header_word(extension::STATE, extension::STATE_ENDED);
    }
}
