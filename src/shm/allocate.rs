//! Giving a new file all of its memory at once, so that no later access can find none.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, fstatfs, ftruncate};
use rustix::io::{Errno, pwrite};
use rustix::process::{Resource, getrlimit};

use super::error::{ShmError, ShmErrorKind};
use super::huge_pages::HugePagePool;

const OPERATION: &str = "allocate ring file";

/// tmpfs undoes a whole `fallocate` when a signal arrives; with a profiler's timer running a large one would never end.
const STEP_BYTES: u64 = 64 << 20;

/// Sets the file's length to `bytes`, a multiple of its page size, and allocates all of it.
pub(super) fn allocate(
    file: BorrowedFd<'_>,
    bytes: u64,
    huge_page_bytes: Option<u64>,
    path: &Path,
) -> Result<(), ShmError> {
    if let Some(limit) = getrlimit(Resource::Fsize).current
        && bytes > limit
    {
        // Going on would raise SIGXFSZ, which kills.
        return Err(ShmError::new(
            ShmErrorKind::NoSpace,
            OPERATION,
            format!("it needs {}, the process may write files of {}", mebibytes(bytes), mebibytes(limit)),
        )
        .at(path)
        .mend("raise the limit (ulimit -f) or choose smaller shifts"));
    }
    let before = Free::now(file, huge_page_bytes);
    allocate_steps(file, bytes).map_err(|errno| match errno {
        Errno::NOSPC | Errno::NOMEM | Errno::DQUOT | Errno::FBIG => before.no_space(bytes, errno).at(path),
        errno => ShmError::from_errno(OPERATION, errno).at(path),
    })
}

fn allocate_steps(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    ftruncate(file, bytes)?;
    let mut offset = 0;
    while offset < bytes {
        let step = STEP_BYTES.min(bytes - offset);
        match fallocate(file, FallocateFlags::empty(), offset, step) {
            Ok(()) => offset += step,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, bytes),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// For file systems that cannot allocate otherwise.
fn write_zeros(file: BorrowedFd<'_>, bytes: u64) -> Result<(), Errno> {
    let zeros = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < bytes {
        let step = usize::try_from(bytes - offset).map_or(zeros.len(), |left| left.min(zeros.len()));
        match pwrite(file, &zeros[..step], offset) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => offset += written as u64,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// What was to be had before we began.
#[derive(Debug)]
enum Free {
    HugePages {
        page_bytes: u64,
        pool: HugePagePool,
        /// Of the mount's own limit; `None` without one.
        mount_pages: Option<u64>,
    },
    Bytes(Option<u64>),
}

impl Free {
    fn now(file: BorrowedFd<'_>, huge_page_bytes: Option<u64>) -> Self {
        let statfs = fstatfs(file).ok();
        match huge_page_bytes {
            Some(page_bytes) => Self::HugePages {
                page_bytes,
                pool: HugePagePool::of_this_machine(),
                // hugetlbfs without a size= option reports no blocks at all.
                mount_pages: statfs.filter(|s| s.f_blocks > 0).map(|s| s.f_bavail),
            },
            None => Self::Bytes(statfs.and_then(|s| {
                // tmpfs without a limit reports 0 of 0 blocks.
                (s.f_blocks > 0).then_some(())?;
                s.f_bavail.checked_mul(u64::try_from(s.f_bsize).ok()?)
            })),
        }
    }

    fn no_space(&self, bytes: u64, errno: Errno) -> ShmError {
        let error = |found: String| ShmError::new(ShmErrorKind::NoSpace, OPERATION, found).caused_by(errno);
        match *self {
            Self::HugePages { page_bytes, pool, mount_pages } => {
                let needed = bytes.div_ceil(page_bytes);
                let found = format!(
                    "no space left in the pool of huge pages: it needs {needed} pages of {} ({}), {} of the pool's {} are available",
                    mebibytes(page_bytes),
                    mebibytes(bytes),
                    pool.available,
                    pool.total
                );
                match mount_pages {
                    Some(pages) if pages < needed && needed <= pool.available => {
                        error(format!("no space left on its hugetlbfs mount: it needs {needed} pages, the mount's size= option leaves {pages}"))
                            .mend("mount it with a larger size=, or choose smaller shifts")
                    }
                    _ => error(found).mend(format!(
                        "enlarge the pool (`sysctl vm.nr_hugepages={}`, see /proc/sys/vm/nr_hugepages), choose smaller shifts, or give a path on a tmpfs",
                        pool.total + needed.saturating_sub(pool.available)
                    )),
                }
            }
            Self::Bytes(Some(free)) => error(format!(
                "no space left on the file system: it needs {}, {} are free",
                mebibytes(bytes),
                mebibytes(free)
            ))
            .mend("free some, enlarge the file system (tmpfs: `mount -o remount,size=`), or choose smaller shifts"),
            Self::Bytes(None) => error(format!("no memory left: it needs {}", mebibytes(bytes)))
                .mend("free some, raise the memory limit of the process or its container, or choose smaller shifts"),
        }
    }
}

/// `644 MiB`; odd sizes are rounded up, small ones given in bytes.
pub(super) fn mebibytes(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{bytes} bytes") } else { format!("{} MiB", bytes.div_ceil(1 << 20)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_is_named_with_the_way_to_enlarge_it() {
        let free = Free::HugePages {
            page_bytes: 2 << 20,
            pool: HugePagePool { total: 100, available: 12, overcommit: 0 },
            mount_pages: None,
        };
        insta::assert_snapshot!(free.no_space(644 << 20, Errno::NOSPC).at("/dev/hugepages/event-rings/x"), @"");
        let full_mount = Free::HugePages {
            page_bytes: 2 << 20,
            pool: HugePagePool { total: 1000, available: 900, overcommit: 0 },
            mount_pages: Some(3),
        };
        insta::assert_snapshot!(full_mount.no_space(644 << 20, Errno::NOSPC), @"");
    }

    #[test]
    fn a_full_file_system_is_told_apart_from_a_full_pool() {
        insta::assert_snapshot!(Free::Bytes(Some(10 << 20)).no_space(644 << 20, Errno::NOSPC).at("/dev/shm/x"), @"");
        insta::assert_snapshot!(Free::Bytes(None).no_space(644 << 20, Errno::NOMEM), @"");
    }

    #[test]
    fn every_byte_is_allocated_also_where_only_writing_helps() {
        use std::os::fd::AsFd;
        use std::os::unix::fs::MetadataExt;
        for allocate_it in [allocate_steps, |file: BorrowedFd<'_>, bytes| {
            ftruncate(file, bytes)?;
            write_zeros(file, bytes)
        }] {
            let file = tempfile::tempfile_in("/dev/shm").unwrap();
            allocate_it(file.as_fd(), 3 << 20).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), 3 << 20);
            assert!(metadata.blocks() * 512 >= 3 << 20);
        }
    }
}
