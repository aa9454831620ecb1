//! Writing snapshots.

use super::super::error::ReaderError;
use super::super::handle::Reader;
use super::collect;
use super::counted::CountedWriter;
use super::image::Image;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Options for a snapshot: which events it takes, and how well it is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    compression_level: i32,
    directory: Option<PathBuf>,
    first_seqno: u64,
    last_seqno: u64,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            compression_level: zstd::DEFAULT_COMPRESSION_LEVEL,
            directory: None,
            first_seqno: 1,
            last_seqno: u64::MAX,
        }
    }
}

impl SnapshotOptions {
    /// Makes options for a snapshot of all events in the ring, with zstd's default compression level (3).
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

    /// Sets the directory of the temporary files, which have no name and together as many bytes as the events. The
    /// default is [`std::env::temp_dir`], which is memory on some systems.
    #[must_use]
    pub fn temporary_directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_path_buf());
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
    /// Number of events in the snapshot. The snapshot numbers them from 1 to this number.
    pub events: u64,
    /// Number of seqnos in the requested range that are not in the snapshot. Their events were overwritten before or
    /// during the copy, were never committed, or have lost their payloads. `events + lost` is the length of the
    /// range.
    pub lost: u64,
    /// Number of `lost` events that had a descriptor but no valid payload: the payload was overwritten or malformed.
    pub expired: u64,
    /// Number of `lost` events that were still being recorded when the snapshot stopped waiting for them.
    pub being_written: u64,
    /// The first seqno of the range, in the ring's numbering. 0 if the range is empty.
    pub first_seqno: u64,
    /// The last seqno of the range, in the ring's numbering. 0 if the range is empty.
    pub last_seqno: u64,
    /// Bytes of payload, padding included.
    pub payload_bytes: u64,
    /// Bytes of the ring file image.
    pub image_bytes: u64,
    /// Bytes of the snapshot.
    pub snapshot_bytes: u64,
}

impl Reader {
    /// Writes a snapshot of the ring's present events: one zstd frame that holds a small ring file with these events.
    ///
    /// In the snapshot, the events have new seqnos: 1, 2, 3 and so on. Their payloads have the same order as the
    /// events. Each payload is aligned to 16 bytes, and the buffer window starts at 0. The number of descriptors is
    /// rounded up to a power of two, at least 2^16. The size of the payload buffer is rounded up to a power of two, at
    /// least 2^27.
    ///
    /// Extension words of the kind [`ExtWordKind::Seqno`](crate::schema::ExtWordKind::Seqno) name other events. In the
    /// snapshot, such a word holds the new seqno of the named event, or 0 if the snapshot does not have this event.
    ///
    /// If the ring has a table of start records, such as the block table of execution events, the snapshot has it, too.
    /// An event whose start is not in the snapshot then keeps a number in word 0 that names the start in the table: the
    /// old seqno plus 2^63.
    ///
    /// The snapshot also has the ring's names, schema text, clock calibration and context area. Its header holds the
    /// number of lost events. If the events and the options are the same, the bytes of the snapshot are the same, too.
    ///
    /// The ring may be live. The snapshot then ends with the event that is the newest at the time of the call. The
    /// call waits up to 0.2 seconds for events that are being recorded. It needs some megabytes of memory, however
    /// large the ring is. Until they are compressed, the events are in temporary files
    /// ([`SnapshotOptions::temporary_directory`]).
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
    /// Returns an error if writing to `out` fails (a full disk has an error kind of its own), or if the ring is so
    /// damaged that its payloads add up to more than twice its payload buffer. Also returns an error if a temporary
    /// file cannot be written, or if pages of the ring's file cannot be read, for example because the file was
    /// truncated.
    pub fn write_snapshot(&self, out: impl Write, options: &SnapshotOptions) -> Result<SnapshotSummary, ReaderError> {
        // `info` never returns a last seqno above the largest possible one. So the loop over the range ends even if
        // the header is damaged.
        let last_seqno = self.info().last_seqno.min(options.last_seqno);
        let is_empty = last_seqno < options.first_seqno;
        let directory = options.directory.clone().unwrap_or_else(std::env::temp_dir);
        let collected = collect::collect(self, options.first_seqno, last_seqno, &directory)?;
        if let Some(lost) = self.lost_pages() {
            return Err(ReaderError::lost_pages(lost));
        }
        let mut image = Image::new(self, collected)?;
        let mut out = CountedWriter::new(out);
        compress(&mut image, &mut out, options.compression_level)
            .map_err(|error| ReaderError::io("write the snapshot", error))?;
        let collected = image.collected();
        let events = collected.seqnos.events();
        Ok(SnapshotSummary {
            events,
            lost: collected.lost,
            expired: collected.expired,
            being_written: collected.being_written,
            first_seqno: if is_empty { 0 } else { options.first_seqno },
            last_seqno: if is_empty { 0 } else { last_seqno },
            payload_bytes: collected.payloads.bytes(),
            image_bytes: image.geometry().file_bytes(),
            snapshot_bytes: out.bytes(),
        })
    }
}

fn compress(image: &mut Image<'_>, out: &mut impl Write, level: i32) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, level)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.set_pledged_src_size(Some(image.geometry().file_bytes()))?;
    image.write(&mut encoder)?;
    encoder.finish()?.flush()
}
