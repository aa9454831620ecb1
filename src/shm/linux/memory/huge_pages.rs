//! The pool of 2 MiB huge pages, and the mounts that have them.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::super::system::page_size::{HUGE_PAGE_BYTES, huge_page_bytes};
use super::super::system::paths;
use super::meminfo::meminfo_field;

/// The kernel's pool of 2 MiB pages. All numbers count pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugePagePool {
    /// The number of pages in the pool.
    pub total: u64,
    /// The number of pages that are neither used nor reserved.
    pub available: u64,
    /// The number of pages that the kernel may add to the pool on demand.
    pub overcommit: u64,
}

impl HugePagePool {
    /// Asks the kernel how many pages the pool has. If the kernel does not show the pool, it counts as empty.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let count = |file: &str| -> Option<u64> {
            paths::read_number(&Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB").join(file))
        };
        match count("nr_hugepages") {
            Some(total) => Self {
                total,
                available: count("free_hugepages").unwrap_or(0).saturating_sub(count("resv_hugepages").unwrap_or(0)),
                overcommit: count("nr_overcommit_hugepages").unwrap_or(0),
            },
            None => paths::read_text("/proc/meminfo").map(|text| Self::from_meminfo(&text)).unwrap_or_default(),
        }
    }

    /// Reads the pool from `/proc/meminfo`. This file shows only the pool of the default page size. In some containers
    /// it is the only file that shows a pool.
    fn from_meminfo(text: &str) -> Self {
        let field = |name: &str| meminfo_field(text, name).unwrap_or(0);
        if field("Hugepagesize") != HUGE_PAGE_BYTES as u64 / 1024 {
            return Self::default();
        }
        Self {
            total: field("HugePages_Total"),
            available: field("HugePages_Free").saturating_sub(field("HugePages_Rsvd")),
            overcommit: 0,
        }
    }

    /// Returns true if no page can ever come from the pool.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0 && self.overcommit == 0
    }
}

/// Returns the mount points of hugetlbfs with 2 MiB pages, as the calling thread sees them. They have the order of the
/// kernel's list.
#[must_use]
pub fn huge_page_mounts() -> Vec<PathBuf> {
    paths::read(Path::new("/proc/thread-self/mountinfo")).map(|text| parse_mountinfo(&text)).unwrap_or_default()
}

/// Reads the lines of a `mountinfo` file. The fields of a line are: id, parent, device, root, mount point, options,
/// optional fields, `-`, type, source, super options.
fn parse_mountinfo(text: &[u8]) -> Vec<PathBuf> {
    let mut mounts = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b' ');
        let Some(mount_point) = fields.nth(4) else { continue };
        if !fields.any(|field| field == b"-") || fields.next() != Some(b"hugetlbfs") {
            continue;
        }
        let options = fields.nth(1).unwrap_or_default();
        let has_other_pages = options
            .split(|&byte| byte == b',')
            .filter_map(|option| option.strip_prefix(b"pagesize="))
            .any(|size| !matches!(size, b"2M" | b"2048K" | b"2097152"));
        if !has_other_pages {
            mounts.push(unescape(mount_point));
        }
    }
    mounts
}

/// Replaces the octal escapes by which the kernel writes blanks, tabs, newlines and backslashes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns true if the directory is on hugetlbfs with 2 MiB pages now. The mount point of a hugetlbfs may lead to
/// another file system now, because a later mount can cover it.
pub(in crate::shm::linux) fn has_huge_pages(directory: &Path) -> bool {
    use rustix::fs::OFlags;
    paths::open(directory, OFlags::PATH | OFlags::DIRECTORY).and_then(|directory| huge_page_bytes(directory.as_fd()))
        == Ok(Some(HUGE_PAGE_BYTES as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_two_mebibyte_pages_are_found_in_order() {
        let text = br"22 1 0:20 / /proc rw shared:5 - proc proc rw
30 22 0:40 / /dev/hugepages rw,relatime shared:16 - hugetlbfs hugetlbfs rw,pagesize=2M
31 22 0:41 / /mnt/big rw,relatime - hugetlbfs none rw,pagesize=1024M
32 22 0:42 / /mnt/with\040blank\134 rw - hugetlbfs none rw,gid=5,pagesize=2M,size=4194304
33 22 0:43 / /mnt/old rw - hugetlbfs none rw
34 22 0:44 / /hugetlbfs rw - tmpfs hugetlbfs rw,pagesize=2M
broken line
";
        assert_eq!(parse_mountinfo(text), ["/dev/hugepages", "/mnt/with blank\\", "/mnt/old"].map(PathBuf::from));
    }

    #[test]
    fn meminfo_counts_only_pages_of_our_size() {
        let text = "HugePages_Total:      10\nHugePages_Free:        8\nHugePages_Rsvd:        3\nHugepagesize:       2048 kB\n";
        let pool = HugePagePool::from_meminfo(text);
        assert_eq!((pool.total, pool.available), (10, 5));
        assert!(!pool.is_empty());
        assert!(HugePagePool::from_meminfo(&text.replace("2048", "1048576")).is_empty());
    }

    #[test]
    fn a_directory_on_another_file_system_has_no_huge_pages() {
        assert!(!has_huge_pages(Path::new("/proc")));
        assert!(!has_huge_pages(Path::new("/does/not/exist")));
    }
}
