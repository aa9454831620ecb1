//! The files that a program reads, and so never replaces or writes to.

use super::error::CaptureError;
use super::output_entry::refused;
use super::read::CaptureFile;
use crate::reader::{Reader, shard_path};
use crate::shm::FileId;
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;

pub(super) const IS_READ: &str = "it is a file that is read, which is not written over; choose another name";

/// The set of files that are read, which are never written over.
#[derive(Debug, Default)]
pub struct ReadFiles {
    files: Vec<FileId>,
    /// Directory and name of each shard 0: its recorder may make further shards there.
    recorders: Vec<(FileId, OsString)>,
}

impl ReadFiles {
    /// Adds a ring, with the shards that its recorder has made, and the names of shards that it may make.
    pub fn add_ring(&mut self, ring: &Reader) {
        let path = ring.path().unwrap_or("".as_ref());
        self.files.push(ring.file_id());
        if !ring.is_shard_0() {
            return;
        }
        for index in 1..ring.shard_count() {
            self.files.extend(rustix::fs::stat(shard_path(path, index)).ok().map(|stat| FileId::of(&stat)));
        }
        if let (Ok(directory), Some(name)) = (rustix::fs::stat(directory_of(path)), path.file_name()) {
            self.recorders.push((FileId::of(&directory), name.to_os_string()));
        }
    }

    /// Adds a capture with all of its files.
    pub fn add_capture(&mut self, capture: &CaptureFile) {
        let stats = capture.files().filter_map(|file| rustix::fs::fstat(file).ok());
        self.files.extend(stats.map(|stat| FileId::of(&stat)));
    }

    /// Checks that an open stream is none of the files that are read.
    ///
    /// # Errors
    /// The stream is one of these files: [`NotReplaceable`](super::CaptureErrorKind::NotReplaceable).
    pub fn check_stream(&self, stream: impl AsFd, name: &str) -> Result<(), CaptureError> {
        match rustix::fs::fstat(stream) {
            Ok(stat) if self.holds(&stat) => Err(refused(IS_READ).at(name.as_ref())),
            _ => Ok(()),
        }
    }

    pub(super) fn holds(&self, stat: &Stat) -> bool {
        FileType::from_raw_mode(stat.st_mode).is_file() && self.files.contains(&FileId::of(stat))
    }

    /// Returns the name of the shard 0 whose recorder may make a shard with this name.
    pub(super) fn recorder_of_shard(&self, directory: FileId, name: &OsStr) -> Option<&OsStr> {
        let is_number = |end: &[u8]| end.len() > 1 && end[0] == b'.' && end[1..].iter().all(u8::is_ascii_digit);
        let is_its = |(place, first): &&(FileId, OsString)| {
            let end = name.as_encoded_bytes().strip_prefix(first.as_encoded_bytes());
            *place == directory && end.is_some_and(is_number)
        };
        self.recorders.iter().find(is_its).map(|(_, first)| first.as_os_str())
    }
}

/// Returns the directory of `path`.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(".".as_ref())
}
