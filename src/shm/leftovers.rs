//! Unfinished files that killed processes left.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Dir, Mode, OFlags, Stat, openat};

use super::create::{OPERATION, STICKY};
use super::identity::is_gone;
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
        let leftover = NamedPlace {
            directory: Arc::clone(&finished.directory),
            path: finished.path.with_file_name(name),
            name: name.to_os_string(),
            in_ring_directory: finished.in_ring_directory,
            remove_empty_directory: false,
        };
        remove_if_unfinished(&leftover, |stat| is_gone(pid) || is_old(stat));
    }
}

/// The pid in `<name>.~<pid>`.
fn leftover_pid(name: &OsStr, ring: &OsStr) -> Option<i32> {
    let digits = name.as_bytes().strip_prefix(ring.as_bytes())?.strip_prefix(b".~")?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Removes an unfinished file that nobody holds locked; says whether it did.
pub(super) fn remove_leftover(place: &NamedPlace) -> bool {
    remove_if_unfinished(place, |_| true)
}

/// The lock decides: who makes a file holds it from before the mode says "unfinished" until the file has its name. The process id in
/// the name, which may be a zombie's or a stranger's by now, is asked only about a file that is not even that far.
fn remove_if_unfinished(place: &NamedPlace, is_abandoned: impl FnOnce(&Stat) -> bool) -> bool {
    let Ok(Some((file, stat))) = open_existing(place, OPERATION) else {
        return false;
    };
    // Empty without the bit: its maker is before the second step, or died there.
    let is_unfinished = stat.st_mode & STICKY != 0 || (stat.st_size == 0 && is_abandoned(&stat));
    if !is_unfinished || try_lock(&file).is_err() {
        return false;
    }
    let id = FileId::of(&stat);
    let was_there = place.current() == Some(id);
    place.remove(id);
    was_there
}

/// Whether the file was made so long ago that its maker, who has to lock it next, must be dead. One who is not begins again.
fn is_old(stat: &Stat) -> bool {
    const SECONDS: u64 = 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    u64::try_from(stat.st_mtime).is_ok_and(|made| now.saturating_sub(made) > SECONDS)
}
