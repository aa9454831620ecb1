//! Where a ring with a bare name lives.
//!
//! In this order: the directory that the environment variable `EVENTRING_DIR` names and no other; else `event-rings/` on a hugetlbfs mount with 2 MiB
//! pages that has pages and lets us write; else `/dev/shm/event-rings/`, with a warning, because huge pages only make a ring faster. Readers look in
//! the same places in the same order.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};

use super::error::{ShmError, ShmErrorKind};
use super::huge_pages::{HugePagePool, has_huge_pages, huge_page_mounts};
use super::name::RingName;
use super::paths;

/// The environment variable that replaces the search for a ring directory.
pub const DIRECTORY_VARIABLE: &str = "EVENTRING_DIR";

/// The directory of rings below a hugetlbfs mount point, as in the published system.
const SUBDIRECTORY: &str = "event-rings";

const FALLBACK: &str = "/dev/shm/event-rings";

/// Why a ring does not stand on huge pages. It works all the same, with more TLB misses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceWarning {
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

impl fmt::Display for PlaceWarning {
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
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Whether it is in a ring directory: that is made if it is missing, and files and directories of strangers are refused there.
    pub in_ring_directory: bool,
    /// Whether the directory is ours to remove once it is empty: only `/dev/shm/event-rings`, to leave nothing behind.
    pub remove_empty_directory: bool,
    /// What the user should know.
    pub warning: Option<PlaceWarning>,
}

/// The directories in which rings with bare names are made and found.
#[derive(Clone, Debug)]
pub struct RingDirectories {
    /// Replaces all others.
    only: Option<PathBuf>,
    mounts: Vec<PathBuf>,
    pool: HugePagePool,
    fallback: PathBuf,
}

impl RingDirectories {
    /// What the environment and the machine offer now.
    #[must_use]
    pub fn from_environment() -> Self {
        match std::env::var_os(DIRECTORY_VARIABLE).filter(|directory| !directory.is_empty()) {
            Some(directory) => Self::only(directory),
            None => Self::of_machine(huge_page_mounts(), HugePagePool::of_this_machine(), PathBuf::from(FALLBACK)),
        }
    }

    /// One directory, whatever the machine offers.
    #[must_use]
    pub fn only(directory: impl Into<PathBuf>) -> Self {
        Self {
            only: Some(directory.into()),
            mounts: Vec::new(),
            pool: HugePagePool::default(),
            fallback: PathBuf::from(FALLBACK),
        }
    }

    /// With the machine's mounts, pool and fallback given.
    pub(super) fn of_machine(mounts: Vec<PathBuf>, pool: HugePagePool, fallback: PathBuf) -> Self {
        Self { only: None, mounts: mounts.into_iter().filter(|mount| has_huge_pages(mount)).collect(), pool, fallback }
    }

    /// The directories that readers search, best first. They need not exist.
    #[must_use]
    pub fn for_reading(&self) -> Vec<PathBuf> {
        match &self.only {
            Some(directory) => vec![directory.clone()],
            None => (self.mounts.iter().map(|mount| mount.join(SUBDIRECTORY))).chain([self.fallback.clone()]).collect(),
        }
    }

    /// The files that `name` may mean to a reader, best first.
    #[must_use]
    pub fn paths_for_reading(&self, name: &RingName) -> Vec<PathBuf> {
        match name {
            RingName::Path(path) => vec![path.clone()],
            RingName::Bare(name) => self.for_reading().into_iter().map(|directory| directory.join(name)).collect(),
        }
    }

    /// Where a writer makes the ring `name`. Lack of huge pages is a warning, never an error.
    #[must_use]
    pub fn place_for_writing(&self, name: &RingName) -> Place {
        match name {
            RingName::Path(path) => {
                Place { path: path.clone(), in_ring_directory: false, remove_empty_directory: false, warning: None }
            }
            RingName::Bare(name) => self.place_of_bare_name(name),
        }
    }

