//! System calls about paths, each with one purpose.
//!
//! For each system call on a path, this module has one function that is not inlined. Otherwise each caller of rustix
//! would contain code that makes a C string. The module also reads files with less code than `std::fs`.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, unlinkat};
use rustix::io::Errno;

use crate::shm::decimal::digits;

/// Opens an existing file or directory. Never makes a file.
#[inline(never)]
pub(in crate::shm::linux) fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())
}

/// Returns the facts about the file at the path. Follows links.
#[inline(never)]
pub(in crate::shm::linux) fn stat(path: &Path) -> Result<Stat, Errno> {
    rustix::fs::stat(path)
}

/// Returns the facts about what is at the path. Does not follow a link that is there.
#[inline(never)]
pub(in crate::shm::linux) fn lstat(path: &Path) -> Result<Stat, Errno> {
    rustix::fs::lstat(path)
}

/// Makes a directory in a directory that exists.
#[inline(never)]
pub(in crate::shm::linux) fn make_directory(path: &Path, mode: u32) -> Result<(), Errno> {
    rustix::fs::mkdir(path, Mode::from_raw_mode(mode))
}

/// Makes a directory and its missing parents. The umask determines their mode.
pub(in crate::shm::linux) fn make_directories(path: &Path) -> Result<(), Errno> {
    let made = match (make_directory(path, 0o777), parent(path)) {
        (Err(Errno::NOENT), Some(parent)) => {
            make_directories(parent)?;
            make_directory(path, 0o777)
        }
        (made, _) => made,
    };
    // EXIST is no error here. If the existing file is not a directory, the next use of the path fails.
    if made == Err(Errno::EXIST) { Ok(()) } else { made }
}

/// Removes an empty directory.
#[inline(never)]
pub(in crate::shm::linux) fn remove_directory(path: &Path) -> Result<(), Errno> {
    unlinkat(CWD, path, AtFlags::REMOVEDIR)
}

/// Returns the parent directory of the path. Returns `None` if the path is only a file name.
pub(in crate::shm::linux) fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// Reads all bytes of a short file, such as a file of `/proc`.
#[inline(never)]
pub(in crate::shm::linux) fn read(path: &Path) -> Option<Vec<u8>> {
    let file = open(path, OFlags::RDONLY).ok()?;
    let mut bytes = Vec::new();
    loop {
        bytes.reserve(4096);
        match rustix::io::read(&file, spare_capacity(&mut bytes)) {
            Ok(0) => return Some(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Reads all of a short file, if it is text.
pub(in crate::shm::linux) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    String::from_utf8(read(path.as_ref())?).ok()
}

/// Returns field `n` of a line of a `/proc` file, counted from 0. Blanks separate the fields.
#[inline(never)]
pub(in crate::shm::linux) fn field(line: &str, n: usize) -> Option<&str> {
    line.split_ascii_whitespace().nth(n)
}

/// Reads a short file that holds one number.
pub(in crate::shm::linux) fn read_number(path: &Path) -> Option<u64> {
    digits(read(path)?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_whatever_its_length() {
        let directory = tempfile::tempdir().unwrap();
        for bytes in [0, 1, 4095, 4096, 4097, 100_000] {
            let path = directory.path().join("file");
            let content: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            std::fs::write(&path, &content).unwrap();
            assert_eq!(read(&path).unwrap(), content);
        }
        assert_eq!(read(&directory.path().join("nothing")), None);
        // This path is so long that rustix allocates memory for it. The path leads to a directory, which `read` cannot
        // read.
        assert_eq!(read(&directory.path().join("./".repeat(200))), None);
    }

    #[test]
    fn a_number_may_have_blanks_around_it_and_nothing_else() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, number) in [("12\n", Some(12)), (" 7", Some(7)), ("max\n", None), ("", None), ("1 2", None)] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(read_number(file.path()), number, "{text:?}");
        }
    }

    #[test]
    fn missing_directories_are_made_and_what_is_there_stays() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("a/b/c");
        make_directories(&deep).unwrap();
        assert!(deep.is_dir());
        make_directories(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        assert_eq!(make_directories(&deep.join("file/d")), Err(Errno::NOTDIR));
        assert_eq!(remove_directory(&deep), Err(Errno::NOTEMPTY));
        std::fs::remove_file(deep.join("file")).unwrap();
        remove_directory(&deep).unwrap();
        assert_eq!(stat(&deep).unwrap_err(), Errno::NOENT);
    }
}
