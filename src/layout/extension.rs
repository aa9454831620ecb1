//! What eventring keeps in the header section behind the fixed header: zero in every published file.
//!
//! All offsets are from the start of the file. Fields are little endian u64 unless said otherwise. A reader uses the
//! extension only if [`MAGIC_OFFSET`] holds [`MAGIC`] and the major version is known; each block below is optional and
//! zero when it is not used. Readers check every value before they use it.

/// Byte offset of the extension's magic.
pub const MAGIC_OFFSET: usize = 0x100;
/// "EVRINGX1", little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EVRINGX1");
/// Version in the low 32 bits (major << 16 | minor); the high 32 bits are reserved, zero.
pub const VERSION_OFFSET: usize = 0x108;
/// Version 1.1: [`STATE_EXITING`], [`SHARD_GROUP`] and [`SHARD_LAST_SEQNOS`] are new. Version 1.2: [`HOLE_TABLE`] and [`COUNT_FOREIGN_EVENTS`] are new. Version 1.3: [`WRITER_LOCK`] is
/// new.
pub const VERSION: u64 = 1 << 16 | 3;

/// Writer: process id (u32) and reserved (u32).
pub const WRITER_PID: usize = 0x110;
/// Writer: start time of the process in clock ticks since boot (field 22 of /proc/PID/stat).
pub const WRITER_START_TICKS: usize = 0x118;
/// Writer: inode of its pid namespace.
pub const WRITER_PID_NAMESPACE: usize = 0x120;
/// Writer: boot id, 16 bytes.
pub const WRITER_BOOT_ID: usize = 0x128;
/// Writer: inode of its time namespace.
pub const WRITER_TIME_NAMESPACE: usize = 0x180;
/// When the ring was created, nanoseconds since the epoch.
pub const CREATED_EPOCH_NANOS: usize = 0x138;
/// State of the ring, see `STATE_*`. Written with release when the writer ends in good order.
pub const STATE: usize = 0x140;
/// A writer has the ring open, or died with it open.
pub const STATE_LIVE: u64 = 1;
/// The writer ended cleanly; nothing will be written any more.
pub const STATE_ENDED: u64 = 2;
/// The writer's process exits in good order. Its other threads may still record: the ring has ended when the process is gone.
pub const STATE_EXITING: u64 = 3;
/// Window step in bytes (0 = the published 2^24).
pub const WINDOW_INCR: usize = 0x148;
/// Payload chunk size in bytes (0 = not chunked).
pub const CHUNK_BYTES: usize = 0x150;

/// Schema text: offset from the start of the file; 0 for none.
pub const SCHEMA_TEXT_OFFSET: usize = 0x158;
/// Schema text: bytes.
pub const SCHEMA_TEXT_BYTES: usize = 0x160;

/// Shards: index of this ring among the shards of its recorder.
pub const SHARD_INDEX: usize = 0x168;
/// Shards: the most there can be (0 = the ring is not sharded).
pub const SHARD_LIMIT: usize = 0x170;
/// Shards: how many exist so far; grows, kept in shard 0 only. Shard *n* > 0 of ring NAME is the file NAME.*n*.
pub const SHARD_COUNT: usize = 0x178;
/// Shards: the same number in all shards of a recorder, another in those of any other; 0 in rings of version 1.0.
pub const SHARD_GROUP: usize = 0x188;

/// Hole table: [`WIDE_HOLES`] if it is there; 0 in rings before version 1.2 and in those whose schema text needs its place, where
/// the table at [`HOLES`] is the only one.
pub const HOLE_TABLE: usize = 0x190;

/// Writer's lock: 1 if the writer, while it has the ring open, holds an open-file-description lock for writing on the byte at this offset; 0 if only
/// `flock` tells whether it has. New in version 1.3.
pub const WRITER_LOCK: usize = 0x198;

/// Clock calibration block, see `CLOCK_*`.
pub const CLOCK: usize = 0x200;
/// Clock: kind (0 unknown, 1 CLOCK_REALTIME, 2 tick counter).
pub const CLOCK_KIND: usize = CLOCK;
/// Clock: ticks at the anchor.
pub const CLOCK_TICKS0: usize = CLOCK + 0x08;
/// Clock: nanoseconds since the epoch at the anchor.
pub const CLOCK_EPOCH_NANOS0: usize = CLOCK + 0x10;
/// Clock: multiplier; nanoseconds = nanos0 + ((ticks − ticks0) × mult >> shift).
pub const CLOCK_MULT: usize = CLOCK + 0x18;
/// Clock: shift.
pub const CLOCK_SHIFT: usize = CLOCK + 0x20;
/// Clock: estimated ticks per second.
pub const CLOCK_TICKS_PER_SECOND: usize = CLOCK + 0x28;

