//! The free memory or file space for a new file, and the error if a file needs more.

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{OFlags, fstat, fstatfs};
use rustix::io::Errno;

use super::super::system::page_size::{huge_page_bytes, is_in_memory};
use super::super::system::paths;
use super::super::writer::lock::lock_state;
use super::huge_pages::HugePagePool;
use super::meminfo;
use crate::shm::answers::LockState;
use crate::shm::error::{ShmError, ShmErrorKind};

pub(in crate::shm::linux) const OPERATION: &str = "allocate ring file";

/// The memory or file space that is free for a new file. An amount that the system does not show is `None`.
#[derive(Debug)]
pub(in crate::shm::linux) enum FreeMemory {
    HugePages {
        page_bytes: u64,
        pool: HugePagePool,
        /// The number of pages that the mount's option `size=` still allows. `None` if the mount has no such option.
        mount_pages: Option<u64>,
    },
    SmallPages {
        /// The number of free bytes on the file system. `None` if the file system has no limit.
        file_system: Option<u64>,
        /// Free bytes in memory, if the file is in memory.
        memory: Option<u64>,
    },
}

impl FreeMemory {
    pub(in crate::shm::linux) fn now(file: BorrowedFd<'_>, huge_page_bytes: Option<u64>) -> Self {
        // hugetlbfs and tmpfs without a limit report 0 of 0 blocks.
        let statfs = fstatfs(file).ok().filter(|statfs| statfs.f_blocks > 0);
        match huge_page_bytes {
            Some(page_bytes) => Self::HugePages {
                page_bytes,
                pool: HugePagePool::of_this_machine(),
                mount_pages: statfs.map(|statfs| statfs.f_bavail),
            },
            None => Self::SmallPages {
                file_system: statfs.and_then(|s| s.f_bavail.checked_mul(u64::try_from(s.f_bsize).ok()?)),
                memory: is_in_memory(file).then(meminfo::available_bytes).flatten(),
            },
        }
    }

    /// Returns the size in bytes of the largest file that fits. Returns `None` if this is not known.
    pub(in crate::shm::linux) fn bytes(&self) -> Option<u64> {
        match *self {
            // The pool looks empty. A pool that this process cannot see looks empty, too, so the room is not known.
            // The caller then tries the allocation, and the kernel decides.
            Self::HugePages { pool, .. } if pool.is_empty() => None,
            Self::HugePages { page_bytes, pool, mount_pages } => {
                let pages = pool.available.saturating_add(pool.overcommit);
                Some(pages.min(mount_pages.unwrap_or(u64::MAX)).saturating_mul(page_bytes))
            }
            Self::SmallPages { file_system, memory } => file_system.into_iter().chain(memory).min(),
        }
    }

    /// Returns the error for a file of `bytes` that does not fit.
    pub(in crate::shm::linux) fn no_space(&self, bytes: u64, errno: Errno) -> ShmError {
        let error = |found: fmt::Arguments<'_>| ShmError::new(ShmErrorKind::NoSpace, OPERATION, found).caused_by(errno);
        match *self {
            Self::HugePages { page_bytes, pool, mount_pages } => {
                let needed = bytes.div_ceil(page_bytes);
                match mount_pages {
                    Some(pages) if pages < needed && needed <= pool.available => error(format_args!(
                        "no space left on its hugetlbfs mount: it needs {needed} pages, the mount's size= option leaves {pages}"
                    ))
                    .mend("mount it with a larger size=, or choose smaller shifts"),
                    _ => error(format_args!(
                        "no space left in the pool of huge pages: it needs {needed} pages of {} ({}), {} of the pool's {} are available",
                        Mebibytes(page_bytes),
                        Mebibytes(bytes),
                        pool.available,
                        pool.total
                    ))
                    .mend(format_args!(
                        "enlarge the pool (`sysctl vm.nr_hugepages={}`, see /proc/sys/vm/nr_hugepages), choose smaller shifts, or give a path on a tmpfs",
                        pool.total.saturating_add(needed.saturating_sub(pool.available))
                    )),
                }
            }
            Self::SmallPages { file_system: Some(free), memory } if memory.is_none_or(|memory| free <= memory) => {
                error(format_args!(
                    "no space left on the file system: it needs {}, {} are free",
                    Mebibytes(bytes),
                    Mebibytes(free)
                ))
                .mend("free some, enlarge the file system (tmpfs: `mount -o remount,size=`), or choose smaller shifts")
            }
            Self::SmallPages { memory: Some(free), .. } => error(format_args!(
                "not enough memory: it needs {}, {} are available",
                Mebibytes(bytes),
                Mebibytes(free)
            ))
            .mend("free some, raise the memory limit of the container, or choose smaller shifts"),
            Self::SmallPages { .. } => error(format_args!("no space left: it needs {}", Mebibytes(bytes)))
                .mend("free some, or choose smaller shifts"),
        }
    }
}

