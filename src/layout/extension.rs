//! The extension of the header: fields that eventring adds to the header section, after the fixed header. In files of
//! other programs, these fields are zero.
//!
//! All offsets are from the start of the file. A field is a little-endian u64 unless its doc names another type. Fields
//! of a group that the writer does not use are zero.
//!
//! A reader uses the extension only if [`MAGIC_OFFSET`] holds [`MAGIC`] and the major version is known, and checks
//! every value before it uses it.

/// Byte offset of the extension's magic.
pub const MAGIC_OFFSET: usize = 0x100;
/// "EVRINGX1", little endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EVRINGX1");
/// Byte offset of the version. The low 32 bits are `major << 16 | minor`. The high 32 bits are reserved and zero.
pub const VERSION_OFFSET: usize = 0x108;
/// Version of the extension that this crate writes.
///
/// Version 1.1 added [`STATE_EXITING`], [`SHARD_GROUP`] and [`SHARD_LAST_SEQNOS`]; version 1.2 added [`HOLE_TABLE`] and
/// [`COUNT_FOREIGN_EVENTS`]; version 1.3 added [`WRITER_LOCK`];
/// version 1.4 added [`REDUCED_FREE_BYTES`]; version 1.5 added [`SNAPSHOT_EPOCH_NANOS`], and the shard in snapshots.
pub const VERSION: u64 = 1 << 16 | 5;

/// Writer: its process id (u32), then a reserved u32.
pub const WRITER_PID: usize = 0x110;
/// Writer: start time of the process in clock ticks since boot (field 22 of /proc/PID/stat).
pub const WRITER_START_TICKS: usize = 0x118;
/// Writer: inode of its pid namespace.
pub const WRITER_PID_NAMESPACE: usize = 0x120;
/// Writer: boot id, 16 bytes.
pub const WRITER_BOOT_ID: usize = 0x128;
/// Writer: inode of its time namespace.
pub const WRITER_TIME_NAMESPACE: usize = 0x180;
/// Time of the ring's creation, nanoseconds since the epoch.
pub const CREATED_EPOCH_NANOS: usize = 0x138;
/// State of the ring, one of the constants `STATE_*`. A writer that ends normally stores [`STATE_ENDED`] here with
/// release.
pub const STATE: usize = 0x140;
/// State: a writer has the ring open, or died with it open.
pub const STATE_LIVE: u64 = 1;
/// State: the writer has ended normally; no more events follow.
pub const STATE_ENDED: u64 = 2;
/// State: the writer's process is exiting normally. Its other threads may still record; the ring has ended once the
/// process is gone.
pub const STATE_EXITING: u64 = 3;
/// Window step in bytes (0 = the published 2^24).
pub const WINDOW_INCR: usize = 0x148;
/// Payload chunk size in bytes (0 = not chunked).
pub const CHUNK_BYTES: usize = 0x150;

/// Schema text: offset of the text from the start of the file, or 0 if the file has no schema text.
pub const SCHEMA_TEXT_OFFSET: usize = 0x158;
/// Schema text: its length in bytes.
pub const SCHEMA_TEXT_BYTES: usize = 0x160;

/// Shards: index of this ring among the shards of its recorder.
pub const SHARD_INDEX: usize = 0x168;
/// Shards: upper bound of the number of shards; 0 if the ring is not sharded.
pub const SHARD_LIMIT: usize = 0x170;
/// Shards: in shard 0, number of shards that exist. The number only grows. In other shards the word has no meaning. If
/// NAME is the file of shard 0, the file of shard *n* is NAME.*n*.
pub const SHARD_COUNT: usize = 0x178;
/// Shards: number that identifies the recorder. All shards of one recorder have the same number, and no other recorder
/// has it. The number is 0 in rings of version 1.0.
pub const SHARD_GROUP: usize = 0x188;

/// Hole table: [`WIDE_HOLES`] if the ring has the wide hole table, otherwise 0. Two kinds of rings have no wide table:
/// rings before version 1.2, and rings with a schema text that needs the table's space. These rings have only the
/// table at [`HOLES`].
pub const HOLE_TABLE: usize = 0x190;

/// Writer's lock: 1 if the writer holds an open-file-description write lock on the byte at this offset while it has
/// the ring open. The word is 0 if the writer holds only a `flock`. New in version 1.3.
pub const WRITER_LOCK: usize = 0x198;

/// Size: if the writer made the ring smaller than by default, the number of bytes that were free, otherwise 0. New in
/// version 1.4.
pub const REDUCED_FREE_BYTES: usize = 0x1f0;

/// Clock calibration block, see `CLOCK_*`.
pub const CLOCK: usize = 0x200;
/// Clock: kind (0 unknown, 1 CLOCK_REALTIME, 2 tick counter).
pub const CLOCK_KIND: usize = CLOCK;
/// Clock: tick count at the anchor. The anchor is the moment for which this block holds both the tick count and the
/// time.
pub const CLOCK_TICKS0: usize = CLOCK + 0x08;
/// Clock: time at the anchor, nanoseconds since the epoch.
pub const CLOCK_EPOCH_NANOS0: usize = CLOCK + 0x10;
/// Clock: multiplier. Nanoseconds since the epoch = epoch_nanos0 + ((ticks − ticks0) × mult >> shift).
pub const CLOCK_MULT: usize = CLOCK + 0x18;
/// Clock: shift in the formula of [`CLOCK_MULT`].
pub const CLOCK_SHIFT: usize = CLOCK + 0x20;
/// Clock: estimated ticks per second.
pub const CLOCK_TICKS_PER_SECOND: usize = CLOCK + 0x28;

