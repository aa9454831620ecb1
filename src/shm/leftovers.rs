//! Unfinished files that killed processes left.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::create::{OPERATION, STICKY};
use super::lock::{FileId, try_lock};
use super::owned::NamedPlace;
use super::stale::open_existing;

/// Removes what killed processes left of unfinished files for this name.
pub(super) fn remove_leftovers(finished: &NamedPlace) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Without the right to list the directory they stay.
    let Ok(entries) = openat(&finished.directory, ".", flags, Mode::empty()).and_then(Dir::new) else {
        return;
    };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(pid) = leftover_pid(name, &finished.name) else {
            continue;
        };
        let is_dead = Pid::from_raw(pid).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if is_dead && let Ok(directory) = finished.directory.try_clone() {
            remove_leftover(&NamedPlace {
                directory,
                path: finished.path.with_file_name(name),
                name: name.to_os_string(),
                in_ring_directory: finished.in_ring_directory,
                remove_empty_directory: false,
            });
        }
    }
}

/// The pid in `<name>.<pid>`.
fn leftover_pid(name: &OsStr, ring: &OsStr) -> Option<i32> {
    let digits = name.as_bytes().strip_prefix(ring.as_bytes())?.strip_prefix(b".")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Removes an unfinished file that nobody holds locked; says whether it did.
pub(super) fn remove_leftover(place: &NamedPlace) -> bool {
    let Ok(Some((file, stat))) = open_existing(place, OPERATION) else {
        return false;
    };
    // Empty without the bit: its maker died before the first step was complete.
    let is_unfinished = stat.st_mode & STICKY != 0 || stat.st_size == 0;
    if !is_unfinished || try_lock(&file).is_err() {
        return false;
    }
    let id = FileId::of(&stat);
    let was_there = place.current() == Some(id);
    place.remove(id);
    was_there
}
