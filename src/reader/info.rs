//! The header of a ring, decoded.

use crate::layout::{Geometry, extension as ext, header};
use crate::ring::memory::{MappedMemory, RingMemory};
use crate::ring::observe::SEQNO_MAX;
use crate::shm::ProcessIdentity;

/// A copy of a ring's header, decoded. The values are not checked, so the header of a damaged file can show any number
/// here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RingInfo {
    /// Content type, see [`crate::layout::header`].
    pub content_type: u16,
    /// Name of the content type, if the file has one.
    pub content_name: Option<String>,
    /// Schema hash.
    pub schema_hash: [u8; 32],
    /// Sizes.
    pub geometry: Geometry,
    /// Last seqno that was handed out, or 0 if none was handed out. A damaged header may hold a number above 2^63 - 1,
    /// which is read as 2^63 - 1.
    pub last_seqno: u64,
    /// Next payload byte to allocate, unwrapped.
    pub next_payload_byte: u64,
    /// Start of the buffer window, unwrapped.
    pub buffer_window_start: u64,
    /// The fields that only eventring's writers add; `None` in files of other writers.
    pub extension: Option<ExtensionInfo>,
}

/// The content of eventring's extension of the header.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExtensionInfo {
    /// Extension version, major << 16 | minor.
    pub version: u32,
    /// The process that writes, or wrote, the ring.
    pub writer: WriterInfo,
    /// Time of the ring's creation, nanoseconds since the epoch.
    pub created_epoch_nanos: u64,
    /// True once the writer has closed the ring.
    pub is_ended: bool,
    /// Index of the ring among the shards of its recorder.
    pub shard_index: u64,
    /// The largest number of shards that the recorder may make; 0 if the ring is not sharded.
    pub shard_limit: u64,
    /// Number of shards that the recorder has made so far. Only shard 0 has the right number in its header.
    pub shard_count: u64,
    /// A number that identifies the recorder: all of its shards have the same number, and shards of other recorders
    /// have other numbers. 0 if the ring is not sharded, or if its writer is too old to set the number.
    pub shard_group: u64,
    /// Number of bytes that were free when the writer made the ring, if the ring is smaller than by default because of
    /// that; otherwise 0.
    pub reduced_free_bytes: u64,
    /// The clock's calibration when it was last stored.
    pub clock: ClockInfo,
    /// Number of seqnos that writers skipped because another writer was stalled inside the slot.
    pub refused_claims: u64,
    /// Number of seqnos that writers skipped because other writers recorded a whole lap before the slot was claimed.
    pub overrun_claims: u64,
    /// Number of failed attempts to take payload chunks. An attempt fails if another writer could still write to one of
    /// the chunks.
    pub skipped_chunks: u64,
    /// Events that became RECORD_ERROR.
    pub record_errors: u64,
    /// Entries for which a context table had no room.
    pub table_overflows: u64,
    /// Number of typed events that were refused because their schema is not the ring's schema.
    pub foreign_events: u64,
    /// Number of seqnos that are missing in this snapshot: they were overwritten, or not committed yet, when the
    /// snapshot was taken. 0 if the ring is not a snapshot.
    pub snapshot_lost: u64,
    /// Time at which this snapshot was taken, nanoseconds since the epoch. 0 if the ring is not a snapshot, or if the
    /// snapshot does not say it.
    pub snapshot_epoch_nanos: u64,
}

/// The clock calibration in a ring's header. It turns ticks into nanoseconds since the epoch:
/// `epoch_nanos0 + ((ticks - ticks0) * mult >> shift)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockInfo {
    /// 0 unknown, 1 CLOCK_REALTIME, 2 tick counter.
    pub kind: u64,
    /// Ticks at the anchor.
    pub ticks0: u64,
    /// Nanoseconds at the anchor.
    pub epoch_nanos0: u64,
    /// Multiplier.
    pub mult: u64,
    /// Shift.
    pub shift: u64,
    /// Estimated ticks per second.
    pub ticks_per_second: u64,
}

/// The process that writes a ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterInfo {
    /// Process id, in the writer's pid namespace.
    pub pid: u32,
    /// Name of the program, at most 128 bytes.
    pub program_name: String,
    /// The identity of the process. It differs from that of any earlier process with the same pid.
    pub(crate) identity: ProcessIdentity,
}

impl WriterInfo {
    /// Returns true if this is the process that has the number `pid` here; see
    /// [`ProcessIdentity::is_process`](crate::shm::ProcessIdentity::is_process).
    #[doc(hidden)]
    #[must_use]
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub fn is_process(&self, pid: u32) -> bool {
        self.identity.is_process(pid)
    }