/// Counter: seqnos that were skipped because another writer was stalled inside their slot.
pub const COUNT_REFUSED_CLAIMS: usize = 0x280;
/// Counter: seqnos that were skipped because the ring had gone round: a later event had already used their slot.
pub const COUNT_OVERRUN_CLAIMS: usize = 0x288;
/// Counter: failed attempts to take neighbouring payload chunks. An attempt fails if another writer could still write
/// to one of the chunks.
pub const COUNT_SKIPPED_CHUNKS: usize = 0x290;
/// Counter: events that could not be recorded, so that a RECORD_ERROR took their place.
pub const COUNT_RECORD_ERRORS: usize = 0x298;
/// Counter: descriptions of call sites and threads that did not fit the tables in the context area.
pub const COUNT_TABLE_OVERFLOWS: usize = 0x2a0;

/// Counter: seqnos whose events were missing from the ring when this snapshot was taken. The counter is 0 in files
/// that are not snapshots.
pub const COUNT_SNAPSHOT_LOST: usize = 0x2a8;

/// Counter: typed events that `record!` refused because their schema is not the schema of the ring. New in version
/// 1.2.
pub const COUNT_FOREIGN_EVENTS: usize = 0x2b0;

/// Time at which this snapshot was taken, nanoseconds since the epoch. 0 in files that are not snapshots, and in
/// snapshots whose writer did not say it. New in version 1.5.
pub const SNAPSHOT_EPOCH_NANOS: usize = 0x2b8;

/// Writer: name of its program, UTF-8, NUL padded.
pub const PROGRAM_NAME: usize = 0x300;
/// Size of the program name in bytes.
pub const PROGRAM_NAME_BYTES: usize = 128;
/// Name of the content type, UTF-8, NUL padded.
pub const CONTENT_NAME: usize = 0x380;
/// Size of the content type's name in bytes.
pub const CONTENT_NAME_BYTES: usize = 64;

/// Byte offset of the narrow hole table, which every version has. The table holds seqnos that were handed out and will
/// never be committed. It serves readers that do not know [`WIDE_HOLES`].
///
/// The narrow hole table is divided into sets of `HOLE_WAYS` entries. The set of a seqno begins at entry `(seqno mod
/// (HOLE_ENTRIES / HOLE_WAYS)) * HOLE_WAYS`. A new seqno replaces the smallest entry of its set.
pub const HOLES: usize = 0x1000;
/// Number of entries of the narrow hole table.
pub const HOLE_ENTRIES: usize = 512;
/// Number of entries of one set of the narrow hole table. A set is one cache line.
pub const HOLE_WAYS: usize = 8;

/// Byte offset of the wide hole table, at the end of the header section. The table has [`WIDE_HOLE_SETS`] sets of
/// [`WIDE_HOLE_WAYS`] entries. The slot of a seqno determines its set, see [`wide_hole_set`]. A new hole replaces the
/// smallest entry of its set.
pub const WIDE_HOLES: usize = super::limits::HEADER_SECTION_BYTES as usize - WIDE_HOLE_BYTES;
/// Size of the wide hole table in bytes.
pub const WIDE_HOLE_BYTES: usize = 1 << 19;
/// Number of entries in one set of the wide hole table. (Model checks use a smaller table.)
pub const WIDE_HOLE_WAYS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 32 };
/// Number of sets of the wide hole table, a power of two. (Model checks use a smaller table.)
pub const WIDE_HOLE_SETS: usize = if cfg!(any(loom, shuttle)) { 4 } else { WIDE_HOLE_BYTES / 8 / WIDE_HOLE_WAYS };

/// Returns the index of the set, in the wide hole table, for holes in `slot`. Slots and sets count from 0.
///
/// Consecutive slots belong to consecutive sets. [`WIDE_HOLE_SETS`] consecutive slots are a row. A hash of the row's
/// number chooses the set at which the row begins. In rings of up to `WIDE_HOLE_SETS * WIDE_HOLE_WAYS` slots (65,536),
/// at most [`WIDE_HOLE_WAYS`] slots belong to one set: the set has an entry for each of them. In larger rings, the hash
/// spreads slots at a regular distance over several sets.
pub const fn wide_hole_set(slot: u64) -> u64 {
    // The factor of Knuth's multiplicative hashing: 2^64 divided by the golden ratio. The row's number is multiplied
    // by it twice.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let row = (slot / WIDE_HOLE_SETS as u64).wrapping_mul(FACTOR);
    let begin = (row ^ row >> 32).wrapping_mul(FACTOR) >> 32;
    slot.wrapping_add(begin) % WIDE_HOLE_SETS as u64
}

/// Byte offset of the last seqnos of the shards, which only shard 0 has. The word at `SHARD_LAST_SEQNOS + 8 * n`
/// belongs to shard *n*. The word is 0 until the recorder ends normally. Then it is the shard's last seqno plus one.
///
/// The recorder stores a shard's word with release, before it removes the shard's file. A reader that comes too late
/// to open the file learns from the word how many events it has missed. The word can be too small if a thread records
/// while its process exits.
pub const SHARD_LAST_SEQNOS: usize = 0x2000;
/// Upper bound of the number of shards of a recorder.
pub const SHARDS_MAX: usize = 1024;

/// Offset of the schema text in files that eventring writes.
pub const SCHEMA_TEXT_START: usize = 0x1_0000;
/// Upper bound of the schema text's size in bytes: the rest of the header section after [`SCHEMA_TEXT_START`].
pub const SCHEMA_TEXT_MAX_BYTES: usize = super::limits::HEADER_SECTION_BYTES as usize - SCHEMA_TEXT_START;
