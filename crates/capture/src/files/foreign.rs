//! Files whose paths another process has chosen: files that the process has mapped, and files that a recording names.
//!
//! A path from another process may name:
//!
//! - a pipe or a device: opening it can block or have an effect
//! - a wrong file
//! - a file in a user's file system (FUSE), which may never answer

use eventring::files::FileId;
use eventring::internal::shm;
use eventring::internal::shm::is_own_or_roots;
use rustix::fs::{MemfdFlags, fstat, makedev, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::PathBuf;

/// A file that a process has mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedFile {
    /// The first address.
    pub begin: u64,
    /// The address after the last one.
    pub end: u64,
    /// The place in the file of the first address.
    pub offset: u64,
    /// The file, as the kernel numbers it there. Some file systems give files other devices when they are asked.
    pub file: FileId,
    /// The path as the process sees it; of a file without a name, what the kernel says instead.
    pub path: String,
    /// True if the mapping is shared and may be written.
    pub is_written: bool,
    /// True if it has code.
    pub is_code: bool,
}

impl MappedFile {
    /// Returns the files that a process has mapped, or `None` if this user may not look.
    pub fn list(process: u32) -> Option<Vec<Self>> {
        let text = shm::read_file(format!("/proc/{process}/maps")).ok()?;
        Some(text.split(|byte| *byte == b'\n').filter_map(Self::parse).collect())
    }

    /// Reads a line like `7f00-7f80 r-xp 00001000 fe:00 1234   /usr/lib/libc.so.6`.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(6, ' ');
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end) = words.next()?.split_once('-')?;
        let (rights, offset) = (words.next()?, number(words.next()?)?);
        let (major, minor) = words.next()?.split_once(':')?;
        let device = makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        let inode = words.next()?.parse().ok().filter(|inode| *inode != 0)?;
        let path = words.next()?.trim_start().to_owned();
        Some(Self {
            begin: number(begin)?,
            end: number(end)?,
            offset,
            file: FileId { device, inode },
            path,
            is_written: rights == "rw-s",
            is_code: rights.contains('x'),
        })
    }

    /// Opens the file, by the kernel's own link to it if this user may follow that, and otherwise by its path. Of a
    /// process of another user, no path is followed, and no file is opened on a file system that a user may serve.
    pub fn open(&self, process: u32) -> Option<File> {
        open_mapped(process, self.begin..self.end, &self.path, |file| self.is(file))
    }

    /// Returns true if an open file is the one that is mapped.
    pub fn is(&self, file: &File) -> bool {
        let Ok(stat) = fstat(file) else { return false };
        let says_another_device = || {
            let kind = mount_of(file, "self", |mount, _| mount.kind.to_owned());
            kind.is_some_and(|kind| ["btrfs", "bcachefs", "overlay"].contains(&&*kind))
        };
        stat.st_ino == self.file.inode && (stat.st_dev == self.file.device || says_another_device())
    }
}

/// Opens the file that a process has mapped at these addresses, as [`MappedFile::open`] does. `is_it` is asked about a
/// file that was found by its path.
pub fn open_mapped(
    process: u32,
    place: std::ops::Range<u64>,
    path: &str,
    is_it: impl Fn(&File) -> bool,
) -> Option<File> {
    let is_trusted = is_own_or_roots(process);
    let exact = PathBuf::from(format!("/proc/{process}/map_files/{:x}-{:x}", place.start, place.end));
    let check = |found: BorrowedFd<'_>| match is_trusted || is_of_this_system(found, process) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is on a file system that a user may serve")),
    };
    if let Ok(file) = shm::open_file_if(&exact, check) {
        return Some(file);
    }
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let paths = [format!("/proc/{process}/root{path}"), path.to_owned()];
    let paths = paths.iter().filter(|_| is_trusted && path.starts_with('/'));
    paths.filter_map(|path| shm::open_file(path.as_ref()).ok()).find(is_it)
}

/// Returns a copy of a file, in memory, that nobody else can change.
///
/// # Errors
/// The file has more bytes than `bytes_max`, or cannot be read, or there is no memory.
pub fn copy_in_memory(file: &File, bytes_max: u64) -> io::Result<File> {
    let bytes = file.metadata()?.len();
    if bytes > bytes_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has {bytes} bytes, expected {bytes_max}")));
    }
    let mut copy = File::from(memfd_create("eventring-copy", MemfdFlags::CLOEXEC)?);
    let again = shm::open_file(&shm::link_to(file))?;
    io::copy(&mut io::Read::take(again, bytes), &mut copy)?;
    Ok(copy)
}

