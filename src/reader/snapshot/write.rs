//! Writing snapshots.

use super::super::error::ReaderError;
use super::super::handle::Reader;
use super::collect;
use super::image::Image;
use std::io::{self, Write};

/// Options for a snapshot: which events it takes, and how well it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    compression_level: i32,
    first_seqno: u64,
    last_seqno: u64,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { compression_level: zstd::DEFAULT_COMPRESSION_LEVEL, first_seqno: 1, last_seqno: u64::MAX }
    }
}

impl SnapshotOptions {
    /// Makes options that take everything in the ring, at zstd's default level (3).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets zstd's compression level: 1 (fastest) to 22 (smallest). A level outside of this range is replaced by the
    /// nearest level in the range.
    #[must_use]
    pub fn compression_level(mut self, level: i32) -> Self {
        self.compression_level = level;
        self
    }

    /// Takes only events from this seqno on.
    #[must_use]
    pub fn first_seqno(mut self, seqno: u64) -> Self {
        self.first_seqno = seqno.max(1);
        self
    }

    /// Takes only events up to and including this seqno.
    #[must_use]
    pub fn last_seqno(mut self, seqno: u64) -> Self {
        self.last_seqno = seqno;
        self
    }
}

/// The result of [`Reader::write_snapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// Number of events in the snapshot. Their seqnos are 1 to this number.
    pub events: u64,
    /// Seqnos of the requested range that are not in the snapshot: overwritten before or while it was taken, never
    /// committed, or without their payload. `events + lost` is the length of the range.
    pub lost: u64,
    /// Number of events in `lost` that had a descriptor, but whose payload was overwritten.
    pub expired: u64,
    /// Number of events in `lost` that were still being written when the time to wait for them was over.
    pub being_written: u64,
    /// The first seqno of the range, as numbered in the ring, or 0 if the range is empty.
    pub first_seqno: u64,
    /// The last seqno of the range, as numbered in the ring, or 0 if the range is empty.
    pub last_seqno: u64,
    /// Bytes of payload, padding included.
    pub payload_bytes: u64,
    /// Bytes of the ring file image.
    pub image_bytes: u64,
    /// Bytes of the snapshot.
    pub snapshot_bytes: u64,
}

impl Reader {
    /// Writes the present content of the ring as a snapshot: one zstd frame that holds a small ring file with the same
    /// events.
    ///
    /// In the snapshot, the events are numbered from 1 without gaps. Their payloads lie in the same order, 16-aligned,
    /// in a payload buffer whose window starts at 0. The descriptor capacity and the size of the payload buffer are
    /// rounded up to powers of two, at least 2^16 and 2^27.
    ///
    /// In rings of execution events (content type 2), events name their block by the seqno of its BLOCK_START. These
    /// block tags get the new seqnos, or become 0 if the BLOCK_START is not in the snapshot.
    ///
    /// Names, schema text, clock and context area are copied. The snapshot's header holds the number of lost events.
    /// The same events and options give the same bytes.
    ///
    /// The ring may be live: the newest event at the time of the call is the last event that is taken. All payloads are
    /// held in memory until they are written. The call waits up to 0.2 seconds for events that are being recorded.
    ///
    /// ```
    /// use eventring::reader::{Reader, SnapshotOptions};
    /// use eventring::recorder::{ContentDescription, Recorder};
    ///
    /// let recorder = Recorder::builder(ContentDescription::new(300, "GREETINGS")).anonymous().build()?;
    /// recorder.record(2, [0; 4], b"hello");
    /// let mut snapshot = Vec::new();
    /// let reader = Reader::options().open_fd(recorder.as_fd())?;
    /// let summary = reader.write_snapshot(&mut snapshot, &SnapshotOptions::new())?;
    /// assert_eq!((summary.events, summary.lost), (1, 0));
    /// assert_eq!(summary.snapshot_bytes, snapshot.len() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Writing to `out` failed (a full disk has a kind of its own), the ring is so damaged that its payloads exceed its
    /// buffer, or its file was truncated meanwhile.
    pub fn write_snapshot(&self, out: impl Write, options: &SnapshotOptions) -> Result<SnapshotSummary, ReaderError> {
        // The range ends at the header's last seqno at the latest. `info` never gives a seqno above the largest
        // possible one, so the loop over the range ends even if the header is damaged.
        let last_seqno = self.info().last_seqno.min(options.last_seqno);
        let is_empty = last_seqno < options.first_seqno;
        let collected = collect::collect(self, options.first_seqno, last_seqno)?;
        if let Some(lost) = self.lost_pages() {
            return Err(ReaderError::lost_pages(lost));
        }
        let image = Image::new(self, collected)?;
        let mut out = Counted { out, bytes: 0 };
        compress(&image, &mut out, options.compression_level)
            .map_err(|error| ReaderError::io("write the snapshot", error))?;
        let collected = image.collected();
        let events = collected.descriptors.len() as u64;
        Ok(SnapshotSummary {
            events,
            lost: collected.lost,
            expired: collected.expired,
            being_written: collected.being_written,
            first_seqno: if is_empty { 0 } else { options.first_seqno },
            last_seqno: if is_empty { 0 } else { last_seqno },
            payload_bytes: collected.payloads.bytes(),
            image_bytes: image.geometry().file_bytes(),
            snapshot_bytes: out.bytes,
        })
    }
}

fn compress(image: &Image<'_>, out: &mut impl Write, level: i32) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, level)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(image.geometry().file_bytes()))?;
    image.write(&mut encoder)?;
    encoder.finish()?.flush()
}

/// A writer that counts its bytes.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
