//! The files of a receiver: one file, or a rotated capture, which begins a new file when the last one is full.

use crate::engine::rotation::RotationOptions;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::output_entry::OutputEntry;
use crate::files::parts::{existing_parts, part_path, remove_file};
use crate::files::read_files::ReadFiles;
use crate::format::header::{BlockKind, HEADER_BYTES};
use crate::format::stats::CaptureStats;
use crate::read::file::CaptureFile;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The settings of a receiver's files.
#[derive(Clone, Debug, Default)]
pub struct ReceivedOptions {
    /// Replaces what exists, instead of going on with it.
    pub overwrite: bool,
    /// The rotation set. A new file is begun by a batch, and then the old ones go.
    pub rotation: RotationOptions,
    /// The part of the stream that is received, in the words of the caller; empty for all of it.
    pub selection: String,
}

/// The files of a receiver.
pub(super) struct ReceivedFiles {
    output: PathBuf,
    pub(super) options: ReceivedOptions,
    /// The number of the present file; 0 if there is only one.
    part: u32,
    /// The files before the present one, the oldest first.
    earlier: VecDeque<EarlierFile>,
    /// The counts of `earlier` together.
    stats: CaptureStats,
    /// Files that an earlier receiver had only begun when it was killed. They are locked as long as they are here.
    begun: Vec<(File, PathBuf)>,
}

/// A file before the present one.
struct EarlierFile {
    path: PathBuf,
    bytes: u64,
    stats: CaptureStats,
}

/// The file with which a receiver begins.
pub(super) enum FirstFile {
    /// A new file, or one in which nothing is yet.
    New(File),
    /// The file of an earlier receiver, and the file before it.
    Known(File, Option<Box<CaptureFile>>),
}

impl ReceivedFiles {
    /// Opens the newest file of an earlier receiver, or makes one, and locks it.
    ///
    /// # Errors
    /// Another receiver writes the file, or it cannot be read, replaced or made.
    pub(super) fn open(output: &Path, options: ReceivedOptions) -> Result<(Self, FirstFile), CaptureError> {
        let (earlier, stats) = (VecDeque::new(), CaptureStats::default());
        let mut files = Self { output: output.to_path_buf(), options, part: 0, earlier, stats, begun: Vec::new() };
        if !files.options.rotation.rotates() {
            let entry = OutputEntry::open(output)?;
            // A file that another receiver writes is not replaced, either.
            let known = entry.open_to_append()?;
            let first = match known.filter(|_| !files.options.overwrite) {
                // A receiver was killed before it had written anything.
                Some(file) if is_empty(&file) => FirstFile::New(file),
                Some(file) => FirstFile::Known(file, None),
                None => FirstFile::New(entry.lock(entry.create(files.options.overwrite, &ReadFiles::default())?)?),
            };
            return Ok((files, first));
        }
        let first = files.open_newest()?;
        Ok((files, first))
    }

    fn open_newest(&mut self) -> Result<FirstFile, CaptureError> {
        let mut parts = existing_parts(&self.output)?;
        while let Some(part) = parts.pop() {
            let entry = OutputEntry::open(&part_path(&self.output, part))?;
            let Some(file) = entry.open_to_append()? else { continue };
            // A receiver was killed when it had just begun this file. The one before it says where to go on.
            if self.options.overwrite || (!parts.is_empty() && is_only_begun(&file)?) {
                self.begun.push((file, entry.path().to_path_buf()));
                continue;
            }
            self.part = part;
            if is_empty(&file) {
                return Ok(FirstFile::New(file));
            }
            let mut before = None;
            let first = parts.first().copied().unwrap_or(part);
            if let Some((_, missing)) = parts.iter().chain([&part]).zip(first..).find(|(part, at)| *part != at) {
                let message = "this file of the rotation set is missing; bring it back, or choose another name";
                return Err(CaptureError::new(CaptureErrorKind::Damaged, message).at(&part_path(&self.output, missing)));
            }
            for part in parts {
                let path = part_path(&self.output, part);
                let capture = CaptureFile::open(&path)?;
                let stats = capture.end().map(|end| end.stats.clone()).unwrap_or_default();
                let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                self.add_earlier(EarlierFile { path, bytes, stats });
                before = Some(Box::new(capture));
            }
            return Ok(FirstFile::Known(file, before));
        }
        self.remove_begun()?;
        self.make_next().map(FirstFile::New)
    }

