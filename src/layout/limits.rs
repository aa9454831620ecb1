//! Limits and defaults of ring files.

/// Size of the header section in bytes: the fixed header, the extension, and zeros.
pub const HEADER_SECTION_BYTES: u64 = 1 << 21;
/// Size of one descriptor in bytes.
pub const DESCRIPTOR_BYTES: u64 = 64;
/// Size of one descriptor in 64-bit words.
pub const DESCRIPTOR_WORDS: usize = 8;
/// Alignment of payloads in bytes, in files that eventring writes. Readers must not rely on it, because older files of
/// the published format align payloads to 8 bytes.
pub const PAYLOAD_ALIGN: u64 = 16;
/// The published step of the buffer window, in bytes.
pub const WINDOW_INCR: u64 = 1 << 24;

/// Limits of the descriptor shift in the published format. (The capacity is 2^shift descriptors.)
pub const DESCRIPTOR_SHIFTS: core::ops::RangeInclusive<u32> = 16..=32;
/// Limits of the payload shift in the published format. (The payload buffer has 2^shift bytes.)
pub const PAYLOAD_SHIFTS: core::ops::RangeInclusive<u32> = 27..=40;
/// Default descriptor shift of a ring of typed events: 524,288 descriptors, 32 MiB.
pub const DEFAULT_DESCRIPTOR_SHIFT: u32 = 19;
/// Default payload shift of a ring of a program's own events: 64 MiB. The whole ring takes 98 MiB.
pub const DEFAULT_PAYLOAD_SHIFT: u32 = 26;
/// Default payload shift of a ring of published events: 128 MiB, the smallest that the published limits allow. The
/// whole ring takes 162 MiB.
pub const PUBLISHED_DEFAULT_PAYLOAD_SHIFT: u32 = 27;

/// Limits of the descriptor shift of a *compact* ring: a shard of the perf recorder, or a ring of a program's own
/// events. A compact ring may be smaller than the published limits allow. Even at the lower limits, the size of each
/// section is a multiple of 2 MiB.
pub const COMPACT_DESCRIPTOR_SHIFTS: core::ops::RangeInclusive<u32> = 15..=32;
/// Limits of the payload shift of a compact ring.
pub const COMPACT_PAYLOAD_SHIFTS: core::ops::RangeInclusive<u32> = 21..=40;

/// Upper bound of the context area's shift.
pub const MAX_CONTEXT_SHIFT: u32 = 40;

/// Divisor that gives the step of the buffer window in payload buffers smaller than the published minimum. The step is
/// the buffer's size divided by this number. (Model checks use tiny rings and a smaller divisor.)
pub const SMALL_WINDOW_STEPS: u64 = if cfg!(any(loom, shuttle)) { 8 } else { 32 };
/// Size of a payload chunk in bytes, in buffers of 1 GiB to 4 GiB. A chunk is the unit in which payload memory changes
/// hands between threads.
pub const DEFAULT_CHUNK_BYTES: u64 = 64 << 10;
/// Lower bound of the size of a payload chunk in bytes.
pub const MIN_CHUNK_BYTES: u64 = if cfg!(any(loom, shuttle)) { 32 } else { 256 };
/// Lower bound of the size of a payload buffer in bytes.
pub const MIN_PAYLOAD_BUF_BYTES: u64 = 16 * MIN_CHUNK_BYTES;
/// Number of chunks in a buffer of less than 1 GiB. Its chunks are smaller than [`DEFAULT_CHUNK_BYTES`]. If they would
/// be smaller than [`MIN_CHUNK_BYTES`], the buffer has fewer chunks.
pub const MIN_CHUNKS: u64 = 1 << 14;
/// Number of chunks in a buffer of more than 4 GiB. Its chunks are larger than [`DEFAULT_CHUNK_BYTES`].
pub const MAX_CHUNKS: u64 = 1 << 16;
/// Upper bound, in bytes, of a run (neighbouring chunks that a thread takes together) for small payloads.
pub const MAX_RUN_BYTES: u64 = 1 << 20;
/// Divisor that limits a run of chunks for small payloads. The run has at most as many bytes as the buffer's size
/// divided by this number.
pub const MIN_RUNS: u64 = 256;
