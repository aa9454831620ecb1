//! Where a ring file is to be made.

use std::fmt;
use std::path::PathBuf;

/// The environment variable that replaces the search for a ring directory.
pub const DIRECTORY_VARIABLE: &str = "EVENTRING_DIR";

/// The directory of rings below a hugetlbfs mount point, as in the published system.
pub(super) const SUBDIRECTORY: &str = "event-rings";

/// Why a ring does not stand on huge pages. It works all the same, with more TLB misses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePageWarning {
    /// No hugetlbfs with 2 MiB pages is mounted.
    NoHugePageMount,
    /// The pool of 2 MiB pages has no pages.
    EmptyHugePagePool {
        /// A mount that would have been used.
        mount: PathBuf,
    },
    /// There are pages and a mount, but we may not write to it.
    MountNotWritable {
        /// The mount.
        mount: PathBuf,
    },
    /// The path was given, and it is not on hugetlbfs.
    SmallPages {
        /// Where the ring is.
        path: PathBuf,
    },
}

impl fmt::Display for HugePageWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHugePageMount => write!(
                f,
                "no hugetlbfs with 2 MiB pages is mounted, so the ring uses small pages; mount one: \
                 `mount -t hugetlbfs -o pagesize=2M,uid=$(id -u) none /dev/hugepages`"
            ),
            Self::EmptyHugePagePool { mount } => write!(
                f,
                "the pool of 2 MiB pages behind {} is empty, so the ring uses small pages; fill it: `sysctl vm.nr_hugepages=N`",
                mount.display()
            ),
            Self::MountNotWritable { mount } => write!(
                f,
                "the hugetlbfs mount {} is not writable for this user, so the ring uses small pages; \
                 make {SUBDIRECTORY}/ there and give it to the user",
                mount.display()
            ),
            Self::SmallPages { path } => {
                write!(f, "{} is not on hugetlbfs, so the ring uses small pages", path.display())
            }
        }
    }
}

/// Where exactly a ring shall be made, and by which rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingLocation {
    /// The file.
    pub path: PathBuf,
    /// Whether it is in a ring directory: that is made if it is missing, and files and directories of strangers are refused there.
    pub in_ring_directory: bool,
    /// Whether the directory is ours to remove once it is empty: only `/dev/shm/event-rings`, to leave nothing behind.
    pub remove_empty_directory: bool,
    /// What the user should know.
    pub warning: Option<HugePageWarning>,
}
