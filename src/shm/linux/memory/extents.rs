//! The parts of a sparse file that have data.
//!
//! A reader maps only the parts with data. In place of the holes it maps zero pages, which take no memory. If data is
//! written into a hole later, the reader maps this data by [`SparseFile::reach`].
//!
//! If a process reads from a mapped hole of a tmpfs file, the kernel allocates a page, even if the mapping is private.
//! So a file that has a length of a terabyte and takes only 4 KiB would fill the memory.

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{OFlags, SeekFrom, fstat, seek};
use rustix::io::Errno;

use super::super::system::descriptor::OwnDescriptor;
use super::super::system::paths;
use super::plan::OPERATION;
use crate::shm::error::{ShmError, ShmErrorKind};

/// The largest number of parts that are mapped. By default, Linux allows a process 65,530 mappings.
const EXTENTS_MAX: usize = 8192;

/// A file with holes, and the parts of it that are mapped.
#[derive(Debug)]
pub(in crate::shm::linux) struct SparseFile {
    file: OwnDescriptor,
    page_bytes: u64,
    /// The mapped parts in file order. Each part consists of whole pages, and there is a gap between any two parts.
    mapped: Mutex<Vec<Range<u64>>>,
}

/// The result of [`SparseFile::reach`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shm::linux) enum Reached {
    /// No new data: all data was mapped before.
    Nothing,
    /// New data, which was mapped.
    More,
    /// New data that cannot be mapped.
    Failed,
}

