//! Snapshots: one zstd frame that holds a whole ring file image.

use super::error::{ReaderError, ReaderErrorKind};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};

/// The published tool writes images that are up to this many bytes shorter than their header says.
const MISSING_BYTES_MAX: u64 = 15;

/// Decompresses into anonymous memory, at most `bytes_max` bytes.
///
/// The compressed size says nothing: a few kilobytes can decompress to terabytes. So the output is counted as it comes.
pub(super) fn decompress(file: impl AsFd, bytes_max: u64) -> Result<OwnedFd, ReaderError> {
    let file = file.as_fd().try_clone_to_owned().map_err(|error| ReaderError::io("duplicate the descriptor", error))?;
    let mut file = File::from(file);
    file.seek(SeekFrom::Start(0)).map_err(|error| ReaderError::io("rewind the snapshot", error))?;
    let mut decoder = zstd::Decoder::new(file).map_err(damaged)?.single_frame();
    let image = rustix::fs::memfd_create("eventring-snapshot", rustix::fs::MemfdFlags::CLOEXEC);
    let mut image = File::from(image.map_err(|error| ReaderError::io("make memory for the snapshot", error.into()))?);
    let mut buffer = vec![0; 1 << 17];
    let mut total = 0;
    loop {
        let bytes = decoder.read(&mut buffer).map_err(damaged)?;
        if bytes == 0 {
            break;
        }
        total += bytes as u64;
        if total > bytes_max {
            return Err(ReaderError::new(
                ReaderErrorKind::BadSnapshot,
                format!(
                    "the snapshot decompresses to more than {bytes_max} bytes; allow more with `snapshot_bytes_max`"
                ),
            ));
        }
        write_sparsely(&mut image, &buffer[..bytes])?;
    }
    // The bytes cut off at the end are zeros; so is what a hole at the end would have been.
    image.set_len(total + MISSING_BYTES_MAX).map_err(|error| ReaderError::io("size the snapshot's memory", error))?;
    Ok(OwnedFd::from(image))
}

/// Writes `bytes` at the file's position, leaving holes where they are zero: images are mostly empty.
fn write_sparsely(image: &mut File, bytes: &[u8]) -> Result<(), ReaderError> {
    for page in bytes.chunks(1 << 12) {
        let written = if page.iter().all(|byte| *byte == 0) {
            image.seek(SeekFrom::Current(page.len() as i64)).map(|_| ())
        } else {
            image.write_all(page)
        };
        written.map_err(|error| ReaderError::io("store the decompressed snapshot", error))?;
    }
    Ok(())
}

fn damaged(error: std::io::Error) -> ReaderError {
    ReaderError::new(ReaderErrorKind::BadSnapshot, format!("the snapshot is damaged: {error}"))
}
