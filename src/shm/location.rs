//! The location of a new ring file.

use std::fmt;
use std::path::PathBuf;

/// The environment variable that names the ring directory. If it is set, no other directory is searched or used.
pub const DIRECTORY_VARIABLE: &str = "EVENTRING_DIR";

/// The name of the ring directory on a hugetlbfs mount. The original C implementation uses the same name.
pub(super) const SUBDIRECTORY: &str = "event-rings";

/// The reason why a ring does not use huge pages. The ring works nevertheless, but the processor has more TLB misses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HugePageWarning {
    /// No mounted hugetlbfs with 2 MiB pages.
    NoHugePageMount,
    /// Empty pool of 2 MiB pages.
    EmptyHugePagePool {
        /// A mount that would be used if the pool had pages.
        mount: PathBuf,
    },
    /// A hugetlbfs mount whose pool has pages, but to which this user may not write.
    MountNotWritable {
        /// The mount.
        mount: PathBuf,
    },
    /// A ring directory on a hugetlbfs mount in which other users can replace rings.
    DirectoryRefused {
        /// The reason, with a remedy.
        reason: String,
    },
    /// Path of a ring that is not on hugetlbfs.
    SmallPages {
        /// The path of the ring.
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
            Self::DirectoryRefused { reason } => write!(f, "{reason}; until then the ring uses small pages elsewhere"),
            Self::SmallPages { path } => {
                write!(f, "{} is not on hugetlbfs, so the ring uses small pages", path.display())
            }
        }
    }
}

/// The path at which a ring file is to be made, and rules for making it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingLocation {
    /// The path of the file.
    pub path: PathBuf,
    /// True if the file is in a ring directory. If so, the directory is made if it is missing. A directory or file that
    /// belongs neither to the caller nor to root is refused, unless the options allow any owner.
    pub in_ring_directory: bool,
    /// True if the directory is removed after its last ring file. This is so for `/dev/shm/event-rings` only.
    pub remove_empty_directory: bool,
    /// A warning for the user.
    pub warning: Option<HugePageWarning>,
}
