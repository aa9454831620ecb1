//! The addresses of a ring file's bytes in the memory of its program.

use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::reader::error::ReaderError;
use crate::reader::source::header::{StartOfFile, decode_header};

/// The bytes from the start of a ring that [`parts_in_memory`] needs.
pub const START_BYTES: usize = size_of::<StartOfFile>();

/// Returns the parts of a ring file as its programs map them: where each part begins in memory, counted from the
/// header, where it begins in the file, and its bytes. The payload buffer is in memory twice, and in the file once.
/// `start` is the beginning of the header, which may be anything.
///
/// # Errors
/// The header is none of a ring.
pub fn parts_in_memory(start: &[u8; START_BYTES]) -> Result<[(u64, u64, u64); 2], ReaderError> {
    let (_, geometry, _) = decode_header(start, START_BYTES)?;
    let payload_bytes = geometry.payload_buf_bytes();
    let payload_end = HEADER_SECTION_BYTES + geometry.descriptor_section_bytes() + payload_bytes;
    let context_bytes = geometry.context_area_bytes();
    Ok([(0, 0, payload_end), (payload_end + payload_bytes, payload_end, context_bytes)])
}
