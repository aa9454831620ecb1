//! The header of a new ring.

use super::config::{ContentDescription, truncate_at_char};
use crate::clock::Clock;
use crate::layout::extension as ext;
use crate::layout::header::FixedHeader;
use crate::ring::memory::{MappedMemory, RingMemory};
use crate::shm::{self, ProcessIdentity, WRITE_LOCK_OFFSET};
use crate::sync::Ordering;

/// Position of a ring among the rings of its recorder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shard {
    /// Index of the ring.
    pub(crate) index: u64,
    /// Largest number of shards that the recorder may have. 0 if the ring is not a shard.
    pub(crate) limit: u64,
    /// Number that all shards of one recorder share. Rings of other recorders have other numbers.
    pub(crate) group: u64,
}

// `shm` locks the byte at `WRITE_LOCK_OFFSET`, but does not know the file format. This assertion checks that the
// format's word `WRITER_LOCK` begins at this byte.
const _: () = assert!(ext::WRITER_LOCK as u64 == WRITE_LOCK_OFFSET);

/// Writes the whole header. No reader can see the file yet, so the stores here need no ordering.
pub(super) fn write(
    memory: &MappedMemory,
    description: &ContentDescription,
    clock: &Clock,
    shard: Shard,
    reduced_free_bytes: u64,
    is_locked_for_writing: bool,
) {
    let geometry = memory.geometry();
    let fixed = FixedHeader {
        content_type: description.content_type,
        schema_hash: description.schema_hash,
        descriptor_capacity: geometry.descriptor_capacity(),
        payload_buf_bytes: geometry.payload_buf_bytes(),
        context_area_bytes: geometry.context_area_bytes(),
    };
    memory.store_header_bytes(0, &fixed.encode());

    let word = |offset: usize, value: u64| memory.header_word(offset).store(value, Ordering::Relaxed);
    word(ext::VERSION_OFFSET, ext::VERSION);
    let writer = ProcessIdentity::current();
    word(ext::WRITER_PID, writer.pid.into());
    word(ext::WRITER_START_TICKS, writer.start_ticks);
    word(ext::WRITER_PID_NAMESPACE, writer.pid_namespace);
    word(ext::WRITER_TIME_NAMESPACE, writer.time_namespace);
    memory.store_header_bytes(ext::WRITER_BOOT_ID, &writer.boot_id);
    word(ext::CREATED_EPOCH_NANOS, clock.now_epoch_nanos());
    word(ext::STATE, ext::STATE_LIVE);
    word(ext::WINDOW_INCR, geometry.window_incr_bytes());
    word(ext::CHUNK_BYTES, geometry.chunk_bytes());
    word(ext::SHARD_INDEX, shard.index);
    word(ext::SHARD_LIMIT, shard.limit);
    word(ext::SHARD_COUNT, u64::from(shard.limit != 0));
    word(ext::SHARD_GROUP, shard.group);
    word(ext::WRITER_LOCK, is_locked_for_writing.into());
    word(ext::REDUCED_FREE_BYTES, reduced_free_bytes);
    write_clock(memory, clock);
    if ext::SCHEMA_TEXT_START + description.schema_text.len() <= ext::WIDE_HOLES {
        word(ext::HOLE_TABLE, ext::WIDE_HOLES as u64);
    }
    if !description.schema_text.is_empty() {
        memory.store_header_bytes(ext::SCHEMA_TEXT_START, description.schema_text.as_bytes());
        word(ext::SCHEMA_TEXT_OFFSET, ext::SCHEMA_TEXT_START as u64);
        word(ext::SCHEMA_TEXT_BYTES, description.schema_text.len() as u64);
    }
    memory.store_header_bytes(ext::CONTENT_NAME, description.content_name.as_bytes());
    memory.store_header_bytes(ext::PROGRAM_NAME, recorded_program_name().as_bytes());
    word(ext::MAGIC_OFFSET, ext::MAGIC);
}

/// Returns the name of this program, as the headers of its rings have it.
pub(crate) fn recorded_program_name() -> String {
    let mut program = shm::program_name();
    truncate_at_char(&mut program, ext::PROGRAM_NAME_BYTES);
    program
}

/// Stores the clock's calibration.
fn write_clock(memory: &MappedMemory, clock: &Clock) {
    let calibration = clock.calibration();
    let word = |offset: usize, value: u64| memory.header_word(offset).store(value, Ordering::Relaxed);
    word(ext::CLOCK_KIND, calibration.kind.header_code());
    word(ext::CLOCK_TICKS0, calibration.ticks0);
    word(ext::CLOCK_EPOCH_NANOS0, calibration.epoch_nanos0);
    word(ext::CLOCK_MULT, calibration.mult.into());
    word(ext::CLOCK_SHIFT, calibration.shift.into());
    word(ext::CLOCK_TICKS_PER_SECOND, calibration.ticks_per_second);
}
