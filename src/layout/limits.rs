//! Limits and defaults of ring files.

/// Size of the header section in bytes: the fixed header, the extension, and zeros.
pub const HEADER_SECTION_BYTES: u64 = 1 << 21;
/// Size of one descriptor in bytes.
pub const DESCRIPTOR_BYTES: u64 = 64;
/// Size of one descriptor in 64-bit words.
pub const DESCRIPTOR_WORDS: usize = 8;
/// Alignment of payloads in bytes, in files that eventring writes. Readers must not rely on this alignment: older
/// published files use 8.
pub const PAYLOAD_ALIGN: u64 = 16;
/// The published step of the buffer window, in bytes.
pub const WINDOW_INCR: u64 = 1 << 24;

/// Published limits of the descriptor shift (the capacity is 2^shift descriptors).
pub const DESCRIPTOR_SHIFTS: core::ops::RangeInclusive<u32> = 16..=32;
/// Published limits of the payload shift (the payload buffer has 2^shift bytes).
pub const PAYLOAD_SHIFTS: core::ops::RangeInclusive<u32> = 27..=40;
/// Default descriptor shift, as in the published daemon: 2,097,152 descriptors, 128 MiB.
pub const DEFAULT_DESCRIPTOR_SHIFT: u32 = 21;
/// Default payload shift, as in the published daemon: 512 MiB.
pub const DEFAULT_PAYLOAD_SHIFT: u32 = 29;

/// Limits of the descriptor shift of a *compact* ring, which may be smaller than published rings: a shard of the perf
/// recorder, or a ring of a test. With the smallest shifts, each section still has a multiple of 2 MiB.
pub const COMPACT_DESCRIPTOR_SHIFTS: core::ops::RangeInclusive<u32> = 15..=32;
/// Limits of the payload shift of a compact ring.
pub const COMPACT_PAYLOAD_SHIFTS: core::ops::RangeInclusive<u32> = 21..=40;

/// Upper bound of the context area's shift.
pub const MAX_CONTEXT_SHIFT: u32 = 40;

/// Number of window steps in a whole payload buffer, for buffers that are smaller than published buffers. (Models use
/// tiny rings.)
pub const SMALL_WINDOW_STEPS: u64 = if cfg!(any(loom, shuttle)) { 8 } else { 32 };
/// Size of a payload chunk in bytes, in buffers that have [`MIN_CHUNKS`] to [`MAX_CHUNKS`] chunks of this size. A
/// chunk is the unit in which payload memory changes hands between threads.
pub const DEFAULT_CHUNK_BYTES: u64 = 64 << 10;
/// Lower bound of the size of a payload chunk in bytes.
pub const MIN_CHUNK_BYTES: u64 = if cfg!(any(loom, shuttle)) { 32 } else { 256 };
/// Lower bound of the size of a payload buffer in bytes.
pub const MIN_PAYLOAD_BUF_BYTES: u64 = 16 * MIN_CHUNK_BYTES;
/// Number of chunks of a small buffer, whose chunks are smaller than [`DEFAULT_CHUNK_BYTES`].
pub const MIN_CHUNKS: u64 = 1 << 14;
/// Number of chunks of a large buffer, whose chunks are larger than [`DEFAULT_CHUNK_BYTES`].
pub const MAX_CHUNKS: u64 = 1 << 16;
/// Upper bound of a run for small payloads in bytes.
pub const MAX_RUN_BYTES: u64 = 1 << 20;
/// Divisor of the buffer size: a run for small payloads has at most this part of the buffer.
pub const MIN_RUNS: u64 = 256;
