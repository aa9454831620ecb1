//! The header of a file that may be a ring.

use crate::layout::Geometry;
use crate::layout::extension as ext;
use crate::layout::header::{FIXED_BYTES, FixedHeader, MAGIC};
use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::shm;

/// Bytes from the start of a file, up to the version of the extension.
pub(in crate::reader) type StartOfFile = [u8; ext::VERSION_OFFSET + 8];

/// Reads the fixed part of the header with `read` calls, before anything is mapped. The last value is true if the file
/// has eventring's extension of the header.
pub(super) fn read_header(file: &shm::RingFile) -> Result<(FixedHeader, Geometry, bool), ReaderError> {
    let mut start: StartOfFile = [0; ext::VERSION_OFFSET + 8];
    let bytes = file.read_at(&mut start, 0).map_err(ReaderError::shm)?;
    // The sizes and the schema come after the magic number, or all of them come at once.
    let is_unfinished =
        (start.strip_prefix(&MAGIC).unwrap_or(&start)).iter().take(64 - MAGIC.len()).all(|byte| *byte == 0);
    let refused = |error: ReaderError| if is_unfinished { error.of_later_ring() } else { error };
    decode_header(&start, bytes).map_err(refused)
}

pub(in crate::reader) fn decode_header(
    start: &StartOfFile,
    bytes: usize,
) -> Result<(FixedHeader, Geometry, bool), ReaderError> {
    if bytes < FIXED_BYTES && bytes >= MAGIC.len() && start[..MAGIC.len()] == MAGIC {
        return Err(ReaderError::new(
            ReaderErrorKind::Truncated,
            format!(
                "the file has only {bytes} bytes, expected a ring of at least {HEADER_SECTION_BYTES} bytes: its end is missing; copy it again, whole"
            ),
        ));
    }
    if bytes < FIXED_BYTES {
        return Err(ReaderError::new(
            ReaderErrorKind::NotARing,
            format!(
                "the file has only {bytes} bytes, expected a ring of at least {HEADER_SECTION_BYTES} bytes; name the file that a recorder or `eventring snapshot` has made"
            ),
        ));
    }
    let mut fixed = [0; 64];
    fixed.copy_from_slice(&start[..64]);
    let (fixed, geometry) = decode_fixed(&fixed)?;
    let word = |offset: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&start[offset..offset + 8]);
        u64::from_le_bytes(word)
    };
    // In another major version, the fields of the extension may have other meanings. So a file with another major
    // version is read as if it had no extension.
    let version = word(ext::VERSION_OFFSET) as u32;
    Ok((fixed, geometry, word(ext::MAGIC_OFFSET) == ext::MAGIC && u64::from(version) >> 16 == ext::VERSION >> 16))
}

pub(super) fn decode_fixed(start: &[u8; 64]) -> Result<(FixedHeader, Geometry), ReaderError> {
    let fixed = FixedHeader::decode(start).map_err(not_a_ring)?;
    let geometry = Geometry::new(fixed.descriptor_capacity, fixed.payload_buf_bytes, fixed.context_area_bytes);
    Ok((fixed, geometry.map_err(|error| ReaderError::bad_header(&error))?))
}

/// Returns the error for a file with this magic number. The message does not show bytes of a file that may be anything.
fn not_a_ring(found: [u8; 6]) -> ReaderError {
    let expected = MAGIC.escape_ascii();
    if found[..4] == MAGIC[..4] && found[4..].iter().all(u8::is_ascii_digit) {
        let shown = found.escape_ascii();
        let message = format!("the ring has version {shown}, expected {expected}; use a reader of that version");
        return ReaderError::new(ReaderErrorKind::WrongVersion, message);
    }
    let message = format!(
        "the file is not an event ring: it does not begin with \"{expected}\"; name the file that a recorder or `eventring snapshot` has made"
    );
    ReaderError::new(ReaderErrorKind::NotARing, message)
}
