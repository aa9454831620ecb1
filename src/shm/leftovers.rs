//! Unfinished files that killed processes left.

use std::ffi::CStr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Mode, OFlags, RawDir, Stat, fstat, openat};

use super::create::{OPERATION, STICKY};
use super::identity::is_gone;
use super::lock::{FileId, try_lock, unlock};
use super::owned::NamedPlace;
use super::paths;
use super::stale::open_existing;

/// Removes what killed processes left of unfinished files for this name.
pub(super) fn remove_leftovers(finished: &NamedPlace) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Without the right to list the directory they stay.
    let Ok(directory) = openat(&finished.directory, c".", flags, Mode::empty()) else {
        return;
    };
    let mut buffer = Vec::with_capacity(8192);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let parent = finished.path.parent().unwrap_or(Path::new(""));
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = leftover_pid(entry.file_name(), &finished.name) else {
            continue;
        };
        let name = entry.file_name().to_owned();
        let leftover = NamedPlace::new(&finished.directory, parent, name, finished.in_ring_directory);
        remove_if_unfinished(&leftover, |stat| is_gone(pid) || is_old(stat));
    }
}

/// The pid in `<name>.~<pid>`.
fn leftover_pid(name: &CStr, ring: &CStr) -> Option<i32> {
    let digits = name.to_bytes().strip_prefix(ring.to_bytes())?.strip_prefix(b".~")?;
    paths::digits(digits)?.try_into().ok()
}

/// Removes an unfinished file that nobody holds locked; says whether it did.
pub(super) fn remove_leftover(place: &NamedPlace) -> bool {
    remove_if_unfinished(place, |_| true)
}

/// The lock decides: who makes a file holds it from before the mode says "unfinished" until after it has stopped to say so. The process id in the
/// name, which may be a zombie's or a stranger's by now, is asked only about a file that is not even that far.
fn remove_if_unfinished(place: &NamedPlace, is_abandoned: impl FnOnce(&Stat) -> bool) -> bool {
    let Ok(Some((file, stat))) = open_existing(place, OPERATION) else {
        return false;
    };
    let is_marked = |stat: &Stat| stat.st_mode & STICKY != 0;
    // Empty without the bit: its maker is before the second step, or died there.
    let is_empty = |stat: &Stat| stat.st_size == 0;
    if !(is_marked(&stat) || (is_empty(&stat) && is_abandoned(&stat))) || try_lock(&file).is_err() {
        return false;
    }
    let id = FileId::of(&stat);
    // Asked again under the lock: until we had it, its maker could go on.
    let is_still = place.current() == Some(id) && fstat(&file).is_ok_and(|stat| is_marked(&stat) || is_empty(&stat));
    if is_still {
        place.remove(id);
    }
    unlock(&file);
    is_still
}

/// Whether the file was made so long ago that its maker, who has to lock it next, must be dead. One who is not begins again.
fn is_old(stat: &Stat) -> bool {
    const SECONDS: u64 = 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    u64::try_from(stat.st_mtime).is_ok_and(|made| now.saturating_sub(made) > SECONDS)
}