/// Counter: claims refused because another writer was stalled inside the slot.
pub const COUNT_REFUSED_CLAIMS: usize = 0x280;
/// Counter: seqnos that were given up because the ring had already gone round.
pub const COUNT_LAPPED_CLAIMS: usize = 0x288;
/// Counter: payload chunks skipped because another writer was inside them.
pub const COUNT_SKIPPED_CHUNKS: usize = 0x290;
/// Counter: events that became RECORD_ERROR.
pub const COUNT_RECORD_ERRORS: usize = 0x298;
/// Counter: entries that did not fit a context table.
pub const COUNT_TABLE_OVERFLOWS: usize = 0x2a0;

/// Counter: seqnos of the ring that were not there when this snapshot was taken of it. 0 in rings.
pub const COUNT_SNAPSHOT_LOST: usize = 0x2a8;

/// Counter: events that `record!` refused, because they have another schema than the ring. New in version 1.2.
pub const COUNT_FOREIGN_EVENTS: usize = 0x2b0;

/// Writer: name of its program, UTF-8, NUL padded.
pub const PROGRAM_NAME: usize = 0x300;
/// Bytes of the program name.
pub const PROGRAM_NAME_BYTES: usize = 128;
/// Name of the content type, UTF-8, NUL padded.
pub const CONTENT_NAME: usize = 0x380;
/// Bytes of the content type's name.
pub const CONTENT_NAME_BYTES: usize = 64;

/// The hole table that every version has, for readers that do not know [`WIDE_HOLES`]: seqnos that were handed out and will never
/// be committed. Entries `(seqno mod (HOLE_ENTRIES / HOLE_WAYS)) * HOLE_WAYS` and the `HOLE_WAYS - 1` behind it are where a seqno
/// may stand; a new one replaces the smallest.
pub const HOLES: usize = 0x1000;
/// Entries of that table.
pub const HOLE_ENTRIES: usize = 512;
/// Entries of one set of that table: a cache line.
pub const HOLE_WAYS: usize = 8;

/// The wide hole table: [`WIDE_HOLE_SETS`] sets of [`WIDE_HOLE_WAYS`] entries at the end of the header section. The set of a seqno
/// is that of its slot, see [`wide_hole_set`]; a new hole replaces the smallest entry of its set.
pub const WIDE_HOLES: usize = super::limits::HEADER_SECTION_BYTES as usize - WIDE_HOLE_BYTES;
/// Bytes of the wide hole table.
pub const WIDE_HOLE_BYTES: usize = 1 << 19;
/// Entries of one set of the wide hole table. (Models use fewer.)
pub const WIDE_HOLE_WAYS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 32 };
/// Sets of the wide hole table, a power of two. (Models use fewer.)
pub const WIDE_HOLE_SETS: usize = if cfg!(any(loom, shuttle)) { 4 } else { WIDE_HOLE_BYTES / 8 / WIDE_HOLE_WAYS };

/// The set of the wide hole table for the seqnos of `slot` (from 0).
///
/// Slots in a row go to sets in a row, and each row of [`WIDE_HOLE_SETS`] slots begins somewhere else. So up to
/// `WIDE_HOLE_SETS * WIDE_HOLE_WAYS` slots (65,536), no more slots share a set than it has entries; in larger rings, slots at any
/// regular distance do not meet in one set.
pub const fn wide_hole_set(slot: u64) -> u64 {
    // Knuth's multiplicative hashing (2^64 divided by the golden ratio), twice.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let row = (slot / WIDE_HOLE_SETS as u64).wrapping_mul(FACTOR);
    let begin = (row ^ row >> 32).wrapping_mul(FACTOR) >> 32;
    slot.wrapping_add(begin) % WIDE_HOLE_SETS as u64
}

/// Shards, in shard 0: for shard *n* the word `SHARD_LAST_SEQNOS + 8 * n` is 0 until the recorder ends in good order, then the
/// shard's last seqno plus one. It is stored with release before the shard's file is removed: who comes too late to open the file
/// knows how many events he has missed. (A thread that records while its process exits can come behind the count.)
pub const SHARD_LAST_SEQNOS: usize = 0x2000;
/// The most shards that a recorder can have.
pub const SHARDS_MAX: usize = 1024;

/// Where schema text begins in files that eventring writes.
pub const SCHEMA_TEXT_START: usize = 0x1_0000;
/// Most bytes of a schema text: what is left of the header section.
pub const SCHEMA_TEXT_MAX_BYTES: usize = super::limits::HEADER_SECTION_BYTES as usize - SCHEMA_TEXT_START;
