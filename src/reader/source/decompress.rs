//! Decompressing a zstd frame into anonymous memory that can be mapped like a ring file.

use super::header::decode_fixed;
use crate::layout::limits::HEADER_SECTION_BYTES;
use crate::reader::error::{ReaderError, ReaderErrorKind};
use crate::ring::mutation::{self, Mutation};
use crate::shm::{self, AsFd};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The number of bytes that may be missing at the end of an image. The tool of the original C implementation writes
/// images that are up to 15 bytes shorter than their headers say.
const MISSING_BYTES_MAX: u64 = 15;

/// Decompresses a snapshot into anonymous memory, at most `bytes_max` bytes. If `is_header_enough` is true,
/// decompresses only the header section. The rest of the image is then a hole of the memory file, which takes no
/// memory.
///
/// A few kilobytes can decompress to terabytes, so the size of the compressed file limits nothing. Therefore the
/// first bytes must be the header of a ring, and this header must give an allowed size. The function fails if the
/// snapshot decompresses to more bytes than this size.
pub(super) fn decompress(file: impl AsFd, bytes_max: u64, is_header_enough: bool) -> Result<File, ReaderError> {
    let mut file = shm::duplicate(file).map_err(|error| ReaderError::io("duplicate the descriptor", error))?;
    file.seek(SeekFrom::Start(0)).map_err(|error| ReaderError::io("rewind the snapshot", error))?;
    let mut decoder = zstd::Decoder::new(file).map_err(damaged)?;

    let mut start = [0; 64];
    let found = read_full(&mut decoder, &mut start).map_err(damaged)?;
    if found < start.len() {
        let message = format!("the snapshot decompresses to {found} bytes only, which is no event ring");
        return Err(ReaderError::new(ReaderErrorKind::NotARing, message));
    }
    let image_bytes = image_bytes(&start, bytes_max)?;

    let image = shm::nameless_memory("eventring-snapshot");
    let mut image = image.map_err(|error| ReaderError::io("make memory for the snapshot", error))?;
    let stored = |error| ReaderError::io("store the decompressed snapshot", error);
    image.write_all(&start).map_err(stored)?;
    let mut buffer = vec![0; 1 << 17];
    let mut total = start.len() as u64;
    let wanted_bytes = if is_header_enough { HEADER_SECTION_BYTES } else { u64::MAX };
    while total < wanted_bytes {
        let wanted = (wanted_bytes - total).min(buffer.len() as u64) as usize;
        let bytes = read_full(&mut decoder, &mut buffer[..wanted]).map_err(damaged)?;
        if bytes == 0 {
            break;
        }
        total += bytes as u64;
        if total > image_bytes && !mutation::active(Mutation::TrustedSnapshotSize) {
            let message =
                format!("the snapshot is damaged: it decompresses to more than the {image_bytes} bytes of its header");
            return Err(ReaderError::new(ReaderErrorKind::BadSnapshot, message));
        }
        write_sparsely(&mut image, &buffer[..bytes]).map_err(stored)?;
    }
    if total < wanted_bytes && total.saturating_add(MISSING_BYTES_MAX) < image_bytes {
        let message = format!("the snapshot decompresses to {total} bytes, its header says {image_bytes}");
        return Err(ReaderError::new(ReaderErrorKind::Truncated, message));
    }
    // Up to [`MISSING_BYTES_MAX`] zeros may be missing at the end. `set_len` adds a hole there, which reads as zeros.
    image.set_len(image_bytes).map_err(stored)?;
    Ok(image)
}

/// Returns the size of a ring file that begins with the header `start`, if this size is allowed.
fn image_bytes(start: &[u8; 64], bytes_max: u64) -> Result<u64, ReaderError> {
    let bytes = decode_fixed(start)?.1.file_bytes();
    if bytes > bytes_max && !mutation::active(Mutation::TrustedSnapshotSize) {
        let message = format!(
            "the snapshot would decompress to {bytes} bytes, allowed are {bytes_max}; allow more with `snapshot_bytes_max`"
        );
        return Err(ReaderError::new(ReaderErrorKind::BadSnapshot, message));
    }
    Ok(bytes)
}

/// Reads until `buffer` is full or the input ends. Returns how many bytes were read.
fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes `bytes` at the file's position. Leaves a hole for each page of zeros, because images are mostly zeros.
fn write_sparsely(image: &mut File, bytes: &[u8]) -> io::Result<()> {
    const ZEROS: [u8; 1 << 12] = [0; 1 << 12];
    bytes.chunks(ZEROS.len()).try_for_each(|page| {
        if *page == ZEROS[..page.len()] {
            image.seek(SeekFrom::Current(page.len() as i64)).map(|_| ())
        } else {
            image.write_all(page)
        }
    })
}

fn damaged(error: io::Error) -> ReaderError {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return ReaderError::new(ReaderErrorKind::Truncated, "the snapshot ends in the middle of its zstd frame");
    }
    ReaderError::new(ReaderErrorKind::BadSnapshot, format!("the snapshot is damaged: {error}"))
}
