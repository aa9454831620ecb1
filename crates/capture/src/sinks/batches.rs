//! A capture into batches: whole capture files of limited size, each of which is sent before the next one begins.
//!
//! A batch is a file of a rotated capture, in memory. It can be read alone: it describes its rings, and has the table
//! entries (call sites, threads) that its events may need.
//!
//! A batch ends with an exact account: the counts of events, and the last seqno of each ring. The next capture
//! continues after these seqnos, even if the sending process was killed.

pub use crate::engine::start::{BatchStart, host_name};
pub use crate::format::ring::{name_of, process_key};

use crate::engine::options::CaptureOptions;
use crate::engine::pace::Pace;
use crate::engine::run;
use crate::engine::sink::CaptureSink;
use crate::engine::sources::SourceRing;
use crate::engine::summary::{CaptureProgress, CaptureSummary, NextRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::read_files::ReadFiles;
use crate::format::end::CaptureEnd;
use crate::format::header::PAYLOAD_BYTES_MAX;
use crate::format::identity::RingIdentity;
use crate::format::ring::CapturedRing;
use crate::format::stats::RingStats;
use crate::read::file::CaptureFile;
use crate::select::batch_filter::BatchFilter;
use eventring::internal::shm;
use eventring::reader::{GapCause, Reader};
use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

impl BatchStart {
    /// Begins where a batch ends that was just sent.
    pub fn after_sent(&mut self, batch: &Batch<'_>) {
        self.has_ended = batch.end.reason.is_final();
        for ring in batch.rings {
            self.next_seqnos.insert(RingIdentity::new(&ring.described), ring.stats.last_seqno.saturating_add(1));
        }
    }
}

/// Reads a batch that came from elsewhere.
///
/// # Errors
/// It is no capture file, or not a whole one.
pub fn read_batch(bytes: &[u8]) -> Result<CaptureFile, CaptureError> {
    use std::io::Write as _;
    let made = shm::nameless_memory("eventring-batch").and_then(|mut file| file.write_all(bytes).map(|()| file));
    let batch = CaptureFile::from_file(made.map_err(|error| CaptureError::io("keep it in memory", error))?)?;
    if batch.end().is_none() || batch.is_truncated() {
        let message = "it has no account at its end, expected a whole capture file";
        return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
    }
    Ok(batch)
}

/// The longest name of a host or ring in a batch, in bytes. It has room in a subject even if all of its bytes are
/// escaped.
pub const NAME_BYTES_MAX: usize = 255;

/// Returns true if a host or ring in a batch may have this name. Subjects, headers, captures, names of files and
/// terminals show it.
pub fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The settings of a capture into batches.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// The size of a batch, in bytes. It is larger only if it holds a single event.
    pub bytes_max: u64,
    /// The largest size of a payload, in bytes. Larger ones are left out, and counted.
    pub payload_bytes_max: u64,
    /// The longest time between the recording of an event and the end of its batch, if the capture keeps up.
    pub every: Duration,
    pub level: i32,
    pub start: BatchStart,
    pub filter: BatchFilter,
    /// Leaves out what the rings hold at the beginning.
    pub only_new: bool,
}

/// A whole batch.
pub struct Batch<'b> {
    pub(super) end: &'b CaptureEnd,
    pub(super) rings: &'b [SourceRing],
}

