//! A directory with a file for each final block.

use super::eventcap::{EventcapEvents, EventcapFile, Stored};
use eventring_capture::{CaptureError, CaptureErrorKind};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The number of blocks in one directory.
const BLOCKS_IN_DIRECTORY: u64 = 10_000;

/// An archive of final blocks: the file of block N is `N / 10000 / N.bcap` in the directory of the archive, and appears
/// when the block is final. The published archiver writes such directories, and [`Archiver`](super::Archiver) does.
#[derive(Clone, Debug)]
pub struct BlockArchive {
    directory: PathBuf,
}

impl BlockArchive {
    /// Opens the archive in this directory, which may still be empty.
    ///
    /// # Errors
    /// There is no such directory.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, CaptureError> {
        let directory = directory.into();
        match fs::metadata(&directory) {
            Ok(found) if found.is_dir() => Ok(Self { directory }),
            Ok(_) => {
                let message = "it is no directory; an archive of blocks is a directory with a file for each block";
                Err(CaptureError::new(CaptureErrorKind::NotACapture, message).at(&directory))
            }
            Err(error) => Err(CaptureError::io("open it", error).at(&directory)),
        }
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns where the file of a block is, or would be.
    #[must_use]
    pub fn path_of(&self, number: u64) -> PathBuf {
        self.directory.join((number / BLOCKS_IN_DIRECTORY).to_string()).join(format!("{number}.bcap"))
    }

    /// Returns true if the archive has a block with this number.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        self.path_of(number).is_file()
    }

    /// Returns true if the archive has a file of the block with this number, which can be read.
    ///
    /// # Errors
    /// Something else is in its place.
    pub(crate) fn has_file_of(&self, number: u64) -> Result<bool, CaptureError> {
        let path = self.path_of(number);
        let read_all = |file: &EventcapFile| (0..file.bundles().len()).find_map(|index| file.read(index).err());
        let opened = match EventcapFile::open(&path) {
            Ok(file) if !file.may_be_block(number) => Err(format!("it does not hold block {number}")),
            Ok(file) => read_all(&file).map_or(Ok(()), |error| Err(error.to_string())),
            Err(error) if error.kind() == CaptureErrorKind::NotFound => return Ok(false),
            Err(error) => Err(error.to_string()),
        };
        let Err(problem) = opened else { return Ok(true) };
        let mend = "move it away, or give the archive another directory";
        Err(CaptureError::new(CaptureErrorKind::Damaged, format!("{problem}; {mend}")).at(&path))
    }

    /// Returns the smallest number from `first` on, and below `end`, of which the archive has a file. Looks only at
    /// what is there: the numbers may be any.
    pub(crate) fn next_number(&self, first: u64, end: u64) -> Option<u64> {
        let parts = self.parts().ok()?;
        let is_between = |part: &u64| (first / BLOCKS_IN_DIRECTORY..=end / BLOCKS_IN_DIRECTORY).contains(part);
        let numbers = |part: u64| self.numbers_in(part).ok()?.into_iter().filter(|it| (first..end).contains(it)).min();
        parts.into_iter().filter(is_between).find_map(numbers)
    }

    /// Returns the numbers of all blocks, in ascending order.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub fn numbers(&self) -> Result<Vec<u64>, CaptureError> {
        let mut numbers = Vec::new();
        for part in self.parts()? {
            numbers.extend(self.numbers_in(part)?);
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the numbers of the directories with blocks, in ascending order.
    fn parts(&self) -> Result<Vec<u64>, CaptureError> {
        let names = entries(&self.directory)?;
        let part_of = |name: &OsString| name.to_str()?.parse::<u64>().ok();
        let mut parts: Vec<u64> = names.iter().filter_map(part_of).filter(|part| self.part(*part).is_dir()).collect();
        parts.sort_unstable();
        Ok(parts)
    }

    fn part(&self, part: u64) -> PathBuf {
        self.directory.join(part.to_string())
    }

    /// Returns the numbers of the blocks in a directory.
    fn numbers_in(&self, part: u64) -> Result<Vec<u64>, CaptureError> {
        let number_of = |name: &OsString| {
            let number = name.to_str()?.strip_suffix(".bcap")?.parse::<u64>().ok()?;
            // `05` and `+5` are no names of block 5.
            (*name == *format!("{number}.bcap")).then_some(number)
        };
        let numbers = entries(&self.part(part))?.iter().filter_map(number_of).collect::<Vec<_>>();
        Ok(numbers.into_iter().filter(|number| number / BLOCKS_IN_DIRECTORY == part).collect())
    }
}

/// Returns the names of what is in a directory.
fn entries(path: &Path) -> Result<Vec<OsString>, CaptureError> {
    let names = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    names.map_err(|error| CaptureError::io("list it", error).at(path))
}

/// The events of all blocks of an archive, one after the other.
#[derive(Debug)]
pub(crate) struct ArchiveEvents {
    archive: BlockArchive,
    numbers: VecDeque<u64>,
    file: Option<EventcapEvents>,
    next_seqno: u64,
    pub(crate) problems: Vec<String>,
}

impl ArchiveEvents {
    pub(crate) fn new(archive: BlockArchive, numbers: Vec<u64>) -> Self {
        Self { archive, numbers: numbers.into(), file: None, next_seqno: 0, problems: Vec::new() }
    }

    /// Begins with this number, or with the next one that is there.
    pub(crate) fn begin_at(&mut self, number: u64) {
        self.numbers.retain(|there| *there >= number);
    }

    /// Opens the file of the first block; `None` if there is none that can be read.
    pub(crate) fn first(&self) -> Option<EventcapFile> {
        self.numbers.front().and_then(|number| EventcapFile::open(self.archive.path_of(*number)).ok())
    }

    /// Opens the next file if the last one has been read. Returns false if there are no more.
    fn advance(&mut self) -> bool {
        loop {
            if let Some(file) = self.file.as_mut()
                && file.has_more()
            {
                return true;
            }
            if let Some(file) = self.file.take() {
                self.next_seqno = file.next_seqno();
                self.problems.extend(file.problems);
            }
            let Some(number) = self.numbers.pop_front() else { return false };
            let path = self.archive.path_of(number);
            match EventcapFile::open(&path) {
                Ok(file) if !file.may_be_block(number) => {
                    self.problems.push(format!("{}: it does not hold block {number}", path.display()));
                }
                Ok(file) => self.file = Some(EventcapEvents::new(file).after(self.next_seqno)),
                Err(error) => self.problems.push(error.to_string()),
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<Stored<'_>> {
        if !self.advance() {
            return None;
        }
        self.file.as_mut()?.next()
    }
}