    /// Returns true if the process is in the pid namespace of this one, so that its number means the same process here.
    #[doc(hidden)]
    #[must_use]
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub fn is_numbered_here(&self) -> bool {
        self.identity.pid_namespace == ProcessIdentity::current().pid_namespace
    }

    /// Returns the numbers that tell the process from all others, also from those of other hosts.
    pub fn identity_words(&self) -> [u64; 6] {
        let ProcessIdentity { pid, start_ticks, pid_namespace, time_namespace, boot_id } = self.identity;
        let boot_id = u128::from_le_bytes(boot_id);
        [pid.into(), start_ticks, pid_namespace, time_namespace, boot_id as u64, (boot_id >> 64) as u64]
    }
}

/// The state of a ring. It says whether more events can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RingState {
    /// The writer lives and has the ring open.
    Live,
    /// The writer has closed the ring, or its process has exited in good order. A writer of another implementation has
    /// ended, in whatever way: its file does not tell.
    Ended,
    /// The writer died without closing the ring.
    WriterDied,
    /// A snapshot or a copy, to which nobody ever writes.
    Saved,
    /// The file was truncated while this reader had it mapped. The events after the new end are lost. This reader
    /// cannot read events that are recorded from now on.
    Truncated,
    /// A page of the file could not be read, because the system had no memory for it. Events are lost, and this reader
    /// cannot read later events.
    NoMemory,
    /// A page of the file could not be read, because of an I/O error. Events are lost, and this reader cannot read
    /// later events.
    Unreadable,
    /// The state cannot be found out from this process: the writer is in another pid namespace, or the system gives no
    /// lock information.
    Unknown,
}

impl RingState {
    /// Returns true if a program may write the ring: the state is `Live` or `Unknown`.
    #[must_use]
    pub const fn may_be_written(self) -> bool {
        matches!(self, Self::Live | Self::Unknown)
    }
}

