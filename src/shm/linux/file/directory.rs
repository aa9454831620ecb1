//! The directories of rings with bare names.
//!
//! If the environment variable `EVENTRING_DIR` is set, it names the only directory. Otherwise rings are made in the
//! first of these directories that can be used, and readers search them in this order:
//! - `event-rings/` on a hugetlbfs mount with 2 MiB pages. It can be used if the pool of huge pages is not empty, this
//!   process may make files there, and nobody else may replace them.
//! - `/dev/shm/event-rings/`. Rings there are slower, without huge pages. The maker of such a ring gets a warning.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::super::memory::huge_pages::{HugePagePool, has_huge_pages, huge_page_mounts};
use super::super::system::paths;
use super::super::system::trust;
use crate::shm::error::{ShmError, ShmErrorKind};
use crate::shm::location::{DIRECTORY_VARIABLE, HugePageWarning, RingLocation, SUBDIRECTORY};
use crate::shm::name::RingName;

const FALLBACK: &str = "/dev/shm/event-rings";

/// The directories in which rings with bare names are made and found. The value describes one machine at one time.
#[derive(Clone, Debug)]
pub struct RingDirectories {
    /// The directory that replaces all others.
    only: Option<PathBuf>,
    mounts: Vec<PathBuf>,
    pool: HugePagePool,
    fallback: PathBuf,
}

impl RingDirectories {
    /// Returns the directories that the environment variable and the mounts of this machine give now.
    #[must_use]
    pub fn from_environment() -> Self {
        match std::env::var_os(DIRECTORY_VARIABLE).filter(|directory| !directory.is_empty()) {
            Some(directory) => Self::only(directory),
            // The unit tests of this crate never make a ring among those of the user. No file can be made here.
            None if cfg!(test) => Self::only("/dev/null/rings"),
            None => Self::of_machine(huge_page_mounts(), HugePagePool::of_this_machine(), PathBuf::from(FALLBACK)),
        }
    }

    /// Returns one directory, whatever the machine offers.
    #[must_use]
    pub fn only(directory: impl Into<PathBuf>) -> Self {
        Self {
            only: Some(directory.into()),
            mounts: Vec::new(),
            pool: HugePagePool::default(),
            fallback: PathBuf::from(FALLBACK),
        }
    }

    /// Returns the directories of a machine that has these mounts, this pool and this fallback directory.
    pub(in crate::shm::linux) fn of_machine(mounts: Vec<PathBuf>, pool: HugePagePool, fallback: PathBuf) -> Self {
        Self { only: None, mounts: mounts.into_iter().filter(|mount| has_huge_pages(mount)).collect(), pool, fallback }
    }

    /// Returns the directories that readers search, in the order of the search. They need not exist.
    #[must_use]
    pub fn for_reading(&self) -> Vec<PathBuf> {
        match &self.only {
            Some(directory) => vec![directory.clone()],
            None => (self.mounts.iter().map(|mount| mount.join(SUBDIRECTORY))).chain([self.fallback.clone()]).collect(),
        }
    }

    /// Returns the paths at which a reader looks for the ring `name`, in the order of the search.
    #[must_use]
    pub fn paths_for_reading(&self, name: &RingName) -> Vec<PathBuf> {
        match name {
            RingName::Path(path) => vec![path.clone()],
            RingName::Bare(name) => self.for_reading().into_iter().map(|directory| directory.join(name)).collect(),
        }
    }

    /// Returns the place at which a writer makes the ring `name`. If huge pages are missing, the place has a warning.
    #[must_use]
    pub fn location_for_writing(&self, name: &RingName) -> RingLocation {
        match name {
            RingName::Path(path) => RingLocation {
                path: path.clone(),
                in_ring_directory: false,
                // The further files of a recorder may be the last ones there.
                remove_empty_directory: path.parent() == Some(&self.fallback),
                warning: None,
            },
            RingName::Bare(name) => self.place_of_bare_name(name),
        }
    }

    fn place_of_bare_name(&self, name: &OsString) -> RingLocation {
        let place = |directory: &Path, is_fallback, warning| RingLocation {
            path: directory.join(name),
            in_ring_directory: true,
            remove_empty_directory: is_fallback,
            warning,
        };
        if let Some(directory) = &self.only {
            return place(directory, false, None);
        }
        let mut warning = HugePageWarning::NoHugePageMount;
        for mount in &self.mounts {
            if self.pool.is_empty() {
                warning = HugePageWarning::EmptyHugePagePool { mount: mount.clone() };
                break;
            }
            match check_usable(mount) {
                Ok(()) => return place(&mount.join(SUBDIRECTORY), false, None),
                Err(why) => warning = why,
            }
        }
        place(&self.fallback, true, Some(warning))
    }
}