/// Returns true if a file is on a file system that is in memory, or that is mounted where this process is and that no
/// program serves. The file system itself is not asked: it might not answer.
fn is_of_this_system(file: impl AsFd, process: u32) -> bool {
    let is_safe = mount_of(file, &process.to_string(), |its, here| match its.kind {
        "tmpfs" | "ramfs" | "hugetlbfs" => true,
        kind => !kind.starts_with("fuse") && here.lines().filter_map(Mount::parse).any(|it| it.device == its.device),
    });
    is_safe.unwrap_or(false)
}

/// Calls `look` with the mount on which a file is, as this process or the other one sees it, and with the mounts of this
/// process. Returns `None` if neither sees it.
fn mount_of<T>(file: impl AsFd, process: &str, look: impl FnOnce(&Mount<'_>, &str) -> T) -> Option<T> {
    let read = |path: String| shm::read_text(path).unwrap_or_default();
    let facts = read(format!("/proc/thread-self/fdinfo/{}", file.as_fd().as_raw_fd()));
    let mount = facts.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let (here, there) = (read("/proc/thread-self/mountinfo".into()), read(format!("/proc/{process}/mountinfo")));
    let mut mounts = here.lines().chain(there.lines()).filter_map(Mount::parse);
    Some(look(&mounts.find(|found| found.id == mount)?, &here))
}

/// A line of `mountinfo`.
struct Mount<'a> {
    id: &'a str,
    device: &'a str,
    kind: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = mount.split(' ');
        Some(Self { id: words.next()?, device: words.nth(1)?, kind: file_system.split(' ').next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use std::fs;

    #[test]
    fn a_line_of_maps_is_a_file_and_memory_without_a_file_is_none() {
        let file =
            MappedFile::parse(b"7f00-7f80 r-xp 00001000 fe:0a 1234                     /usr/lib/lib a.so").unwrap();
        assert_eq!((file.begin, file.end, file.offset), (0x7f00, 0x7f80, 0x1000));
        assert_eq!(file.file, FileId { device: makedev(0xfe, 0x0a), inode: 1234 });
        assert_eq!((&*file.path, file.is_code, file.is_written), ("/usr/lib/lib a.so", true, false));
        assert!(MappedFile::parse(b"7f80-7f90 rw-s 00000000 00:01 7 /dev/shm/x").unwrap().is_written);
        for other in [&b"7f80-7f90 rw-p 00000000 00:00 0 "[..], b"7f80-7f90 rw-p 00000000 00:00 0 [heap]", b"", b"x"] {
            assert_eq!(MappedFile::parse(other), None);
        }
    }

    #[test]
    fn a_file_of_this_process_is_opened_and_is_the_one_that_is_mapped() {
        let me = std::process::id();
        let program = fs::metadata("/proc/self/exe").unwrap();
        let is_program = |mapped: &&MappedFile| mapped.is_code && mapped.path.contains("eventring_capture");
        let mapped = MappedFile::list(me).unwrap().iter().find(is_program).cloned().unwrap();
        let opened = mapped.open(me).expect("it is there").metadata().unwrap();
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!((opened.dev(), opened.ino()), (program.dev(), program.ino()));
        // Without the kernel's link, it is found at its path.
        let unlinked = MappedFile { begin: 1, end: 2, ..mapped.clone() };
        assert_eq!(unlinked.open(me).expect("it is there").metadata().unwrap().ino(), program.ino());
        let other = MappedFile { begin: 1, end: 2, file: FileId { device: 1, inode: 1 }, ..mapped };
        assert!(other.open(me).is_none());
    }

    #[test]
    fn a_copy_does_not_change_with_its_file_and_has_a_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "content").unwrap();
        let opened = shm::open_file(file.path()).unwrap();
        let copy = copy_in_memory(&opened, 7).unwrap();
        fs::write(&file, "too much").unwrap();
        assert_eq!(io::read_to_string(shm::open_file(&shm::link_to(&copy)).unwrap()).unwrap(), "content");
        assert!(copy_in_memory(&opened, 7).is_err());
    }

    #[test]
    fn a_file_system_that_a_program_serves_is_not_of_this_system() {
        let program = open("/proc/self/exe", OFlags::PATH, Mode::empty()).unwrap();
        assert!(is_of_this_system(&program, std::process::id()));
        let line = "36 35 0:41 / /home/u/mnt rw,nosuid - fuse.sshfs u@h: rw,user_id=1000";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.id, mount.device, mount.kind), ("36", "0:41", "fuse.sshfs"));
    }
}