impl Batch<'_> {
    /// Returns true if the batch has neither events nor gaps.
    pub fn is_empty(&self) -> bool {
        let counts_none = |ring: &RingStats| ring.missing_by_cause.iter().all(|count| *count == 0);
        self.events() == 0 && self.end.stats.rings.iter().all(counts_none)
    }

    pub fn events(&self) -> u64 {
        self.end.stats.events()
    }

    /// Returns each ring with the seqno that follows the batch.
    pub(crate) fn next_seqnos(&self) -> impl Iterator<Item = (&CapturedRing, u64)> {
        self.rings.iter().map(|ring| (&ring.described, ring.stats.last_seqno.saturating_add(1)))
    }

    pub fn lost(&self) -> u64 {
        self.end.stats.lost()
    }

    /// Returns the number of events among [`Self::lost`] that had been overwritten before the capture began.
    pub fn overwritten_before(&self) -> u64 {
        self.end.stats.missing_by(GapCause::OverwrittenBefore)
    }

    pub fn filtered(&self) -> u64 {
        self.end.stats.filtered()
    }

    /// Returns the name of the batch: the first ring that has seqnos in it, and the first of them. No other batch of
    /// the stream has the same. A last batch without any names the first ring, and says that it has ended.
    pub fn id(&self) -> Option<String> {
        let counts_any = |ring: &&SourceRing| ring.stats.last_seqno >= ring.described.first_seqno;
        let (ring, what) = match self.rings.iter().find(counts_any) {
            Some(ring) => (ring, ring.described.first_seqno.to_string()),
            None => (self.rings.first()?, "end".to_owned()),
        };
        Some(format!("{}/{what}", RingIdentity::new(&ring.described)))
    }
}

/// Where the batches of a capture go.
pub trait BatchSink {
    /// Begins the next batch, with the number `part` of its file. A file in `read` is never replaced.
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn io::Write>, CaptureError>;

    /// Takes note that the present batch is whole.
    fn end(&mut self, batch: &Batch<'_>) -> Result<(), CaptureError>;

    /// Returns true if the present batch is wanted even if it is empty.
    fn wants_empty(&self) -> bool {
        false
    }
}

/// The files of a capture into batches.
struct BatchFiles<'s>(&'s mut dyn BatchSink);

impl CaptureSink for BatchFiles<'_> {
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn io::Write>, CaptureError> {
        self.0.begin(part, read)
    }

    fn end(&mut self, end: &CaptureEnd, rings: &[SourceRing]) -> Result<(), CaptureError> {
        self.0.end(&Batch { end, rings })
    }

    fn wants_all_tables(&self) -> bool {
        false
    }

    fn wants_empty(&self) -> bool {
        self.0.wants_empty()
    }
}

/// Batches in memory, each of which `send` gets when it is whole. One that says nothing new is not sent; the end of all
/// rings is new.
pub struct BatchesInMemory<'s> {
    bytes: Rc<RefCell<Vec<u8>>>,
    send: SendBatch<'s>,
    /// For a follower, who learns from an empty batch that nothing more has come until its end; otherwise `None`.
    following: Option<Following>,
}

/// The knowledge of a follower.
#[derive(Default)]
struct Following {
    /// The end of the last batch that was not empty, in nanoseconds since the epoch.
    last_nanos: u64,
    /// True while an empty batch would say something new.
    wants_empty: bool,
}

/// The time after which an empty batch says that what was recorded before it has come, also from other threads.
const QUIET_NANOS: u64 = 10_000_000;

/// A function that sends the bytes of a batch.
type SendBatch<'s> = &'s mut dyn FnMut(&[u8], &Batch<'_>) -> Result<(), CaptureError>;

impl<'s> BatchesInMemory<'s> {
    pub fn new(send: SendBatch<'s>) -> Self {
        Self { bytes: Rc::default(), send, following: None }
    }

    /// Sends an empty batch, too, after one that is not empty, and while a ring has events that cannot be read yet.
    fn for_a_follower(self) -> Self {
        Self { following: Some(Following::default()), ..self }
    }
}

impl BatchSink for BatchesInMemory<'_> {
    fn begin(&mut self, _: u32, _: &ReadFiles) -> Result<Box<dyn io::Write>, CaptureError> {
        self.bytes.borrow_mut().clear();
        Ok(Box::new(BatchWriter(Rc::clone(&self.bytes))))
    }

    fn end(&mut self, batch: &Batch<'_>) -> Result<(), CaptureError> {
        if let Some(following) = &mut self.following {
            let ended = batch.end.ended_epoch_nanos;
            let has_unread = batch.end.stats.rings.iter().any(|ring| ring.unread > 0);
            following.last_nanos = if batch.is_empty() { following.last_nanos } else { ended };
            let is_quiet = ended.saturating_sub(following.last_nanos) >= QUIET_NANOS;
            following.wants_empty = has_unread || !is_quiet;
        } else if batch.is_empty() && !batch.end.reason.is_final() {
            return Ok(());
        }
        (self.send)(&self.bytes.borrow(), batch)
    }

    fn wants_empty(&self) -> bool {
        self.following.as_ref().is_some_and(|following| following.wants_empty)
    }
}

