//! The page size of an open file.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{StatFs, fstatfs};

/// The size in bytes of the huge pages that rings use. Every mapping of a ring file starts at a multiple of this size.
pub(in crate::shm::linux) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// `statfs` type of hugetlbfs, from the kernel's `magic.h`.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// The types that `statfs` reports for file systems whose files are in memory. `TMPFS_MAGIC` is for tmpfs, including
/// memfd and `/dev/shm`, and `RAMFS_MAGIC` for ramfs. Both numbers are from the kernel's `magic.h`.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Returns the size in bytes of the pages of a mapping of the file. On hugetlbfs this is the huge page size, otherwise
/// the system's page size.
pub(in crate::shm::linux) fn page_bytes(file: BorrowedFd<'_>) -> Result<u64, rustix::io::Errno> {
    Ok(huge_page_bytes(file)?.unwrap_or(rustix::param::page_size() as u64))
}

/// Returns the size of the file's huge pages in bytes. Returns `None` if the file is not on hugetlbfs. A memfd of huge
/// pages counts as a file on hugetlbfs.
#[inline(never)]
pub(in crate::shm::linux) fn huge_page_bytes(file: BorrowedFd<'_>) -> Result<Option<u64>, rustix::io::Errno> {
    let statfs = fstatfs(file)?;
    let is_huge = magic(&statfs) == HUGETLBFS_MAGIC;
    Ok(is_huge.then(|| u64::try_from(statfs.f_bsize).unwrap_or(HUGE_PAGE_BYTES as u64)))
}

/// Returns true if the file is on tmpfs or ramfs: its pages are small pages in memory, which no disk file backs.
pub(in crate::shm::linux) fn is_in_memory(file: BorrowedFd<'_>) -> bool {
    fstatfs(file).is_ok_and(|statfs| matches!(magic(&statfs), TMPFS_MAGIC | RAMFS_MAGIC))
}

/// Returns true if the file's pages are in memory, whether they are small or huge.
pub(in crate::shm::linux) fn has_memory_pages(file: BorrowedFd<'_>) -> bool {
    is_in_memory(file) || matches!(huge_page_bytes(file), Ok(Some(_)))
}

/// Returns the type of the file system. `f_type` is signed on some machines, so only its low 32 bits are used. All
/// magic numbers fit into them.
fn magic(statfs: &StatFs) -> u64 {
    (statfs.f_type as u64) & 0xffff_ffff
}

/// Returns the path that the kernel shows for a descriptor. The path is for messages only.
pub(in crate::shm::linux) fn path_of(file: BorrowedFd<'_>) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/thread-self/fd/{}", file.as_raw_fd())).ok()
}
