//! Rolling captures. A rolling capture keeps only the last seconds. Files are cut from it while it continues.
//!
//! A rolling capture writes files without names, in memory or on a disk, and removes the oldest. A cut (a file with the
//! last seconds) is made only from complete files, so it never delays the capture.

use crate::engine::options::CaptureOptions;
use crate::engine::run;
use crate::engine::sink::CaptureSink;
use crate::engine::sources::SourceRing;
use crate::engine::summary::{CaptureSummary, NextRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::read_files::ReadFiles;
use crate::format::end::EndReason;
use eventring::internal::shm;
use eventring::reader::Reader;
use eventring::recorder::Clock;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of files that share the time and the memory.
const PARTS: u32 = 8;
/// The shortest time of a file.
const PART_TIME_MIN: Duration = Duration::from_millis(500);
/// The longest time that a cut waits until what it needs was copied.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a [`RollingCapture`].
#[derive(Clone, Debug)]
#[must_use]
pub struct RollingOptions {
    keep: Duration,
    memory_bytes: u64,
    spool: Option<PathBuf>,
    level: i32,
}

impl Default for RollingOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl RollingOptions {
    /// Makes options for a capture that keeps the last 60 seconds, in at most 256 MiB of memory.
    pub fn new() -> Self {
        let level = CaptureOptions::DEFAULT_LEVEL;
        Self { keep: Duration::from_secs(60), memory_bytes: 256 << 20, spool: None, level }
    }

    /// Sets how long events are kept at least. They are kept for up to a quarter longer. If there is not enough room
    /// for them, they are kept for a shorter time.
    pub fn keep(self, time: Duration) -> Self {
        Self { keep: time, ..self }
    }

    /// Sets the room for the kept events, in bytes. They are compressed. Default: 256 MiB.
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory_bytes: bytes, ..self }
    }

    /// Keeps the events in files in a directory instead of in memory. The files have no names, so nothing is left when
    /// this process ends or dies.
    pub fn spool(self, directory: impl Into<PathBuf>) -> Self {
        Self { spool: Some(directory.into()), ..self }
    }

    /// Sets the level of compression, as [`CaptureOptions::compression_level`] does.
    pub fn compression_level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    fn of_capture(&self) -> CaptureOptions {
        let options = CaptureOptions::new().compression_level(self.level).keep_files(usize::MAX);
        let part_bytes = (self.memory_bytes / u64::from(PARTS)).max(1 << 16);
        options.rotate_every((self.keep / PARTS).max(PART_TIME_MIN)).rotate_bytes(part_bytes)
    }
}

/// A capture that keeps only the last seconds. It runs on threads of its own, until all writers have ended or until it
/// is dropped. [`Self::cut`] writes a part of what is kept into a file.
///
/// ```
/// use eventring_capture::{CaptureFile, NextRing, RollingCapture, RollingOptions};
/// use eventring::reader::Reader;
/// use eventring::recorder::{ContentDescription, Recorder};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("orders");
/// let recorder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(&path).shifts(16, 27).build()?;
/// let mut rings = vec![Reader::open(&path)?];
/// let next_ring = move || rings.pop().map_or(NextRing::NoMore, NextRing::Ring);
/// let capture = RollingCapture::begin(next_ring, &RollingOptions::new())?;
/// recorder.record(7, [0; 4], b"an order");
///
/// let file = directory.path().join("cut.evc");
/// let cut = capture.cut(0..=u64::MAX - 1, &file, false)?;
/// assert_eq!((cut.events, CaptureFile::open(&file)?.events().count()), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RollingCapture {
    pub(crate) rolled: Arc<Rolled>,
    thread: Option<JoinHandle<Result<CaptureSummary, CaptureError>>>,
}

/// The kept events of a rolling capture, and what its threads tell each other.
#[derive(Debug)]
pub(crate) struct Rolled {
    options: RollingOptions,
    state: Mutex<RolledState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct RolledState {
    /// The files, oldest first. The last one is still being written, unless the capture has ended.
    parts: VecDeque<RolledPart>,
    /// For each ring, the last seqno that was written.
    written: Vec<WrittenRing>,
    /// The number of cuts that have asked for the present file to be ended, and of those whose request was fulfilled.
    asked: u64,
    answered: u64,
    forgotten_parts: u32,
    /// The time from which on events are kept, however old they are, as long as there is room.
    held_from_nanos: Option<u64>,
    /// True if a file was forgotten before its time, because there was no room for it.
    pub(crate) lacks_memory: bool,
    shall_end: bool,
    has_ended: bool,
    /// The time at which the capture failed, in nanoseconds since the epoch; `None` if it did not.
    failed_nanos: Option<u64>,
}

#[derive(Debug)]
struct RolledPart {
    file: File,
    started_epoch_nanos: u64,
}

#[derive(Debug)]
struct WrittenRing {
    reader: Option<Reader>,
    last_seqno: u64,
}

/// The files from which a cut is made.
pub(crate) struct RolledFiles {
    pub(crate) files: Vec<File>,
    /// The time from which on all events are kept, in nanoseconds since the epoch. It is 0 if nothing was forgotten.
    pub(crate) kept_from_nanos: u64,
    pub(crate) lacks_memory: bool,
    /// True if not all events could be waited for.
    pub(crate) is_late: bool,
    /// The time at which the capture failed, if it did.
    pub(crate) failed_nanos: Option<u64>,
}

/// The state of a [`RollingCapture`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RollingState {
    /// The size of what is kept, in bytes.
    pub bytes: u64,
    /// The time from which on all events are kept, in nanoseconds since the epoch. It is 0 if nothing was forgotten
    /// yet.
    pub kept_from_epoch_nanos: u64,
    /// True if events are forgotten before their time, because there is no room for them.
    pub lacks_memory: bool,
    /// True if the capture has ended, because all writers have, or after [`RollingCapture::end`].
    pub has_ended: bool,
}

