//! The files of a capture.

use super::batches::{Batch, BatchParts};
use super::end::CaptureEnd;
use super::error::CaptureError;
use super::read_files::ReadFiles;
use super::rolling::Rolled;
use super::row::Row;
use super::sources::SourceRing;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The output of a capture: one file, or a row of files.
pub(super) enum Parts<'o> {
    /// A writer that the caller has opened.
    Writer(Option<Box<dyn Write>>),
    /// A path, or a row of paths.
    Path(&'o mut Row),
    /// Files without names, of which only the last are kept.
    Rolling(Arc<Rolled>),
    /// Whole files, each of which goes its way before the next is begun.
    Batches(BatchParts<'o>),
}

impl Parts<'_> {
    /// Opens the next output. In a rotated capture, it is the file with the number `part`, from 1. A file in `read` is
    /// never replaced.
    pub(super) fn next(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn Write>, CaptureError> {
        match self {
            Self::Writer(out) => Ok(out.take().unwrap_or_else(|| Box::new(std::io::sink()))),
            Self::Path(row) => Ok(Box::new(row.next(part, read)?)),
            Self::Rolling(rolled) => Ok(Box::new(rolled.next()?)),
            Self::Batches(batches) => batches.next(part, read),
        }
    }

    /// Takes note that the current file is whole. `rings` are described as in this file.
    pub(super) fn end(&mut self, end: &CaptureEnd, rings: &[SourceRing]) -> Result<(), CaptureError> {
        match self {
            Self::Batches(batches) => batches.end(end, rings),
            Self::Path(row) => row.end(&Batch { end, rings }),
            Self::Writer(_) | Self::Rolling(_) => Ok(()),
        }
    }

    /// Removes files that have become too old or too much.
    pub(super) fn remove_now_and_then(&mut self) -> Result<(), CaptureError> {
        match self {
            Self::Path(row) => row.remove_now_and_then(),
            Self::Writer(_) | Self::Rolling(_) | Self::Batches(_) => Ok(()),
        }
    }

    /// Returns true if each file has only the table entries that its own events may need.
    pub(super) fn are_batches(&self) -> bool {
        matches!(self, Self::Batches(_))
    }

    /// Returns true if a file is ended for its age even if it is empty.
    pub(super) fn want_empty(&self) -> bool {
        match self {
            Self::Batches(batches) => batches.want_empty(),
            Self::Writer(_) | Self::Path(_) | Self::Rolling(_) => true,
        }
    }

    /// Returns the file that is being written, for messages.
    pub(super) fn current(&self) -> Option<&Path> {
        match self {
            Self::Writer(_) | Self::Rolling(_) | Self::Batches(_) => None,
            Self::Path(row) => row.current(),
        }
    }

    /// Removes the file that is being written, because it holds nothing.
    pub(super) fn discard_current(&mut self) {
        if let Self::Path(row) = self {
            row.discard_current();
        }
    }

    /// Returns how many files the capture has removed.
    pub(super) fn removed(&self) -> u32 {
        match self {
            Self::Writer(_) | Self::Batches(_) => 0,
            Self::Rolling(rolled) => rolled.forgotten_parts(),
            Self::Path(row) => row.removed,
        }
    }

    /// Returns the files that were written and kept.
    pub(super) fn into_files(self) -> Vec<PathBuf> {
        match self {
            Self::Writer(_) | Self::Rolling(_) | Self::Batches(_) => Vec::new(),
            Self::Path(row) => row.written(),
        }
    }
}

/// Returns the directory of `path`.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(".".as_ref())
}

/// Removes a file. One that is not there any more is removed already.
pub(super) fn remove_file(path: &Path) -> Result<(), CaptureError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CaptureError::io_writing("remove it", error).at(path))
        }
        _ => Ok(()),
    }
}

/// Returns the path of the file with the number `part`: `trace.evc` becomes `trace.0001.evc`.
pub(super) fn part_path(output: &Path, part: u32) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_os_string();
    name.push(format!(".{part:04}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_before_the_extension() {
        assert_eq!(part_path(Path::new("a/trace.evc"), 7), Path::new("a/trace.0007.evc"));
        assert_eq!(part_path(Path::new("trace"), 12345), Path::new("trace.12345"));
    }
}
