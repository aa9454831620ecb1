//! The check whether the owner of a file or directory is accepted in a ring directory.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType, Stat, accessat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgroups};

use crate::shm::error::{ShmError, ShmErrorKind};

/// Mode bits of a directory. `WORLD_WRITABLE`: every user may write to it. `GROUP_WRITABLE`: its group may write to it.
/// `STICKY`: only the owner of a file in it may delete the file.
const WORLD_WRITABLE: u32 = 0o002;
const GROUP_WRITABLE: u32 = 0o020;
const STICKY: u32 = 0o1000;

pub(in crate::shm::linux) fn is_ours_or_roots(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

fn is_of_our_groups(stat: &Stat) -> bool {
    stat.st_gid == getegid().as_raw()
        || getgroups().is_ok_and(|groups| groups.iter().any(|group| group.as_raw() == stat.st_gid))
}

fn stranger(operation: &'static str, stat: &Stat, path: &Path) -> ShmError {
    ShmError::new(
        ShmErrorKind::PermissionDenied,
        operation,
        format_args!("it belongs to user {}, we are user {}", stat.st_uid, geteuid().as_raw()),
    )
    .at(path)
    .mend(
        "set EVENTRING_DIR to a directory of your own, or give the ring's full path: a name with a `/` is used as written, \
         whoever owns it",
    )
}

/// Returns the error for a link or a file in the place of a ring directory.
pub(in crate::shm::linux) fn not_a_directory(operation: &'static str, path: &Path) -> ShmError {
    ShmError::new(ShmErrorKind::NotFound, operation, "it is a link or a file, not a directory")
        .at(path)
        .mend("remove it, or set EVENTRING_DIR to a directory")
}

/// Checks that this is a directory itself, and no link to one.
pub(in crate::shm::linux) fn check_is_directory(
    operation: &'static str,
    stat: &Stat,
    path: &Path,
) -> Result<(), ShmError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(()),
        _ => Err(not_a_directory(operation, path)),
    }
}

/// Checks that no other user can replace files in the directory. The directory must belong to this user or to root. If
/// its group or every user may write to it, it must have the sticky bit.
pub(in crate::shm::linux) fn check_directory(
    operation: &'static str,
    stat: &Stat,
    path: &Path,
) -> Result<(), ShmError> {
    for (bit, found, mend) in [
        (WORLD_WRITABLE, "everybody may replace files in it", "remove the write permission of others: `chmod o-w`"),
        (
            GROUP_WRITABLE,
            "its group may replace files in it",
            "remove the write permission of the group: `chmod g-w`; or let everybody remove his own files only: `chmod +t`",
        ),
    ] {
        if stat.st_mode & bit != 0 && stat.st_mode & STICKY == 0 {
            return Err(ShmError::new(ShmErrorKind::PermissionDenied, operation, found).at(path).mend(mend));
        }
    }
    check_ours(operation, stat, path)
}

/// Checks that this process may make files in the directory.
pub(in crate::shm::linux) fn check_writable(
    operation: &'static str,
    directory: &OwnedFd,
    stat: &Stat,
    path: &Path,
) -> Result<(), ShmError> {
    match accessat(directory, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => Err(ShmError::new(
            ShmErrorKind::PermissionDenied,
            operation,
            format_args!(
                "it belongs to user {}, and we, user {}, may not make files in it",
                stat.st_uid,
                geteuid().as_raw()
            ),
        )
        .at(path)
        .mend("set EVENTRING_DIR to a directory of your own, or give the ring's full path")),
        // Any other error will be reported when the file is made.
        _ => Ok(()),
    }
}

/// Checks that a directory or file belongs to this user or to root. Any other owner could replace or change a ring.
pub(in crate::shm::linux) fn check_ours(operation: &'static str, stat: &Stat, path: &Path) -> Result<(), ShmError> {
    if is_ours_or_roots(stat) { Ok(()) } else { Err(stranger(operation, stat, path)) }
}

/// Returns true if there is something at the path that belongs to another user.
pub(crate) fn is_of_another_user(path: &Path) -> bool {
    super::paths::lstat(path).is_ok_and(|stat| stat.st_uid != geteuid().as_raw())
}

/// Checks that a file belongs to this user. The caller wants to remove the file.
pub(in crate::shm::linux) fn check_own(operation: &'static str, stat: &Stat, path: &Path) -> Result<(), ShmError> {
    if stat.st_uid == geteuid().as_raw() {
        return Ok(());
    }
    let found = format_args!("it belongs to user {}, we are user {}", stat.st_uid, geteuid().as_raw());
    Err(ShmError::new(ShmErrorKind::PermissionDenied, operation, found).at(path).mend("let its owner remove it"))
}

/// Checks that a file belongs to this user, to root, or to a group of this user. The caller wants to read the file. (A
/// group is enough, because rings have mode 0640 so that their group can read them.)
pub(in crate::shm::linux) fn check_read_file(
    operation: &'static str,
    stat: &Stat,
    path: &Path,
) -> Result<(), ShmError> {
    if is_ours_or_roots(stat) || is_of_our_groups(stat) { Ok(()) } else { Err(stranger(operation, stat, path)) }
}

/// Checks that the file is a regular file. Links, directories, pipes and devices are refused.
pub(in crate::shm::linux) fn check_regular_file(
    operation: &'static str,
    stat: &Stat,
    path: &Path,
) -> Result<(), ShmError> {
    match instead_of_a_file(stat) {
        None => Ok(()),
        Some(found) => Err(ShmError::new(ShmErrorKind::NotARegularFile, operation, found)
            .at(path)
            .mend("expected a ring's file; give its own path, or another name")),
    }
}

/// Returns what is there instead of a regular file, or `None` if it is one.
pub(in crate::shm::linux) fn instead_of_a_file(stat: &Stat) -> Option<&'static str> {
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return None,
        FileType::Directory => "it is a directory",
        FileType::Symlink => "it is a symbolic link, which is not followed here",
        FileType::Fifo => "it is a pipe",
        FileType::Socket => "it is a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "it is a device",
        _ => "it is not a regular file",
    })
}
