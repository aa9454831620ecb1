//! The files of a capture: one file, or a *rotation set* (numbered files, of which the oldest are removed).
//!
//! A capture may continue after the newest file of a rotation set, even if the earlier capture was killed, because the
//! files show up to which seqno each ring was captured.

use crate::engine::options::CaptureOptions;
use crate::engine::rotation::RotationOptions;
use crate::engine::run;
use crate::engine::sink::CaptureSink;
use crate::engine::sources::SourceRing;
use crate::engine::start::{BatchStart, host_name};
use crate::engine::summary::{CaptureProgress, CaptureSummary, NextRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::output_entry::OutputEntry;
use crate::files::parts::{existing_parts, part_path, remove_file};
use crate::files::read_files::ReadFiles;
use crate::format::end::CaptureEnd;
use crate::format::stats::CaptureStats;
use crate::read::file::CaptureFile;
use crate::sinks::batches::Batch;
use crate::sinks::next_seqnos::NextSeqnos;
use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause between two looks for what is too old or too much.
const REMOVAL_PAUSE: Duration = Duration::from_secs(1);

/// The files of a capture.
pub(super) struct RotationSet {
    pub(super) output: PathBuf,
    rotation: RotationOptions,
    /// True if the names have numbers.
    is_numbered: bool,
    overwrite: bool,
    /// True if a later capture may go on after these files. Then the present one is locked.
    may_go_on: bool,
    /// The files that are there, the oldest first, each with the capture that has written it: 0 for those of an earlier
    /// process.
    files: VecDeque<(PathBuf, u32)>,
    /// The number of the present capture, from 1.
    run: u32,
    /// The number of the newest file.
    part: u32,
    /// The numbers of files that were removed: of those of the present capture, and of those of the captures before it.
    pub(super) removed: u32,
    removed_before: u32,
    /// The seqnos that follow everything that was written under the name.
    next_seqnos: NextSeqnos,
    next_look: Option<Instant>,
}

impl RotationSet {
    pub(super) fn new(output: &Path, options: &CaptureOptions) -> Self {
        Self {
            output: output.to_path_buf(),
            rotation: options.rotation,
            is_numbered: options.rotates(),
            overwrite: options.overwrite,
            may_go_on: options.is_row,
            files: VecDeque::new(),
            run: 1,
            part: 0,
            removed: 0,
            removed_before: 0,
            next_seqnos: NextSeqnos::default(),
            next_look: None,
        }
    }

    /// Takes the files that earlier captures have left. Returns the start after them.
    fn take_earlier_files(&mut self) -> Result<BatchStart, CaptureError> {
        let mut start = BatchStart::of_host(&host_name());
        for part in existing_parts(&self.output)?.into_iter().rev() {
            let (path, is_newest) = (part_path(&self.output, part), self.files.is_empty());
            // The newest file is locked as long as a capture writes it. Two would write the same events.
            if is_newest && OutputEntry::open(&path)?.open_to_append()?.is_none() {
                continue;
            }
            match CaptureFile::open(&path) {
                Ok(capture) if !capture.rings().is_empty() => {
                    if is_newest {
                        start.after(&capture)
                    } else {
                        start.after_older(&capture)
                    }
                    self.next_seqnos.take_older(&capture);
                }
                // Something has happened to an older file. What it had may be written again.
                _ if !is_newest => {}
                Err(error) if error.kind() != CaptureErrorKind::NotACapture => return Err(error),
                // Its capture was killed before it had written anything.
                _ => {
                    remove_file(&path)?;
                    continue;
                }
            }
            start.part = start.part.max(part.saturating_add(1));
            self.files.push_front((path, 0));
        }
        if let Some(removed) = NextSeqnos::open(&self.next_seqnos_path())? {
            start.after_older(&removed);
            self.next_seqnos.take_older(&removed);
        }
        Ok(start)
    }

    /// Returns the path of the file that says how far rings were captured whose files may be gone.
    fn next_seqnos_path(&self) -> PathBuf {
        self.output.with_extension("ends")
    }

    /// Returns the files of the present capture.
    pub(super) fn written(&self) -> Vec<PathBuf> {
        self.files.iter().filter(|(_, run)| *run == self.run).map(|(path, _)| path.clone()).collect()
    }

    fn remove_oldest(&mut self) -> Result<(), CaptureError> {
        if !self.is_numbered || !self.rotation.removes() {
            return Ok(());
        }
        let size = |path: &Path| fs::symlink_metadata(path).map_or(0, |metadata| metadata.len());
        let mut bytes: u64 = self.files.iter().map(|(path, _)| size(path)).sum();
        while let Some((oldest, run)) = self.files.front()
            && self.rotation.removes_oldest(self.files.len(), bytes, oldest)
        {
            bytes -= size(oldest).min(bytes);
            match fs::remove_file(oldest) {
                // Somebody has removed the file already.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => {
                    removed.map_err(|error| CaptureError::io_writing("remove it, the oldest file", error).at(oldest))?
                }
            }
            self.removed += u32::from(*run == self.run);
            self.removed_before += u32::from((1..self.run).contains(run));
            self.files.pop_front();
        }
        Ok(())
    }
}

