//! The process that writes a ring, as a process id of this process's pid namespace.
//!
//! A ring holds the process id of its writer in the writer's pid namespace. The ring may be hostile, so a process is
//! the writer only if two conditions hold:
//!
//! - The process has the ring mapped for writing. If this user may not see the mappings, the process must hold the
//!   ring's lock instead.
//! - The id, namespace and start time of the process are those in the ring.
//!
//! A ring of another implementation holds no process id. Its writer is the process that holds the ring's lock and has
//! the ring mapped for writing.

use super::process;
use crate::exit::{Exit, Failure};

use eventring::reader::Reader;
use eventring_capture::foreign::MappedFile;
use std::os::unix::fs::MetadataExt as _;

/// Returns the process that writes a ring, if it lives and if this user can find out which one it is.
pub(crate) fn holder(ring: &Reader) -> Option<u32> {
    if !may_be_written(ring) {
        return None;
    }
    let by_lock = ring.lock_owner_pid();
    let Some(writer) = ring.info().extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0) else {
        return by_lock.filter(|pid| has_mapped(*pid, ring).unwrap_or(false));
    };
    // The maps of other users' processes are not shown. All users see who has the lock.
    let is_it = |pid: &u32| writer.is_process(*pid) && has_mapped(*pid, ring).unwrap_or_else(|| by_lock == Some(*pid));
    let likely = by_lock.into_iter().chain([writer.pid]).find(is_it);
    // In the own namespace the process has the number that the ring names.
    likely.or_else(|| if writer.is_numbered_here() { None } else { process::all().find(is_it) })
}

/// Returns the process that writes a ring. `None` if nobody writes it.
///
/// # Errors
/// The ring may have a writer, and it is not known which process here it is.
pub(crate) fn known_holder(ring: &Reader) -> Result<Option<u32>, Failure> {
    match holder(ring) {
        None if may_be_written(ring) => {
            let name = ring.name().or(ring.path()).unwrap_or("the ring".as_ref()).display().to_string();
            Exit::NotFound.fail(format!(
                "{}: it is not known which process here writes it: the one that it names is in another pid namespace, or \
                 is not the writer, or this user may not look into it; run eventring as root outside of the container, \
                 or in the same container as the program",
                name
            ))
        }
        found => Ok(found),
    }
}

fn may_be_written(ring: &Reader) -> bool {
    ring.state().may_be_written()
}

/// Returns true if a process has a ring mapped for writing; `None` if this user may not look.
fn has_mapped(pid: u32, ring: &Reader) -> Option<bool> {
    let id = ring.file_id();
    // Some file systems name another device in the maps than they do when they are asked.
    let is_at = |path: &str| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| (found.dev(), found.ino()) == (id.device, id.inode))
    };
    let is_it = |mapped: &MappedFile| mapped.file == id || (mapped.file.inode == id.inode && is_at(&mapped.path));
    Some(MappedFile::list(pid)?.iter().any(|mapped| mapped.is_written && is_it(mapped)))
}