/// Returns how many bytes a new ring at `path` can take, with its shards, or a ring in anonymous memory if there is no
/// path. The files of dead writers that it replaces count as free. Returns `None` if this is not known.
pub fn free_bytes(path: Option<&Path>) -> Option<u64> {
    let Some(path) = path else { return meminfo::available_bytes() };
    let directory = path.ancestors().skip(1).find_map(|directory| {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        paths::open(directory, OFlags::PATH | OFlags::DIRECTORY).ok()
    })?;
    let huge = huge_page_bytes(directory.as_fd()).ok()?;
    Some(FreeMemory::now(directory.as_fd(), huge).bytes()?.saturating_add(dead_bytes(path)))
}

/// Returns the bytes of the ring file at `path`, and of its shards, as far as their writers are dead.
fn dead_bytes(path: &Path) -> u64 {
    let open = |path: &Path| paths::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok();
    let shard = |index: u64| {
        let mut path = path.as_os_str().to_owned();
        path.push(format!(".{index}"));
        open(path.as_ref())
    };
    let files = open(path).into_iter().chain((1..).map_while(shard));
    let dead = files.filter(|file| lock_state(file) == LockState::Free);
    dead.filter_map(|file| u64::try_from(fstat(&file).ok()?.st_size).ok()).fold(0, u64::saturating_add)
}

/// A size in bytes that is displayed like `644 MiB`, rounded up to whole mebibytes. A size below 1 MiB is displayed in
/// bytes.
pub(in crate::shm::linux) struct Mebibytes(pub(in crate::shm::linux) u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1 << 20 { write!(f, "{} bytes", self.0) } else { write!(f, "{} MiB", self.0.div_ceil(1 << 20)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDED: u64 = 644 << 20;

    fn huge(total: u64, available: u64, mount_pages: Option<u64>) -> FreeMemory {
        FreeMemory::HugePages {
            page_bytes: 2 << 20,
            pool: HugePagePool { total, available, overcommit: 0 },
            mount_pages,
        }
    }

    #[test]
    fn a_full_pool_is_named_with_the_way_to_enlarge_it() {
        let room = huge(100, 12, None);
        assert_eq!(room.bytes(), Some(24 << 20));
        insta::assert_snapshot!(room.no_space(NEEDED, Errno::NOSPC).at(Path::new("/dev/hugepages/event-rings/x")), @"cannot allocate ring file /dev/hugepages/event-rings/x: no space left in the pool of huge pages: it needs 322 pages of 2 MiB (644 MiB), 12 of the pool's 100 are available (No space left on device (os error 28)); enlarge the pool (`sysctl vm.nr_hugepages=410`, see /proc/sys/vm/nr_hugepages), choose smaller shifts, or give a path on a tmpfs");
        let room = huge(1000, 900, Some(3));
        assert_eq!(room.bytes(), Some(6 << 20));
        insta::assert_snapshot!(room.no_space(NEEDED, Errno::NOSPC), @"cannot allocate ring file: no space left on its hugetlbfs mount: it needs 322 pages, the mount's size= option leaves 3 (No space left on device (os error 28)); mount it with a larger size=, or choose smaller shifts");
    }

    #[test]
    fn a_pool_that_cannot_be_seen_is_left_to_the_kernel() {
        assert_eq!(huge(0, 0, None).bytes(), None);
        let pool = HugePagePool { total: 0, available: 0, overcommit: 5 };
        let room = FreeMemory::HugePages { page_bytes: 2 << 20, pool, mount_pages: None };
        assert_eq!(room.bytes(), Some(10 << 20));
    }

    #[test]
    fn a_full_file_system_is_told_apart_from_a_full_pool_and_from_a_full_machine() {
        let room = |file_system, memory| FreeMemory::SmallPages { file_system, memory };
        let full_file_system = room(Some(10 << 20), Some(11 << 20));
        assert_eq!(full_file_system.bytes(), Some(10 << 20));
        insta::assert_snapshot!(full_file_system.no_space(NEEDED, Errno::NOSPC).at(Path::new("/dev/shm/x")), @"cannot allocate ring file /dev/shm/x: no space left on the file system: it needs 644 MiB, 10 MiB are free (No space left on device (os error 28)); free some, enlarge the file system (tmpfs: `mount -o remount,size=`), or choose smaller shifts");
        let full_machine = room(Some(12 << 20), Some(11 << 20));
        assert_eq!(full_machine.bytes(), Some(11 << 20));
        insta::assert_snapshot!(full_machine.no_space(NEEDED, Errno::NOSPC), @"cannot allocate ring file: not enough memory: it needs 644 MiB, 11 MiB are available (No space left on device (os error 28)); free some, raise the memory limit of the container, or choose smaller shifts");
        assert_eq!(room(None, None).bytes(), None);
        insta::assert_snapshot!(room(None, None).no_space(NEEDED, Errno::DQUOT), @"cannot allocate ring file: no space left: it needs 644 MiB (Disk quota exceeded (os error 122)); free some, or choose smaller shifts");
    }

    #[test]
    fn room_on_tmpfs_is_never_more_than_the_machine_has() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        let FreeMemory::SmallPages { memory: Some(memory), .. } = FreeMemory::now(file.as_fd(), None) else {
            panic!("a file on tmpfs lives in memory");
        };
        assert!(memory < 1 << 50);
        assert!(FreeMemory::now(file.as_fd(), None).bytes().is_some_and(|bytes| bytes < 1 << 50));
    }
}