/// Returns the content type of a ring.
pub(super) fn content_type(memory: &MappedMemory) -> u16 {
    let mut bytes = [0; 2];
    memory.load_header_bytes(header::CONTENT_TYPE, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// Returns true if the header says that the writer's process is exiting in good order. Other threads of the process
/// may still record. All of their events are in the ring once the process is gone.
pub(super) fn is_exiting(memory: &MappedMemory) -> bool {
    memory.has_holes() && memory.header_value(ext::STATE) == ext::STATE_EXITING
}

/// Returns the unwrapped offset at which the next payload will begin, or later.
pub(super) fn next_payload_byte(memory: &MappedMemory) -> u64 {
    memory.header_value(header::NEXT_PAYLOAD_BYTE)
}

/// Returns how many shards the ring's recorder has made, or 0 if the ring is not sharded.
pub(super) fn shard_count(memory: &MappedMemory) -> u64 {
    if !memory.has_holes() {
        return 0;
    }
    let limit = memory.header_value(ext::SHARD_LIMIT).min(ext::SHARDS_MAX as u64);
    // Acquire, pairs with the release store by which the recorder counts a new shard. The recorder makes the shard's
    // file before this store. So a reader that sees the count can open the file.
    memory.header_value_acquired(ext::SHARD_COUNT).min(limit)
}

/// Returns the last seqno of shard `index`. A recorder stores the last seqnos of all shards in shard 0 when it ends in
/// good order. Returns `None` before that.
pub(super) fn shard_last_seqno(memory: &MappedMemory, index: u32) -> Option<u64> {
    let index = index as usize;
    if !memory.has_holes() || index >= ext::SHARDS_MAX {
        return None;
    }
    memory.header_value_acquired(ext::SHARD_LAST_SEQNOS + index * 8).min(SEQNO_MAX).checked_sub(1)
}

/// Returns true if the header says that the writer has ended the ring.
pub(super) fn is_ended(memory: &MappedMemory) -> bool {
    // Acquire, pairs with the release store by which the writer ends the ring. So a reader that sees the end also sees
    // all events of the writer.
    memory.has_holes() && memory.header_value_acquired(ext::STATE) == ext::STATE_ENDED
}

/// Returns the writer's identity, if the file holds it.
pub(super) fn identity(memory: &MappedMemory) -> Option<ProcessIdentity> {
    if !memory.has_holes() {
        return None;
    }
    let word = |offset| memory.header_value(offset);
    let mut boot_id = [0; 16];
    memory.load_header_bytes(ext::WRITER_BOOT_ID, &mut boot_id);
    Some(ProcessIdentity {
        pid: word(ext::WRITER_PID) as u32,
        start_ticks: word(ext::WRITER_START_TICKS),
        pid_namespace: word(ext::WRITER_PID_NAMESPACE),
        time_namespace: word(ext::WRITER_TIME_NAMESPACE),
        boot_id,
    })
}

/// Reads the whole header.
pub(super) fn read(memory: &MappedMemory) -> RingInfo {
    let mut schema_hash = [0; 32];
    memory.load_header_bytes(header::SCHEMA_HASH, &mut schema_hash);
    let extension = memory.has_holes().then(|| read_extension(memory));
    let content_name = extension.as_ref().map(|_| text(memory, ext::CONTENT_NAME, ext::CONTENT_NAME_BYTES));
    RingInfo {
        content_type: content_type(memory),
        content_name: content_name.filter(|name| !name.is_empty()),
        schema_hash,
        geometry: *memory.geometry(),
        last_seqno: memory.header_value(header::LAST_SEQNO).min(SEQNO_MAX),
        next_payload_byte: memory.header_value(header::NEXT_PAYLOAD_BYTE),
        buffer_window_start: memory.header_value(header::BUFFER_WINDOW_START),
        extension,
    }
}

fn read_extension(memory: &MappedMemory) -> ExtensionInfo {
    let word = |offset| memory.header_value(offset);
    let identity = identity(memory).unwrap_or_default();
    ExtensionInfo {
        version: word(ext::VERSION_OFFSET) as u32,
        writer: WriterInfo {
            pid: identity.pid,
            program_name: text(memory, ext::PROGRAM_NAME, ext::PROGRAM_NAME_BYTES),
            identity,
        },
        created_epoch_nanos: word(ext::CREATED_EPOCH_NANOS),
        is_ended: is_ended(memory),
        shard_index: word(ext::SHARD_INDEX),
        shard_limit: word(ext::SHARD_LIMIT),
        shard_count: word(ext::SHARD_COUNT),
        shard_group: word(ext::SHARD_GROUP),
        clock: ClockInfo {
            kind: word(ext::CLOCK_KIND),
            ticks0: word(ext::CLOCK_TICKS0),
            epoch_nanos0: word(ext::CLOCK_EPOCH_NANOS0),
            mult: word(ext::CLOCK_MULT),
            shift: word(ext::CLOCK_SHIFT),
            ticks_per_second: word(ext::CLOCK_TICKS_PER_SECOND),
        },
        refused_claims: word(ext::COUNT_REFUSED_CLAIMS),
        overrun_claims: word(ext::COUNT_OVERRUN_CLAIMS),
        skipped_chunks: word(ext::COUNT_SKIPPED_CHUNKS),
        record_errors: word(ext::COUNT_RECORD_ERRORS),
        table_overflows: word(ext::COUNT_TABLE_OVERFLOWS),
        foreign_events: word(ext::COUNT_FOREIGN_EVENTS),
        reduced_free_bytes: word(ext::REDUCED_FREE_BYTES),
        snapshot_lost: word(ext::COUNT_SNAPSHOT_LOST),
        snapshot_epoch_nanos: word(ext::SNAPSHOT_EPOCH_NANOS),
    }
}

/// Returns a NUL-padded text of the header. Replaces control characters, and bytes that are not UTF-8, by U+FFFD.
fn text(memory: &MappedMemory, offset: usize, bytes: usize) -> String {
    let mut buffer = vec![0; bytes];
    memory.load_header_bytes(offset, &mut buffer);
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(bytes);
    let shown = String::from_utf8_lossy(&buffer[..end]);
    shown.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the schema text. Returns `None` if the file has no schema text, if the text is not UTF-8, or if its size is
/// impossible.
pub(super) fn schema_text(memory: &MappedMemory) -> Option<String> {
    if !memory.has_holes() {
        return None;
    }
    let word = |offset| usize::try_from(memory.header_value(offset)).ok();
    let (offset, bytes) = (word(ext::SCHEMA_TEXT_OFFSET)?, word(ext::SCHEMA_TEXT_BYTES)?);
    if offset < ext::SCHEMA_TEXT_START || bytes == 0 || bytes > ext::SCHEMA_TEXT_MAX_BYTES {
        return None;
    }
    let mut buffer = vec![0; bytes];
    memory.load_header_bytes(offset, &mut buffer).then_some(())?;
    String::from_utf8(buffer).ok()
}