/// Checks that this process may make files in the mount's ring directory, and that nobody else can replace them there;
/// or that it may make this directory if it is missing.
fn check_usable(mount: &Path) -> Result<(), HugePageWarning> {
    let subdirectory = mount.join(SUBDIRECTORY);
    let existing = paths::lstat(&subdirectory).ok();
    if let Some(stat) = &existing {
        trust::check_is_directory("use ring directory", stat, &subdirectory)
            .and_then(|()| trust::check_directory("use ring directory", stat, &subdirectory))
            .map_err(|refusal| HugePageWarning::DirectoryRefused { reason: refusal.to_string() })?;
    }
    let directory = if existing.is_some() { &subdirectory } else { mount };
    accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(|_| HugePageWarning::MountNotWritable { mount: mount.to_path_buf() })
}

/// Returns the error for a name that no directory has.
pub(in crate::shm::linux) fn not_found(name: &RingName, searched: &[PathBuf]) -> ShmError {
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
        let place = machine(&[], FULL_POOL).location_for_writing(&bare("x"));
        assert_eq!(place.path, Path::new("/dev/shm/event-rings/x"));
        assert_eq!(place.warning, Some(HugePageWarning::NoHugePageMount));
        assert!(place.in_ring_directory && place.remove_empty_directory);

        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().to_str().unwrap();
        let place = machine(&[mount], HugePagePool::default()).location_for_writing(&bare("x"));
        assert_eq!(place.path, Path::new("/dev/shm/event-rings/x"));
        assert_eq!(place.warning, Some(HugePageWarning::EmptyHugePagePool { mount: mount.into() }));

        let place = machine(&["/proc/self"], FULL_POOL).location_for_writing(&bare("x"));
        assert_eq!(place.warning, Some(HugePageWarning::MountNotWritable { mount: "/proc/self".into() }));
    }

    #[test]
    fn the_first_usable_mount_with_pages_is_taken_without_a_warning() {
        let directory = tempfile::tempdir().unwrap();
        let mount = directory.path().to_str().unwrap();
        let machine = machine(&["/proc/self", mount], FULL_POOL);
        let place = machine.location_for_writing(&bare("x"));
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
    fn a_directory_in_which_others_may_replace_rings_is_passed_over_with_a_warning() {
        use std::os::unix::fs::PermissionsExt as _;

        let mount = tempfile::tempdir().unwrap();
        let directory = mount.path().join(SUBDIRECTORY);
        let place = || machine(&[mount.path().to_str().unwrap()], FULL_POOL).location_for_writing(&bare("x"));
        std::fs::create_dir(&directory).unwrap();
        for (mode, is_used) in [(0o750, true), (0o775, false), (0o757, false), (0o1775, true), (0o1777, true)] {
            std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
            let place = place();
            assert_eq!(place.path.starts_with(&directory), is_used, "{mode:o}");
            assert_eq!(place.warning.is_none(), is_used, "{mode:o}");
            if let Some(warning) = place.warning {
                let warning = warning.to_string();
                assert!(warning.contains(directory.to_str().unwrap()) && warning.contains("may replace"), "{warning}");
                assert!(place.path.starts_with(FALLBACK));
            }
        }
        // A link is no ring directory, wherever it leads.
        std::fs::remove_dir(&directory).unwrap();
        std::os::unix::fs::symlink("/", &directory).unwrap();
        assert!(place().path.starts_with(FALLBACK));
        assert!(place().warning.is_some_and(|warning| warning.to_string().contains("it is a link or a file")));
    }

    #[test]
    fn a_path_is_used_as_written() {
        let machine = machine(&[], FULL_POOL);
        let place = machine.location_for_writing(&bare("./x"));
        assert_eq!(place.path, Path::new("./x"));
        assert!(!place.in_ring_directory && place.warning.is_none());
        assert_eq!(machine.paths_for_reading(&bare("./x")), [Path::new("./x")]);
        assert!(!place.remove_empty_directory);
        // The file is beside one that has a bare name.
        assert!(machine.location_for_writing(&bare(&format!("{FALLBACK}/x.now"))).remove_empty_directory);
    }

    #[test]
    fn one_given_directory_replaces_the_search() {
        let directories = RingDirectories::only("/some/where");
        assert_eq!(directories.location_for_writing(&bare("x")).path, Path::new("/some/where/x"));
        assert_eq!(directories.for_reading(), [Path::new("/some/where")]);
    }

    #[test]
    fn a_mount_that_is_not_hugetlbfs_is_no_mount() {
        let machine = RingDirectories::of_machine(vec!["/proc".into()], FULL_POOL, "/f".into());
        assert_eq!(machine.for_reading(), [Path::new("/f")]);
    }
}