/// The writing end of a batch in memory.
struct BatchWriter(Rc<RefCell<Vec<u8>>>);

impl io::Write for BatchWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Captures rings as [`capture_rings`](crate::capture_rings) does, but into batches. While the sink ends one, events
/// wait in their rings. An error of the sink ends the capture.
///
/// # Errors
/// As [`capture_rings`](crate::capture_rings), or an error of the sink.
pub fn capture_batches(
    next_ring: &mut dyn FnMut() -> NextRing,
    sink: &mut dyn BatchSink,
    options: &BatchOptions,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<CaptureSummary, CaptureError> {
    // Half of the time is for waiting in the ring, and half for the batch.
    let half = options.every / 2;
    let mut capture = CaptureOptions::new().compression_level(options.level);
    capture = capture.rotate_bytes(options.bytes_max).rotate_every(half);
    capture.wait_max = (half / 2).min(Pace::WAIT_MAX);
    capture.payload_bytes_max =
        usize::try_from(options.payload_bytes_max).map_or(PAYLOAD_BYTES_MAX, |max| max.min(PAYLOAD_BYTES_MAX));
    capture.start = options.start.clone();
    capture.filter = options.filter.clone();
    capture.only_new = options.only_new;
    run::run(next_ring, &mut BatchFiles(sink), &capture, progress)
}

/// Captures rings without end, and calls `take` with a small capture of what was recorded since the last one, at the
/// latest after the time `every`. Ends when all writers have ended, or when `take` or `progress` returns
/// [`ControlFlow::Break`]; `progress` is called several times a second. With `only_new`, leaves out what the rings hold
/// at the beginning.
///
/// After the last events comes an empty batch: its end says until when nothing more was recorded. Returns failures that
/// did not end the capture.
///
/// # Errors
/// As [`capture_rings`](crate::capture_rings).
#[doc(hidden)]
pub fn follow_rings(
    rings: Vec<Reader>,
    every: Duration,
    only_new: bool,
    take: &mut dyn FnMut(CaptureFile) -> ControlFlow<()>,
    progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
) -> Result<Vec<String>, CaptureError> {
    const BATCH_BYTES_MAX: u64 = 8 << 20;
    /// With shorter times, the capture would only be busy with itself.
    const EVERY_MIN: Duration = Duration::from_millis(20);
    let every = every.max(EVERY_MIN);
    let (start, filter) = (BatchStart::default(), BatchFilter::new());
    let level = CaptureOptions::DEFAULT_LEVEL;
    let (bytes_max, payload_bytes_max) = (BATCH_BYTES_MAX, BATCH_BYTES_MAX / 2);
    let options = BatchOptions { bytes_max, payload_bytes_max, every, level, start, filter, only_new };
    let mut rings = rings.into_iter();
    let mut next_ring = || rings.next().map_or(NextRing::NoMore, NextRing::Ring);
    let is_over = std::cell::Cell::new(false);
    let mut send = |bytes: &[u8], _: &Batch<'_>| {
        is_over.set(is_over.get() || take(read_batch(bytes)?).is_break());
        Ok(())
    };
    let mut progress = |done: &CaptureProgress| match is_over.get() {
        true => ControlFlow::Break(()),
        false => progress(done),
    };
    let mut batches = BatchesInMemory::new(&mut send).for_a_follower();
    capture_batches(&mut next_ring, &mut batches, &options, &mut progress).map(|summary| summary.problems)
}

#[cfg(test)]
mod following_tests;
#[cfg(test)]
mod shards_tests;
