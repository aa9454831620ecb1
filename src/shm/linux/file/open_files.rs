//! Files that are open in processes but are in no directory: removed ring files, and notes.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, FileType, MemfdFlags, OFlags, StatxFlags, memfd_create, statx};
use rustix::io::pread;
use rustix::process::geteuid;

use super::super::process::not_recording;
use super::super::system::paths;

/// A file that a process has open for writing, and that no directory has. All that is known of it comes from that
/// process, and may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The process, by its number in this pid namespace.
    pub pid: u32,
    /// The path by which the file can be opened while the process has it open: `/proc/PID/fd/N`.
    pub path: PathBuf,
    /// The path that the file had before it was removed. A file in memory has `/memfd:NAME`.
    pub was_at: PathBuf,
}

impl OpenFile {
    /// Returns the files that the process has open for writing and that no directory has, or those of all processes.
    /// Leaves out processes into which this user may not look, and programs that only read.
    #[must_use]
    pub fn list(pid: Option<u32>) -> Vec<Self> {
        pid.map_or_else(processes, |pid| vec![pid]).into_iter().flat_map(of_process).collect()
    }

    /// Opens the file for reading.
    ///
    /// # Errors
    /// Returns an error if the process has closed the file or has ended, or if this user may not open it.
    pub fn open(&self) -> io::Result<OwnedFd> {
        // The process may have put another file in its place meanwhile, so the opening must not wait for anything.
        Ok(paths::open(&self.path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?)
    }

    /// Returns the text of the file if it is a note that [`leave_note`](super::super::process::not_recording::leave_note) has left.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if self.was_at.to_str()?.strip_prefix("/memfd:")? != not_recording::NAME {
            return None;
        }
        let file = self.open().ok()?;
        let mut text = vec![0; not_recording::BYTES_MAX];
        let read = pread(&file, &mut text, 0).ok()?;
        Some(String::from_utf8_lossy(&text[..read]).into_owned())
    }
}

/// Returns the ids of all processes that the system shows.
fn processes() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns true if a process has no rights but those of this user or of root. The owner of `/proc/PID` does not say it:
/// a process that forbids core files shows root there.
#[must_use]
pub fn is_own_or_roots(pid: u32) -> bool {
    let status = paths::read_text(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let is_ours = |user: &str| user.parse().is_ok_and(|user: u32| user == 0 || user == geteuid().as_raw());
    users.is_some_and(|users| users.split_ascii_whitespace().all(is_ours))
}

fn of_process(pid: u32) -> Vec<OpenFile> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let is_own = is_own_or_roots(pid);
    let in_memory = LazyCell::new(|| memory_devices(pid));
    let mut seen = HashSet::new();
    let mut file = |path: PathBuf| {
        let target = path.read_link().ok()?;
        let was_at = PathBuf::from(target.to_str()?.strip_suffix(" (deleted)")?);
        // The mode of the link says for what the file is open. Files that are not regular are left out, because
        // opening a pipe or a device can have effects.
        let is_writable = path.symlink_metadata().ok()?.permissions().mode() & 0o200 != 0;
        // Another user may serve a file system (FUSE), which could keep this process waiting. So the file system is not
        // asked, and the file is used only if it is in memory.
        let stat = statx(CWD, &path, AtFlags::STATX_DONT_SYNC, StatxFlags::BASIC_STATS).ok()?;
        let device = (stat.stx_dev_major, stat.stx_dev_minor);
        let is_regular = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile;
        let is_meant = is_writable && is_regular && (is_own || in_memory.contains(&device));
        (is_meant && seen.insert((device, stat.stx_ino))).then_some(OpenFile { pid, path, was_at })
    };
    entries.flatten().filter_map(|entry| file(entry.path())).collect()
}

/// Returns the devices of the file systems in memory that the process sees, and of memfds.
fn memory_devices(pid: u32) -> HashSet<(u32, u32)> {
    let mounts = paths::read(format!("/proc/{pid}/mountinfo").as_ref()).unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let device = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
        let is_memory = ["tmpfs", "hugetlbfs"].contains(&file_system.split(' ').next()?);
        is_memory.then_some((major.parse().ok()?, minor.parse().ok()?))
    };
    let of_memfds = || {
        let memfd = memfd_create("eventring-device", MemfdFlags::CLOEXEC).ok()?;
        let stat = statx(memfd, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).ok()?;
        Some((stat.stx_dev_major, stat.stx_dev_minor))
    };
    mounts.lines().filter_map(device).chain(of_memfds()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_removed_file_is_found_if_it_is_open_for_writing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let held = || {
            let of_this = OpenFile::list(Some(std::process::id()));
            of_this.into_iter().filter(|file| file.was_at == path).count()
        };
        assert_eq!(held(), 0, "it has its name");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(held(), 1);
        assert!(OpenFile::list(None).iter().any(|file| file.was_at == path && file.note().is_none()));
        drop(writer);
        assert_eq!(held(), 0, "a reader has it open");
        drop(reader);
    }

    #[test]
    fn file_systems_in_memory_are_known_and_others_are_not_among_them() {
        let devices = memory_devices(std::process::id());
        let has = |file: &File| {
            let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS).unwrap();
            devices.contains(&(stat.stx_dev_major, stat.stx_dev_minor))
        };
        assert!(has(&memfd_create("x", MemfdFlags::CLOEXEC).unwrap().into()));
        assert!(has(&tempfile::tempfile_in("/dev/shm").unwrap()));
        assert!(!has(&File::open("/proc/self/status").unwrap()));
    }
}
