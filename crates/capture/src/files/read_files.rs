//! The files that a program reads. The program never replaces these files or writes to them.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::parts::directory_of;
use crate::read::file::CaptureFile;
use eventring::files::FileId;
use eventring::reader::{Reader, shard_path};
use rustix::fs::{FileType, Stat};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;

pub(crate) const IS_READ: &str = "it is a file that is read, which is not written over; choose another name";

/// A set of files that are read, so that no output may replace them.
#[derive(Debug, Default)]
pub struct ReadFiles {
    files: Vec<FileId>,
    /// Each shard 0. Its recorder may make further shards in the same directory.
    recorders: Vec<FirstShard>,
}

/// The place of a shard 0.
#[derive(Debug)]
struct FirstShard {
    directory: FileId,
    name: OsString,
}

impl ReadFiles {
    /// Adds a ring. If the ring is shard 0 of a recorder, also adds the recorder's other shards, and the names of
    /// shards that it may make later.
    pub fn add_ring(&mut self, ring: &Reader) {
        let path = ring.path().unwrap_or("".as_ref());
        self.files.push(ring.file_id());
        if !ring.is_shard_0() {
            return;
        }
        for index in 1..ring.shard_count() {
            self.files.extend(rustix::fs::stat(shard_path(path, index)).ok().map(|stat| FileId::from_stat(&stat)));
        }
        if let (Ok(directory), Some(name)) = (rustix::fs::stat(directory_of(path)), path.file_name()) {
            self.recorders.push(FirstShard { directory: FileId::from_stat(&directory), name: name.to_os_string() });
        }
    }

    /// Adds a capture with all of its files.
    pub fn add_capture(&mut self, capture: &CaptureFile) {
        capture.files().for_each(|file| self.add_file(file));
    }

    /// Adds an open file.
    pub fn add_file(&mut self, file: impl AsFd) {
        self.files.extend(rustix::fs::fstat(file).ok().map(|stat| FileId::from_stat(&stat)));
    }

    /// Checks that an open output stream is not one of the files that the caller reads.
    ///
    /// # Errors
    /// The stream is one of the files that are read: [`NotReplaceable`](crate::CaptureErrorKind::NotReplaceable).
    pub fn check_stream(&self, stream: impl AsFd, name: &str) -> Result<(), CaptureError> {
        match rustix::fs::fstat(stream) {
            Ok(stat) if self.holds(&stat) => {
                Err(CaptureError::new(CaptureErrorKind::NotReplaceable, IS_READ).at(name.as_ref()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn holds(&self, stat: &Stat) -> bool {
        FileType::from_raw_mode(stat.st_mode).is_file() && self.files.contains(&FileId::from_stat(stat))
    }

    /// Finds a recorder in `directory` that may make a shard with the name `name`. Returns the file name of the
    /// recorder's shard 0, or `None` if there is no such recorder.
    pub(crate) fn recorder_of_shard(&self, directory: FileId, name: &OsStr) -> Option<&OsStr> {
        let is_number = |end: &[u8]| end.len() > 1 && end[0] == b'.' && end[1..].iter().all(u8::is_ascii_digit);
        let is_its = |first: &&FirstShard| {
            let end = name.as_encoded_bytes().strip_prefix(first.name.as_encoded_bytes());
            first.directory == directory && end.is_some_and(is_number)
        };
        self.recorders.iter().find(is_its).map(|first| first.name.as_os_str())
    }
}