impl SparseFile {
    /// Returns the file as a sparse file if it has holes. Returns `None` if it has no holes, or if the file system
    /// does not show them (hugetlbfs, for example).
    pub(in crate::shm::linux) fn detect(file: BorrowedFd<'_>, page_bytes: u64) -> Result<Option<Self>, ShmError> {
        let failed = |errno| ShmError::from_errno(OPERATION, errno);
        let stat = fstat(file).map_err(failed)?;
        let is_whole = (stat.st_blocks as u64).saturating_mul(512) >= stat.st_size as u64;
        if is_whole || page_bytes != rustix::param::page_size() as u64 {
            return Ok(None);
        }
        // `seek` moves the file offset of an open file description, and others may use the description of `file`. So
        // the calls below need a description of their own.
        let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        let own = match paths::open(path.as_ref(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            Ok(own) => own,
            Err(_) => rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(failed)?,
        };
        match seek(&own, SeekFrom::Data(0)) {
            Ok(_) | Err(Errno::NXIO) => {}
            // The file system cannot tell where the holes are. So the caller maps the whole file.
            Err(_) => return Ok(None),
        }
        let file = OwnDescriptor::new(own).map_err(failed)?;
        Ok(Some(Self { file, page_bytes, mapped: Mutex::new(Vec::new()) }))
    }

    /// Finds the data in the range `wanted` that is not mapped yet, and calls `map` for each part of it. A part ends
    /// at the next hole of the file, which may lie beyond the end of `wanted`.
    pub(in crate::shm::linux) fn reach(
        &self,
        wanted: Range<u64>,
        mut map: impl FnMut(BorrowedFd<'_>, Range<u64>) -> bool,
    ) -> Reached {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let mut at = wanted.start - wanted.start % self.page_bytes;
        let mut reached = Reached::Nothing;
        while at < wanted.end {
            // The first mapped part that ends after `at`.
            let index = mapped.partition_point(|known| known.end <= at);
            let known = mapped.get(index).cloned();
            if let Some(known) = known.as_ref().filter(|known| known.start <= at) {
                at = known.end;
                continue;
            }
            let Some(file) = self.file.checked() else { return Reached::Failed };
            let Some(data) = self.data_from(file, at) else { break };
            let found = data.start..known.map_or(data.end, |known| known.start.min(data.end));
            if data.start >= wanted.end {
                break;
            }
            if found.is_empty() {
                at = data.start;
                continue;
            }
            at = found.end;
            if mapped.len() >= EXTENTS_MAX || !map(file, found.clone()) {
                return Reached::Failed;
            }
            insert(&mut mapped, index, found);
            reached = Reached::More;
        }
        reached
    }

    /// Returns the offset of the first data at or after `offset`. Returns `None` if there is no such data, or if the
    /// program has closed the file's descriptor.
    pub(in crate::shm::linux) fn next_data(&self, offset: u64) -> Option<u64> {
        self.data_from(self.file.checked()?, offset).map(|data| data.start)
    }

    fn data_from(&self, file: BorrowedFd<'_>, offset: u64) -> Option<Range<u64>> {
        let start = seek(file, SeekFrom::Data(offset)).ok()?;
        let start = start.max(offset);
        let end = seek(file, SeekFrom::Hole(start)).ok()?.max(start + 1);
        Some(start - start % self.page_bytes..end.checked_next_multiple_of(self.page_bytes)?)
    }
}

/// Inserts `found` before the part at `index`. If there is no gap between `found` and a neighbour, joins the two.
fn insert(mapped: &mut Vec<Range<u64>>, index: usize, found: Range<u64>) {
    let (start, end) = (found.start, found.end);
    mapped.insert(index, found);
    if mapped.get(index + 1).is_some_and(|next| next.start == end) {
        mapped[index].end = mapped[index + 1].end;
        mapped.remove(index + 1);
    }
    if index > 0 && mapped[index - 1].end == start {
        mapped[index - 1].end = mapped[index].end;
        mapped.remove(index);
    }
}

/// Returns the error for a file in too many parts.
pub(in crate::shm::linux) fn too_many_parts() -> ShmError {
    ShmError::new(
        ShmErrorKind::Unsupported,
        OPERATION,
        format_args!("what is there of the file is in more than {EXTENTS_MAX} parts with holes between"),
    )
    .mend("copy it (`cp --sparse=never`) and open the copy")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    const PAGE: u64 = 4096;

    /// Calls [`SparseFile::reach`]. Returns its result and the parts that it mapped. Each part is given by its first
    /// page and the page after its last.
    fn reach(sparse: &SparseFile, wanted: Range<u64>) -> (Reached, Vec<(u64, u64)>) {
        let mut found = Vec::new();
        let reached = sparse.reach(wanted, |_, part| {
            found.push((part.start / PAGE, part.end / PAGE));
            true
        });
        (reached, found)
    }

    fn file(pages: &[u64]) -> File {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(1 << 40).unwrap();
        pages.iter().for_each(|page| file.write_all_at(b"here", page * PAGE).unwrap());
        file
    }

    #[test]
    fn what_is_there_is_found_once_and_what_comes_is_found_when_it_is_looked_for() {
        let file = file(&[0, 1, 5, 1000]);
        let sparse = SparseFile::detect(file.as_fd(), PAGE).unwrap().unwrap();
        assert_eq!(reach(&sparse, 0..PAGE), (Reached::More, vec![(0, 2)]));
        assert_eq!(reach(&sparse, 0..1 << 40), (Reached::More, vec![(5, 6), (1000, 1001)]));
        assert_eq!(reach(&sparse, 0..1 << 40), (Reached::Nothing, vec![]));
        [2, 4, 6].iter().for_each(|page| file.write_all_at(b"here", page * PAGE).unwrap());
        assert_eq!(reach(&sparse, 3 * PAGE..4 * PAGE), (Reached::Nothing, vec![]));
        assert_eq!(reach(&sparse, 2 * PAGE..7 * PAGE), (Reached::More, vec![(2, 3), (4, 5), (6, 7)]));
        assert_eq!(*sparse.mapped.lock().unwrap(), [0..3 * PAGE, 4 * PAGE..7 * PAGE, 1000 * PAGE..1001 * PAGE]);
        assert_eq!((sparse.next_data(7 * PAGE), sparse.next_data(1001 * PAGE)), (Some(1000 * PAGE), None));
    }

    #[test]
    fn a_file_in_too_many_parts_is_not_mapped_without_end() {
        let pages: Vec<u64> = (0..2 * EXTENTS_MAX as u64).map(|part| 2 * part).collect();
        let sparse = SparseFile::detect(file(&pages).as_fd(), PAGE).unwrap().unwrap();
        let (reached, found) = reach(&sparse, 0..1 << 40);
        assert_eq!((reached, found.len()), (Reached::Failed, EXTENTS_MAX));
    }

    #[test]
    fn a_file_without_holes_is_not_sparse() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.write_all_at(&[1; 8192], 0).unwrap();
        assert!(SparseFile::detect(file.as_fd(), PAGE).unwrap().is_none());
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 1 << 20).unwrap();
        assert!(SparseFile::detect(file.as_fd(), PAGE).unwrap().is_none(), "allocated, and not written");
    }
}