impl RollingCapture {
    /// Begins a capture of the rings that `next_ring` returns, as [`capture_rings`](crate::capture_rings) does. It
    /// begins with the oldest events of the rings.
    ///
    /// # Errors
    /// A ring cannot be captured, there is no ring, or there is no memory or file for the events.
    pub fn begin(
        mut next_ring: impl FnMut() -> NextRing + Send + 'static,
        options: &RollingOptions,
    ) -> Result<Self, CaptureError> {
        let rolled = Arc::new(Rolled { options: options.clone(), state: Mutex::default(), changed: Condvar::new() });
        let (tell, told) = mpsc::channel();
        let for_thread = Arc::clone(&rolled);
        let thread = std::thread::Builder::new().name("capture-roll".into()).spawn(move || {
            let rolled = for_thread;
            let options = rolled.options.of_capture();
            let mut progress = |_: &_| match rolled.lock().shall_end {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let mut sink = RollingSink { rolled: &rolled, begun: &tell };
            let result = run::run(&mut next_ring, &mut sink, &options, &mut progress);
            let failed_nanos = result.is_err().then(|| Clock::global().now_epoch_nanos());
            let mut state = rolled.lock();
            (state.has_ended, state.failed_nanos) = (true, failed_nanos);
            drop(state);
            rolled.changed.notify_all();
            result
        });
        let thread = thread.map_err(|error| CaptureError::io("start a thread", error))?;
        match told.recv() {
            Ok(()) => Ok(Self { rolled, thread: Some(thread) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => Err(CaptureError::new(CaptureErrorKind::Io, "a thread of the capture has ended early")),
            },
        }
    }

    /// Returns the state of the capture.
    #[must_use]
    pub fn state(&self) -> RollingState {
        let state = self.rolled.lock();
        RollingState {
            bytes: state.bytes(),
            kept_from_epoch_nanos: state.kept_from_nanos(),
            lacks_memory: state.lacks_memory,
            has_ended: state.has_ended,
        }
    }

    /// Keeps the events from this time on, in nanoseconds since the epoch, however old they become, as long as there is
    /// room. With `None`, keeps them only as long as [`RollingOptions::keep`] says.
    pub fn hold(&self, from_epoch_nanos: Option<u64>) {
        self.rolled.lock().held_from_nanos = from_epoch_nanos;
    }

    /// Ends the capture soon, without waiting for it. What is kept stays: [`Self::cut`] still writes files, and nothing
    /// is forgotten any more.
    pub fn end(&self) {
        self.rolled.lock().shall_end = true;
    }

    /// Ends the capture in good order. Returns its result: the counts of all events since it began, also of those that
    /// are no longer kept.
    ///
    /// # Errors
    /// The capture has failed.
    pub fn finish(mut self) -> Result<CaptureSummary, CaptureError> {
        self.end();
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(result)) => result,
            _ => Err(CaptureError::new(CaptureErrorKind::Io, "a thread of the capture has panicked")),
        }
    }
}

impl Drop for RollingCapture {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The files of a rolling capture, as its thread writes them.
struct RollingSink<'r> {
    rolled: &'r Rolled,
    /// The channel to the caller, who waits until the capture has begun.
    begun: &'r mpsc::Sender<()>,
}

impl CaptureSink for RollingSink<'_> {
    fn begin(&mut self, _: u32, _: &ReadFiles) -> Result<Box<dyn Write>, CaptureError> {
        Ok(Box::new(self.rolled.next()?))
    }

    fn begun(&mut self, rings: &[SourceRing]) {
        self.rolled.note(rings);
        let _ = self.begun.send(());
    }

    fn note(&mut self, rings: &[SourceRing]) -> bool {
        self.rolled.note(rings)
    }

    fn answer(&mut self) {
        self.rolled.answer();
    }

    fn removed(&self) -> u32 {
        self.rolled.lock().forgotten_parts
    }
}