    fn place_of_bare_name(&self, name: &OsString) -> Place {
        let place = |directory: &Path, is_fallback, warning| Place {
            path: directory.join(name),
            in_ring_directory: true,
            remove_empty_directory: is_fallback,
            warning,
        };
        if let Some(directory) = &self.only {
            return place(directory, false, None);
        }
        let mut warning = PlaceWarning::NoHugePageMount;
        for mount in &self.mounts {
            if self.pool.is_empty() {
                warning = PlaceWarning::EmptyHugePagePool { mount: mount.clone() };
                break;
            }
            if is_usable(mount) {
                return place(&mount.join(SUBDIRECTORY), false, None);
            }
            warning = PlaceWarning::MountNotWritable { mount: mount.clone() };
        }
        place(&self.fallback, true, Some(warning))
    }
}

/// Whether we may make files in the mount's ring directory, or make that directory.
fn is_usable(mount: &Path) -> bool {
    let subdirectory = mount.join(SUBDIRECTORY);
    let directory =
        if paths::open(&subdirectory, OFlags::PATH | OFlags::DIRECTORY).is_ok() { &subdirectory } else { mount };
    accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// No ring of that name in any of the directories.
pub(super) fn not_found(name: &RingName, searched: &[PathBuf]) -> ShmError {
    let searched: Vec<_> = searched.iter().map(|path| path.display().to_string()).collect();
    ShmError::new(ShmErrorKind::NotFound, "find ring", format_args!("there is no {}", searched.join(" and no ")))
        .at(Path::new(name.as_os_str()))
        .mend("start the program that records it, or check the name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(name: &str) -> RingName {
        RingName::new(name).unwrap()
    }

    const FULL_POOL: HugePagePool = HugePagePool { total: 8, available: 8, overcommit: 0 };

    fn machine(mounts: &[&str], pool: HugePagePool) -> RingDirectories {
        RingDirectories {
            only: None,
            mounts: mounts.iter().map(PathBuf::from).collect(),
            pool,
            fallback: PathBuf::from(FALLBACK),
        }
    }

    #[test]
    fn without_huge_pages_a_bare_name_falls_back_with_a_warning() {
        let place = machine(&[], FULL_POOL).place_for_writing(&bare("x"));
        assert_eq!(place.path, Path::new("/dev/shm/event-rings/x"));
        assert_eq!(place.warning, Some(PlaceWarning::NoHugePageMount));
        assert!(place.in_ring_directory && place.remove_empty_directory);

        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().to_str().unwrap();
        let place = machine(&[mount], HugePagePool::default()).place_for_writing(&bare("x"));
        assert_eq!(place.path, Path::new("/dev/shm/event-rings/x"));
        assert_eq!(place.warning, Some(PlaceWarning::EmptyHugePagePool { mount: mount.into() }));

        let place = machine(&["/proc/self"], FULL_POOL).place_for_writing(&bare("x"));
        assert_eq!(place.warning, Some(PlaceWarning::MountNotWritable { mount: "/proc/self".into() }));
    }

    #[test]
    fn the_first_usable_mount_with_pages_is_taken_without_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().to_str().unwrap();
        let machine = machine(&["/proc/self", mount], FULL_POOL);
        let place = machine.place_for_writing(&bare("x"));
        assert_eq!(place.path, directory.path().join("event-rings/x"));
        assert_eq!(place.warning, None);
        assert!(!place.remove_empty_directory);
        assert_eq!(
            machine.paths_for_reading(&bare("x")),
            [
                Path::new("/proc/self/event-rings/x"),
                &directory.path().join("event-rings/x"),
                Path::new("/dev/shm/event-rings/x")
            ]
        );
    }

    #[test]
    fn a_path_is_used_as_written() {
        let machine = machine(&[], FULL_POOL);
        let place = machine.place_for_writing(&bare("./x"));
        assert_eq!(place.path, Path::new("./x"));
        assert!(!place.in_ring_directory && place.warning.is_none());
        assert_eq!(machine.paths_for_reading(&bare("./x")), [Path::new("./x")]);
    }

    #[test]
    fn one_given_directory_replaces_the_search() {
        let directories = RingDirectories::only("/some/where");
        assert_eq!(directories.place_for_writing(&bare("x")).path, Path::new("/some/where/x"));
        assert_eq!(directories.for_reading(), [Path::new("/some/where")]);
    }

    #[test]
    fn a_mount_that_is_not_hugetlbfs_is_no_mount() {
        let machine = RingDirectories::of_machine(vec!["/proc".into()], FULL_POOL, "/f".into());
        assert_eq!(machine.for_reading(), [Path::new("/f")]);
    }
}