impl CaptureSink for RotationSet {
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn Write>, CaptureError> {
        let path = if self.is_numbered {
            OutputEntry::open(&self.output)?.check_no_stream()?;
            part_path(&self.output, part)
        } else {
            self.output.clone()
        };
        let entry = OutputEntry::open(&path)?;
        let mut file = entry.create(self.overwrite, read)?;
        if self.may_go_on {
            file = entry.lock(file)?;
        }
        self.files.push_back((path, self.run));
        self.part = part;
        self.remove_oldest()?;
        Ok(Box::new(file))
    }

    fn end(&mut self, end: &CaptureEnd, rings: &[SourceRing]) -> Result<(), CaptureError> {
        if self.may_go_on && self.rotation.removes() {
            self.next_seqnos.take_batch(&Batch { end, rings });
            let path = self.next_seqnos_path();
            self.next_seqnos.write(&path).map_err(|error| error.at(&path))?;
        }
        Ok(())
    }

    fn remove_now_and_then(&mut self) -> Result<(), CaptureError> {
        let now = Instant::now();
        if self.next_look.is_some_and(|next| now < next) {
            return Ok(());
        }
        self.next_look = Some(now + REMOVAL_PAUSE);
        self.remove_oldest()
    }

    fn current(&self) -> Option<&Path> {
        self.files.back().map(|(path, _)| path.as_path())
    }

    fn discard_current(&mut self) {
        if self.files.back().is_some_and(|(_, run)| *run == self.run)
            && let Some((empty, _)) = self.files.pop_back()
        {
            // The capture has failed, and reports that error.
            let _ = fs::remove_file(empty);
        }
    }

    fn removed(&self) -> u32 {
        self.removed
    }
}

/// Captures into a rotation set, one after the other. It may be that of earlier captures.
pub struct RotatedCapture {
    options: CaptureOptions,
    row: RotationSet,
    summary: Option<CaptureSummary>,
    /// For each file that is there: the index of its first ring in the summary, its counts and its size.
    written: VecDeque<(usize, CaptureStats, u64)>,
}

impl RotatedCapture {
    /// Begins a rotation set, whose names must be free unless the options overwrite them.
    #[must_use]
    pub fn new(output: &Path, options: &CaptureOptions) -> Self {
        let options = CaptureOptions { is_row: true, ..options.clone() };
        Self { row: RotationSet::new(output, &options), options, summary: None, written: VecDeque::new() }
    }

    /// Goes on after the newest file of a rotation set, or begins one. Of a ring that was captured before, only what
    /// follows is captured.
    ///
    /// # Errors
    /// Another process writes the rotation set, or its newest file cannot be read.
    pub fn resume(output: &Path, options: &CaptureOptions) -> Result<Self, CaptureError> {
        let mut row = Self::new(output, options);
        row.options.start = row.row.take_earlier_files()?;
        Ok(row)
    }

    /// Captures rings as [`capture_rings`](crate::capture_rings) does, into the next files. May be called again with
    /// other rings.
    ///
    /// # Errors
    /// As [`capture_rings`](crate::capture_rings).
    pub fn capture(
        &mut self,
        next_ring: &mut dyn FnMut() -> NextRing,
        progress: &mut dyn FnMut(&CaptureProgress) -> ControlFlow<()>,
    ) -> Result<(), CaptureError> {
        let first_ring = self.summary.as_ref().map_or(0, |summary| summary.rings.len());
        let mut summary = run::run(next_ring, &mut self.row, &self.options, progress)?;
        summary.files = self.row.written();
        self.written.extend(summary.of_files.drain(..).map(|(stats, bytes)| (first_ring, stats, bytes)));
        match &mut self.summary {
            Some(all) => all.append(summary),
            None => self.summary = Some(summary),
        }
        self.count_removed();
        (self.row.run, self.row.removed) = (self.row.run + 1, 0);
        self.options.start.go_on_at(self.row.part + 1);
        // A later ring is taken whole.
        self.options.only_new = false;
        Ok(())
    }

    /// Removes what is too old or too much, if the last look was a second ago.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove_now_and_then(&mut self) -> Result<(), CaptureError> {
        self.row.remove_now_and_then()?;
        self.count_removed();
        Ok(())
    }

    /// Moves the events of removed files from the captured to the removed counts, for captures before the present one.
    fn count_removed(&mut self) {
        let Some(summary) = &mut self.summary else { return };
        for _ in 0..std::mem::take(&mut self.row.removed_before) {
            let Some((first_ring, stats, bytes)) = self.written.pop_front() else { return };
            summary.removed_files += 1;
            summary.removed_bytes += bytes;
            summary.bytes -= bytes.min(summary.bytes);
            summary.files.remove(0);
            for (ring, removed) in summary.stats.rings[first_ring..].iter_mut().zip(&stats.rings) {
                ring.removed = ring.removed.saturating_add(removed.events);
                ring.take_away(removed);
            }
        }
    }

    /// Returns the account of all captures, or `None` if there was none.
    #[must_use]
    pub fn finish(self) -> Option<CaptureSummary> {
        self.summary
    }
}
