//! Events of rings in a directory, as capture files that begin anew after a time or a size. The oldest are removed.
//!
//! Like the batches of a stream, the files say where the next one goes on. A forwarder that died continues after the
//! newest file, even if nobody has ended that.

use super::kept::{EXTENSION, RetentionLimits, ends_path, kept_entries, remove, remove_oldest, start_after_newest};
use eventring_capture::batches::{Batch, BatchOptions, BatchSink, capture_batches};
use eventring_capture::ends::CaptureEnds;
use eventring_capture::{
    BatchFilter, CaptureError, CaptureErrorKind, CaptureOptions, CaptureProgress, CaptureSummary, NextRing,
    OutputEntry, ReadFiles,
};
use jiff::{Timestamp, tz::TimeZone};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The smallest size of a file that follows from [`DirectoryOptions::max_bytes`].
const FILE_BYTES_MIN: u64 = 16 << 10;
/// The part of [`DirectoryOptions::max_bytes`] that one file may have.
const FILE_PART: u64 = 4;
/// The pause between two looks for what is too old or too much.
const REMOVAL_PAUSE: Duration = Duration::from_secs(1);

/// The settings of a [`DirectoryForwarder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DirectoryOptions {
    name: String,
    rotate_every: Duration,
    rotate_bytes: u64,
    limits: RetentionLimits,
    level: i32,
    filter: BatchFilter,
}

impl DirectoryOptions {
    /// Makes options for files whose names begin with `name`: `shop-20261123T201500Z.0007.evc`. The number counts the
    /// files.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            rotate_every: Duration::from_secs(300),
            rotate_bytes: 256 << 20,
            limits: RetentionLimits::default(),
            level: CaptureOptions::DEFAULT_LEVEL,
            filter: BatchFilter::new(),
        }
    }

    /// Begins a new file after this time. Default: 5 minutes.
    pub fn rotate_every(self, time: Duration) -> Self {
        Self { rotate_every: time, ..self }
    }

    /// Begins a new file before the present one has more bytes than this, or than a quarter of [`Self::max_bytes`].
    /// Default: 256 MiB.
    pub fn rotate_bytes(self, bytes: u64) -> Self {
        Self { rotate_bytes: bytes, ..self }
    }

    /// Removes what was written longer ago than this. Default: nothing.
    pub fn max_age(self, time: Duration) -> Self {
        Self { limits: RetentionLimits { max_age: Some(time), ..self.limits }, ..self }
    }

    /// Removes the oldest as soon as everything under the name has more bytes than this, with the file that is being
    /// written. The newest of the others is never removed: the next forwarder goes on after it. Default: nothing.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { limits: RetentionLimits { max_bytes: Some(bytes), ..self.limits }, ..self }
    }

    /// Removes a capture if the caller has made a directory beside it, with the extension `parquet` in place of `evc`.
    /// The newest capture stays.
    pub fn removes_what_is_in_tables(self) -> Self {
        Self { limits: RetentionLimits { is_in_tables: true, ..self.limits }, ..self }
    }

    /// Sets the level of compression, as [`CaptureOptions::compression_level`] does.
    pub fn compression_level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    /// Writes only the events that a filter keeps.
    pub fn filter(self, filter: BatchFilter) -> Self {
        Self { filter, ..self }
    }
}

/// Writes the events of rings into files of a directory.
pub struct DirectoryForwarder<'d> {
    directory: &'d Path,
    options: DirectoryOptions,
    state: RefCell<DirectoryState>,
}

/// The state of a [`DirectoryForwarder`]: what was written, and what of it was removed.
#[derive(Default)]
struct DirectoryState {
    /// The captures so far, one after the other.
    summary: Option<CaptureSummary>,
    /// The number of rings in `summary`.
    rings_before: usize,
    /// The file that is being written, and its number.
    current: Option<(u32, PathBuf)>,
    /// The ends of everything that was written under the name.
    ends: CaptureEnds,
    /// The files of this forwarder that are there, by their number.
    written: BTreeMap<u64, WholeFile>,
    removed_files: u32,
    removed_bytes: u64,
    /// For each ring, the number of its events in removed files.
    removed_events: Vec<u64>,
    next_removal: Option<Instant>,
    /// The first error of a removal.
    failed: Option<CaptureError>,
}

