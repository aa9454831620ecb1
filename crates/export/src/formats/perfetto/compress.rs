//! Compressed packets. Separate threads compress most packets of a trace, into the field `compressed_packets` of other
//! packets.

use super::fields;
use super::wire::{begin, bytes, end};
use eventring_capture::worker_threads;
use flate2::{Compression, write::ZlibEncoder};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};

/// The size of a stretch of packets. Readers hold a whole stretch in memory.
const STRETCH_BYTES: usize = 256 << 10;
/// The largest number of stretches that are being compressed.
const STRETCHES_MAX: usize = 4;

/// The output of a trace.
pub(super) struct PacketsOut<'o> {
    out: &'o mut dyn Write,
    /// The packets of the present stretch.
    stretch: Vec<u8>,
    /// The earlier stretches that were not written yet, in their order.
    begun: VecDeque<Receiver<io::Result<Vec<u8>>>>,
}

impl<'o> PacketsOut<'o> {
    pub(super) fn new(out: &'o mut dyn Write) -> Self {
        Self { out, stretch: Vec::with_capacity(STRETCH_BYTES), begun: VecDeque::new() }
    }

    /// Returns the buffer to which the next packet is appended. Call [`Self::end_packet`] after it.
    pub(super) fn packet(&mut self) -> &mut Vec<u8> {
        &mut self.stretch
    }

    /// Passes the stretch on if it is long enough.
    pub(super) fn end_packet(&mut self) -> io::Result<()> {
        if self.stretch.len() < STRETCH_BYTES { Ok(()) } else { self.end_stretch() }
    }

    /// Writes the packets of the present stretch as they are. The packets at the head of a trace are not compressed,
    /// because programs know a trace by its head.
    pub(super) fn write_plain(&mut self) -> io::Result<()> {
        self.write_begun()?;
        self.out.write_all(&self.stretch)?;
        self.stretch.clear();
        Ok(())
    }

    /// Writes everything that was not written yet.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if !self.stretch.is_empty() {
            self.end_stretch()?;
        }
        self.write_begun()
    }

    fn write_begun(&mut self) -> io::Result<()> {
        while !self.begun.is_empty() {
            self.write_first()?;
        }
        Ok(())
    }

    fn end_stretch(&mut self) -> io::Result<()> {
        if self.begun.len() == STRETCHES_MAX {
            self.write_first()?;
        }
        let packets = std::mem::replace(&mut self.stretch, Vec::with_capacity(STRETCH_BYTES));
        let (out, compressed) = mpsc::sync_channel(1);
        let compress = move || drop(out.send(compressed_packet(&packets)));
        match worker_threads() {
            Some(threads) => threads.spawn_fifo(compress),
            None => compress(),
        }
        self.begun.push_back(compressed);
        Ok(())
    }

    /// Writes the first of the stretches that are being compressed. Waits until it is compressed.
    fn write_first(&mut self) -> io::Result<()> {
        let Some(compressed) = self.begun.pop_front() else { return Ok(()) };
        let packet = compressed.recv().map_err(|_| io::Error::other("a thread that compresses has panicked"))??;
        self.out.write_all(&packet)
    }
}

/// Returns a packet that holds `packets`.
fn compressed_packet(packets: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(packets.len() / 4), Compression::fast());
    encoder.write_all(packets)?;
    let compressed = encoder.finish()?;
    let mut out = Vec::with_capacity(compressed.len() + 16);
    let packet = begin(&mut out, fields::PACKET);
    bytes(&mut out, fields::COMPRESSED_PACKETS, &compressed);
    end(&mut out, packet);
    Ok(out)
}
