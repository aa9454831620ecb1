//! A pool of huge pages, and a mount of hugetlbfs, for one test at a time.

use crate::mounted::{Mounted, mount, unmount};
use eventring::internal::shm::HugePagePool;
use std::fs::{self, File};
use std::io::Error;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The directory of the pool.
pub const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

fn count(file: &str) -> u64 {
    fs::read_to_string(Path::new(POOL).join(file)).unwrap().trim().parse().unwrap()
}

/// Huge pages that the kernel has given for a test. They are given back at the end.
pub struct HugePages {
    /// `None` at first, and after the end.
    mounted: Option<[Mounted; 2]>,
    _turn: File,
}

impl HugePages {
    /// Makes a pool of so many pages, and mounts hugetlbfs at a directory, as [`mount`] does. The children of this
    /// thread see no other mount of hugetlbfs, and another `/dev/shm`: without `EVENTRING_DIR` they make no ring among
    /// those of the user. One test has huge pages at a time, and only if nothing else on the machine uses them. The
    /// function needs root.
    pub fn with_pages(pages: u64, directory: &Path) -> Result<Self, Error> {
        let turn = File::open(POOL)?;
        // SAFETY: the call reads and writes no memory of the process.
        if unsafe { libc::flock(turn.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(Error::last_os_error());
        }
        if count("nr_hugepages") != 0 || count("nr_overcommit_hugepages") != 0 {
            return Err(Error::other("this machine uses its huge pages"));
        }
        let mut given = Self { mounted: None, _turn: turn };
        fs::write(Path::new(POOL).join("nr_hugepages"), pages.to_string())?;
        if HugePagePool::of_this_machine().available != pages {
            return Err(Error::other("the kernel does not give as many pages"));
        }
        let shm = mount(Path::new("/dev/shm"), "tmpfs", "size=64m")?;
        for line in fs::read_to_string("/proc/thread-self/mounts")?.lines() {
            if let [_, path, "hugetlbfs", ..] = line.split(' ').collect::<Vec<_>>()[..] {
                unmount(Path::new(path))?;
            }
        }
        given.mounted = Some([mount(directory, "hugetlbfs", "pagesize=2M")?, shm]);
        Ok(given)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        self.mounted = None;
        let _ = fs::write(Path::new(POOL).join("nr_hugepages"), "0");
    }
}
