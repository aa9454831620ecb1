//! Bytes that wait in a nameless file: an intermediate store that takes no memory, however much it holds.

use crate::shm::nameless_file;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// The size of the pieces that are written to the file and read from it.
const PIECE_BYTES: usize = 1 << 18;

/// A sequence of bytes in a nameless file. It is first written as a whole, and then read as a whole.
pub(super) struct Spool {
    file: File,
    /// The last bytes, which are not in the file yet.
    tail: Vec<u8>,
    bytes: u64,
}

impl Spool {
    /// Makes an empty spool whose file lies in `directory`.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self { file: nameless_file(directory)?, tail: Vec::with_capacity(PIECE_BYTES), bytes: 0 })
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.tail.len() + bytes.len() > PIECE_BYTES {
            self.file.write_all(&self.tail)?;
            self.tail.clear();
        }
        if bytes.len() > PIECE_BYTES {
            return self.file.write_all(bytes);
        }
        self.tail.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Calls `take` with all bytes, in pieces whose sizes are multiples of `unit`. The number of bytes is such a
    /// multiple, and `unit` divides 2^18.
    pub(super) fn read(&mut self, unit: usize, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        debug_assert!(PIECE_BYTES.is_multiple_of(unit));
        self.file.write_all(&self.tail)?;
        self.tail.clear();
        self.file.seek(SeekFrom::Start(0))?;
        let mut left = self.bytes;
        while left > 0 {
            self.tail.resize(left.min(PIECE_BYTES as u64) as usize, 0);
            self.file.read_exact(&mut self.tail)?;
            take(&self.tail)?;
            left -= self.tail.len() as u64;
        }
        self.tail.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_whatever_the_sizes_of_their_parts_are() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(directory.path()).unwrap();
        let mut expected = Vec::new();
        for (n, bytes) in [16, PIECE_BYTES, 0, 48, PIECE_BYTES + 16, 3 * PIECE_BYTES, 160].into_iter().enumerate() {
            let part: Vec<u8> = (0..bytes).map(|i| (i * 31 + n) as u8).collect();
            spool.append(&part).unwrap();
            expected.extend(part);
        }
        assert_eq!(spool.bytes(), expected.len() as u64);
        for _ in 0..2 {
            let mut read = Vec::new();
            spool
                .read(16, |piece| {
                    assert_eq!(piece.len() % 16, 0);
                    read.extend_from_slice(piece);
                    Ok(())
                })
                .unwrap();
            assert!(read == expected);
        }
    }
}