    /// Removes the files that were only begun. [`Self::open`] leaves them until it is known that the file before them
    /// is a receiver's.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn remove_begun(&mut self) -> Result<(), CaptureError> {
        self.begun.drain(..).try_for_each(|(_, path)| remove_file(&path))
    }

    /// Returns the number of the present file, as its header has it.
    pub(super) fn part(&self) -> u32 {
        self.part
    }

    /// Notes that the present file is whole, makes the next one, and removes the oldest ones. Returns the next one, and
    /// the counts of those that were removed.
    ///
    /// # Errors
    /// The next file cannot be made, or an old one not removed.
    pub(super) fn next(&mut self, bytes: u64, stats: CaptureStats) -> Result<(File, CaptureStats), CaptureError> {
        self.add_earlier(EarlierFile { path: part_path(&self.output, self.part), bytes, stats });
        let file = self.make_next()?;
        let mut removed = CaptureStats::default();
        while let Some(oldest) = self.earlier.front()
            && self.options.rotation.removes_oldest(self.earlier.len() + 1, self.bytes_with(0), &oldest.path)
        {
            remove_file(&oldest.path)?;
            let Some(oldest) = self.earlier.pop_front() else { break };
            self.stats.take_away(&oldest.stats);
            removed.add(&oldest.stats);
        }
        Ok((file, removed))
    }

    fn make_next(&mut self) -> Result<File, CaptureError> {
        self.part += 1;
        let entry = OutputEntry::open(&part_path(&self.output, self.part))?;
        entry.lock(entry.create(false, &ReadFiles::default())?)
    }

    fn add_earlier(&mut self, file: EarlierFile) {
        self.stats.add(&file.stats);
        self.earlier.push_back(file);
    }

    /// Returns the counts of all files, of which the present one has `stats`.
    pub(super) fn stats_with(&self, stats: &CaptureStats) -> CaptureStats {
        let mut all = self.stats.clone();
        all.add(stats);
        all
    }

    /// Returns the size of all files, of which the present one has `bytes`.
    pub(super) fn bytes_with(&self, bytes: u64) -> u64 {
        self.earlier.iter().fold(bytes, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Returns the paths of all files, the oldest first.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.earlier.iter().map(|file| file.path.clone()).chain([self.present()]).collect()
    }

    /// Checks that the present file has its name still. Somebody may have removed it, and then nobody can read it.
    ///
    /// # Errors
    /// It has been removed or moved away.
    pub(super) fn check_name(&self) -> Result<(), CaptureError> {
        let path = self.present();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let message = "it was removed or moved away while a receiver wrote it; receive the stream again";
                Err(CaptureError::new(CaptureErrorKind::Io, message).at(&path))
            }
            _ => Ok(()),
        }
    }

    /// Returns the path of the present file.
    pub(super) fn present(&self) -> PathBuf {
        if self.part == 0 { self.output.clone() } else { part_path(&self.output, self.part) }
    }
}

fn is_empty(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() == 0)
}

/// Returns true if a file has descriptions at most: neither a place in the stream nor events.
fn is_only_begun(file: &File) -> Result<bool, CaptureError> {
    let read = file.try_clone().map_err(|error| CaptureError::io("open it", error))?;
    match CaptureFile::from_file(read) {
        Ok(capture) => {
            let holds = |kind| matches!(kind, BlockKind::Place | BlockKind::Events | BlockKind::End);
            Ok(!capture.blocks.iter().any(|block| holds(block.header.kind)))
        }
        // Its header was not written yet.
        Err(error) if error.kind() == CaptureErrorKind::NotACapture => {
            Ok(file.metadata().is_ok_and(|metadata| metadata.len() < HEADER_BYTES))
        }
        Err(error) => Err(error),
    }
}
