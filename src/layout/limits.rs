//! Limits and defaults of ring files.

/// Bytes of the header section: the fixed header, the extension, and zeros.
pub const HEADER_SECTION_BYTES: u64 = 1 << 21;
/// Bytes of one descriptor.
pub const DESCRIPTOR_BYTES: u64 = 64;
/// 64-bit words of one descriptor.
pub const DESCRIPTOR_WORDS: usize = 8;
/// Payloads start at multiples of this many bytes in files that eventring writes. Readers must not assume it: older
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

/// Limits of the descriptor shift of a *compact* ring: a shard of the perf recorder, or a private ring of a test.
/// Section sizes stay multiples of 2 MiB.
pub const COMPACT_DESCRIPTOR_SHIFTS: core::ops::RangeInclusive<u32> = 15..=32;
/// Limits of the payload shift of a compact ring.
pub const COMPACT_PAYLOAD_SHIFTS: core::ops::RangeInclusive<u32> = 21..=40;

/// Largest context area that is accepted, as a shift.
pub const MAX_CONTEXT_SHIFT: u32 = 40;

/// The step of the buffer window in buffers smaller than published ones: this part of the buffer. (Models use tiny rings.)
pub const SMALL_WINDOW_STEPS: u64 = if cfg!(any(loom, shuttle)) { 8 } else { 32 };
/// Most bytes of a payload chunk, the unit in which payload memory changes hands between threads, in buffers of up to
/// [`MOST_CHUNKS`] of them.
pub const USUAL_CHUNK_BYTES: u64 = 64 << 10;
/// Fewest bytes of a payload chunk.
pub const MIN_CHUNK_BYTES: u64 = if cfg!(any(loom, shuttle)) { 32 } else { 256 };
/// Fewest bytes of a payload buffer that any ring may have.
pub const MIN_PAYLOAD_BUF_BYTES: u64 = 16 * MIN_CHUNK_BYTES;
/// Smaller buffers are divided into this many chunks.
pub const LEAST_CHUNKS: u64 = 1 << 14;
/// Larger buffers are divided into this many chunks.
pub const MOST_CHUNKS: u64 = 1 << 16;
/// Most bytes that a thread takes of the payload buffer at a time, for its small payloads.
pub const USUAL_RUN_BYTES: u64 = 1 << 20;
/// In smaller buffers a thread takes this part of the buffer at most.
pub const LEAST_RUNS: u64 = 256;