/// A file that is whole.
struct WholeFile {
    /// The index of its first ring among all rings.
    first_ring: usize,
    events_by_ring: Vec<u64>,
}

impl<'d> DirectoryForwarder<'d> {
    /// Makes a forwarder that has written nothing. Nothing is read or made yet.
    ///
    /// # Errors
    /// The name of the files has a slash, or is empty.
    pub fn new(directory: &'d Path, options: DirectoryOptions) -> Result<Self, CaptureError> {
        if options.name.is_empty() || options.name.contains('/') {
            let message = format!("the name of the files is {:?}, expected one without slashes", options.name);
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        Ok(Self { directory, options, state: RefCell::default() })
    }

    /// Returns the captures that earlier forwarders have left, the oldest first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn earlier_captures(&self) -> Result<Vec<PathBuf>, CaptureError> {
        let entries = kept_entries(self.directory, &self.options.name)?;
        Ok(entries.into_iter().filter(|entry| entry.is_capture).map(|entry| entry.path).collect())
    }

    /// Writes the events of rings until all writers have ended, or until `progress` returns [`ControlFlow::Break`].
    /// Begins after the newest file that was written under the name. `next_ring` and `progress` are as for
    /// [`capture_rings`](eventring_capture::capture_rings). `whole` is called with each file that is whole. May be
    /// called again with other rings.
    ///
    /// # Errors
    /// A ring cannot be read, another forwarder writes under this name, or a file cannot be written or removed. What
    /// was written before the error can be read.
    pub fn forward(
        &self,
        next_ring: &mut dyn FnMut() -> NextRing,
        whole: &mut dyn FnMut(&Path),
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<(), CaptureError> {
        let (start, ends) = start_after_newest(self.directory, &self.options.name)?;
        self.state.borrow_mut().ends = ends;
        let batches = BatchOptions {
            bytes_max: self.file_bytes_max(),
            payload_bytes_max: u64::MAX,
            every: self.options.rotate_every.saturating_mul(2),
            level: self.options.level,
            start,
            filter: self.options.filter.clone(),
            only_new: false,
        };
        let mut files = Files { forwarder: self, whole };
        let mut progress = |done: &CaptureProgress| {
            let goes_on = self.remove_oldest_now_and_then();
            if progress(done).is_break() || !goes_on { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let summary = capture_batches(next_ring, &mut files, &batches, &mut progress)?;
        let state = &mut *self.state.borrow_mut();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        match &mut state.summary {
            Some(all) => all.append(summary),
            None => state.summary = Some(summary),
        }
        state.rings_before = state.summary.as_ref().map_or(0, |summary| summary.rings.len());
        Ok(())
    }

    /// Removes what is too old or too much, if the last look was a second ago. Returns false if that has failed:
    /// [`Self::finish`] says how.
    pub fn remove_oldest_now_and_then(&self) -> bool {
        let now = Instant::now();
        let is_due = self.state.borrow().next_removal.is_none_or(|next| now >= next);
        if is_due {
            self.state.borrow_mut().next_removal = Some(now + REMOVAL_PAUSE);
            if let Err(error) = self.remove_oldest() {
                self.state.borrow_mut().failed.get_or_insert(error);
            }
        }
        self.state.borrow().failed.is_none()
    }

    /// Removes what is too old or too much for the last time. Returns an account of everything that was written, or
    /// `None` if [`Self::forward`] was not called or has failed.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn finish(self) -> Result<Option<CaptureSummary>, CaptureError> {
        if self.state.borrow().summary.is_some() {
            self.write_ends()?;
        }
        self.remove_oldest()?;
        let state = self.state.into_inner();
        if let Some(error) = state.failed {
            return Err(error);
        }
        let Some(mut summary) = state.summary else { return Ok(None) };
        for (stats, removed) in summary.stats.rings.iter_mut().zip(state.removed_events) {
            stats.events = stats.events.saturating_sub(removed);
            stats.removed = stats.removed.saturating_add(removed);
        }
        (summary.removed_files, summary.removed_bytes) = (state.removed_files, state.removed_bytes);
        let entries = kept_entries(self.directory, &self.options.name)?;
        let left = entries.into_iter().filter(|entry| state.written.contains_key(&entry.number));
        let (bytes, files): (Vec<u64>, Vec<PathBuf>) = left.map(|entry| (entry.bytes, entry.path)).unzip();
        (summary.bytes, summary.files) = (bytes.iter().sum(), files);
        Ok(Some(summary))
    }

    /// Writes how far everything was written. From then on, no capture is needed to know it.
    fn write_ends(&self) -> Result<(), CaptureError> {
        let path = ends_path(self.directory, &self.options.name);
        self.state.borrow().ends.write(&path).map_err(|error| error.at(&path))
    }

    fn remove_oldest(&self) -> Result<(), CaptureError> {
        let current = self.state.borrow().current.as_ref().map(|(_, path)| path.clone());
        let (name, limits) = (&self.options.name, self.options.limits);
        let removed = remove_oldest(self.directory, name, limits, current.as_deref())?;
        if removed.is_empty() {
            return Ok(());
        }
        let left = kept_entries(self.directory, &self.options.name)?;
        let left: BTreeSet<u64> = left.iter().map(|entry| entry.number).collect();
        let state = &mut *self.state.borrow_mut();
        // A capture that is in tables is not gone.
        for entry in removed.iter().filter(|entry| !left.contains(&entry.number)) {
            let Some(WholeFile { first_ring, events_by_ring }) = state.written.remove(&entry.number) else {
                continue;
            };
            state.removed_files = state.removed_files.saturating_add(1);
            state.removed_bytes += entry.bytes;
            let rings = first_ring + events_by_ring.len();
            state.removed_events.resize(rings.max(state.removed_events.len()), 0);
            for (sum, events) in state.removed_events[first_ring..].iter_mut().zip(events_by_ring) {
                *sum += events;
            }
        }
        Ok(())
    }

    /// Returns the largest size of a file. If the files are limited together, each may have a part of that only.
    fn file_bytes_max(&self) -> u64 {
        let of_all = self.options.limits.max_bytes.map_or(u64::MAX, |bytes| (bytes / FILE_PART).max(FILE_BYTES_MIN));
        self.options.rotate_bytes.min(of_all)
    }
}

/// The files of one capture.
struct Files<'f, 'd> {
    forwarder: &'f DirectoryForwarder<'d>,
    whole: &'f mut dyn FnMut(&Path),
}

impl BatchSink for Files<'_, '_> {
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn io::Write>, CaptureError> {
        self.forwarder.write_ends()?;
        self.forwarder.remove_oldest()?;
        let now = Timestamp::now().to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ");
        let DirectoryForwarder { directory, options, state } = self.forwarder;
        let path = directory.join(format!("{}-{now}.{part:04}.{EXTENSION}", options.name));
        let entry = OutputEntry::open(&path)?;
        let file = entry.lock(entry.create(false, read)?)?;
        state.borrow_mut().current = Some((part, path));
        Ok(Box::new(file))
    }

    fn end(&mut self, batch: &Batch<'_>) -> Result<(), CaptureError> {
        let state = &mut *self.forwarder.state.borrow_mut();
        match state.current.take() {
            // The last file, if nothing came any more.
            Some((_, path)) if batch.is_empty() => remove(&path),
            Some((part, path)) => {
                let written = WholeFile { first_ring: state.rings_before, events_by_ring: batch.events_by_ring() };
                state.written.insert(part.into(), written);
                state.ends.take_batch(batch);
                (self.whole)(&path);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