impl Rolled {
    fn lock(&self) -> MutexGuard<'_, RolledState> {
        // A poisoned lock may be used: no code panics while it holds this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the next file, and forgets the files for which there is no time or room.
    fn next(&self) -> Result<File, CaptureError> {
        let made = match &self.options.spool {
            Some(directory) => shm::nameless_file(directory),
            None => shm::nameless_memory("eventring-capture"),
        };
        let place = self.options.spool.as_deref();
        let failed = |error| {
            let error = CaptureError::io_writing("make a file for the last events", error);
            match place {
                Some(place) => error.at(place),
                None => error,
            }
        };
        let file = made.map_err(failed)?;
        let now_nanos = Clock::global().now_epoch_nanos();
        let part = RolledPart { file: file.try_clone().map_err(failed)?, started_epoch_nanos: now_nanos };
        let mut state = self.lock();
        let keep_nanos = u64::try_from(self.options.keep.as_nanos()).unwrap_or(u64::MAX);
        let old_nanos = now_nanos.saturating_sub(keep_nanos).min(state.held_from_nanos.unwrap_or(u64::MAX));
        let room_bytes = self.options.memory_bytes / u64::from(PARTS) * u64::from(PARTS - 1);
        while !state.parts.is_empty() {
            // An event of a file was recorded before the next file was begun.
            let next_started = state.parts.get(1).map_or(now_nanos, |next| next.started_epoch_nanos);
            let (is_old, lacks_room) = (next_started < old_nanos, state.bytes() > room_bytes);
            if !is_old && !lacks_room {
                break;
            }
            state.lacks_memory |= !is_old;
            state.parts.pop_front();
            state.forgotten_parts += 1;
        }
        state.parts.push_back(part);
        self.changed.notify_all();
        Ok(file)
    }

    /// Notes what was written. Returns true if a cut asks for the present file to be ended.
    fn note(&self, rings: &[SourceRing]) -> bool {
        let mut state = self.lock();
        let known = state.written.len();
        state
            .written
            .extend(rings.iter().skip(known).map(|ring| WrittenRing { reader: ring.reader.clone(), last_seqno: 0 }));
        for (written, ring) in state.written.iter_mut().zip(rings) {
            written.last_seqno = ring.stats.last_seqno;
        }
        self.changed.notify_all();
        state.asked > state.answered
    }

    /// Notes that all that was written so far is in whole files.
    fn answer(&self) {
        let mut state = self.lock();
        state.answered = state.asked;
        self.changed.notify_all();
    }

    /// Waits until all events that were recorded before this call are in whole files, and returns those that may have
    /// events recorded after `from_nanos`.
    pub(crate) fn files(&self, from_nanos: u64) -> Result<RolledFiles, CaptureError> {
        let deadline = Instant::now() + TIMEOUT;
        let state = self.lock();
        // The times at which files began say nothing of their events: the capture may be far behind the rings.
        let wanted: Vec<u64> = state.written.iter().map(WrittenRing::handed_out).collect();
        let is_copied = |state: &mut RolledState| {
            state.written.iter().zip(&wanted).all(|(written, wanted)| written.last_seqno >= *wanted)
        };
        let (mut state, is_behind) = self.wait(state, deadline, is_copied);
        state.asked += 1;
        let asked = state.asked;
        let (state, is_unanswered) = self.wait(state, deadline + TIMEOUT, |state| state.answered >= asked);
        let whole = if state.has_ended { state.parts.len() } else { state.parts.len().saturating_sub(1) };
        let begins = state.parts.iter().map(|part| part.started_epoch_nanos).skip(1).chain([u64::MAX]);
        let parts = state.parts.iter().zip(begins).take(whole);
        let needed = parts.filter(|(_, next_started)| *next_started >= from_nanos);
        let files: Result<Vec<File>, _> = needed.map(|(part, _)| part.file.try_clone()).collect();
        Ok(RolledFiles {
            files: files.map_err(|error| CaptureError::io("open the kept events", error))?,
            kept_from_nanos: state.kept_from_nanos(),
            lacks_memory: state.lacks_memory,
            // The file that is being written is left out if nobody answered.
            is_late: is_behind || is_unanswered,
            failed_nanos: state.failed_nanos,
        })
    }

    /// Waits until `is_done` returns true, the capture has ended, or the time is over. Returns true in the last case.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, RolledState>,
        deadline: Instant,
        mut is_done: impl FnMut(&mut RolledState) -> bool,
    ) -> (MutexGuard<'s, RolledState>, bool) {
        loop {
            if state.has_ended || is_done(&mut state) {
                return (state, false);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (state, true);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl RolledState {
    fn bytes(&self) -> u64 {
        self.parts.iter().filter_map(|part| part.file.metadata().ok()).map(|it| it.len()).sum()
    }

    fn kept_from_nanos(&self) -> u64 {
        let oldest = self.parts.front().filter(|_| self.forgotten_parts > 0);
        oldest.map_or(0, |part| part.started_epoch_nanos)
    }
}

impl WrittenRing {
    /// Returns the last seqno that the ring has handed out.
    fn handed_out(&self) -> u64 {
        self.reader.as_ref().map_or(0, |reader| reader.info().last_seqno)
    }
}

/// The end of a file that was cut from a rolling capture.
pub(crate) const CUT: EndReason = EndReason::Duration;
