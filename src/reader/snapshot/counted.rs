//! A writer that counts.

use std::io::{self, Write};

/// A writer that counts its bytes.
#[derive(Debug)]
pub struct CountedWriter<W> {
    out: W,
    bytes: u64,
}

impl<W> CountedWriter<W> {
    /// Makes a writer that has written nothing.
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { out, bytes: 0 }
    }

    /// Returns the number of bytes that were written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl<W: Write> Write for CountedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
