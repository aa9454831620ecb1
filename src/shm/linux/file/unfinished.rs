//! The common part of making a ring file and replacing a ring file: the mark of an unfinished file, the number of
//! tries, and the errors.

use std::fmt;
use std::path::Path;

use crate::shm::error::{ShmError, ShmErrorKind};

pub(in crate::shm::linux) const OPERATION: &str = "create ring file";

/// The sticky bit: the mark of unfinished files.
pub(in crate::shm::linux) const STICKY: u32 = 0o1000;
/// The largest number of attempts. An attempt fails if another process changes the same name at the same time.
pub(in crate::shm::linux) const ATTEMPTS: u32 = 100;

pub(in crate::shm::linux) fn already_owned(operation: &'static str, path: &Path, pid: Option<u32>) -> ShmError {
    let error =
        |found: fmt::Arguments<'_>| ShmError::new(ShmErrorKind::AlreadyOwned { pid }, operation, found).at(path);
    match pid {
        Some(pid) if pid == std::process::id() => error(format_args!("this process ({pid}) owns it already"))
            .mend("use the recorder that it has, or choose another name"),
        Some(pid) => error(format_args!("process {pid} owns it")).mend("stop that process, or choose another name"),
        None => error(format_args!("a process that cannot be seen from here owns it"))
            .mend("find it with `fuser` or in another container, or choose another name"),
    }
}

pub(in crate::shm::linux) fn too_much_traffic(path: &Path) -> ShmError {
    ShmError::new(ShmErrorKind::Io, OPERATION, "other processes keep changing the same name").at(path).mend("try again")
}
