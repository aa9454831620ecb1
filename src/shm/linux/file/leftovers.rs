//! The files that dead processes have left in the directory of a ring. Such files are unfinished files, and the files
//! of the ring's shards.

use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Stat, fstat};

use super::super::system::trust;
use super::super::writer::identity::is_gone;
use super::open::RingFile;
use super::owned::DirectoryEntry;
use super::replacer;
use super::stale::{StaleFile, open_existing};
use super::unfinished::{OPERATION, STICKY};
use crate::shm::decimal::digits;
use crate::shm::error::ShmError;

/// Removes files that killed processes have left: unfinished files of the ring `finished`, and the lock file of a
/// replacer.
pub(in crate::shm::linux) fn remove_leftovers(finished: &DirectoryEntry) {
    finished.for_each_name_beside(|name| {
        let Some(rest) = behind(name, &finished.name) else { return };
        if let Some(pid) = leftover_pid(rest) {
            remove_abandoned(&Arc::new(finished.beside(name.to_owned())), pid);
        } else if rest == replacer::SUFFIX {
            remove_leftover(&Arc::new(finished.beside(name.to_owned())));
        }
    });
}

/// Removes the shard files `<path>.<n>` (*n* from 1) that dead owners of `path` have left. Also removes unfinished
/// files of these names.
///
/// A shard file is removed only if it belongs to this user and has no owner, and if `is_part`, called with *n* and the
/// file, returns true. The caller must own `path`.
pub(crate) fn remove_dead_parts(path: &Path, is_part: impl Fn(u64, &RingFile) -> bool) {
    let Ok(whole) = DirectoryEntry::from_path(path) else { return };
    whole.for_each_name_beside(|name| {
        let Some(rest) = behind(name, &whole.name).and_then(|rest| rest.strip_prefix(b".")) else { return };
        let place = Arc::new(whole.beside(name.to_owned()));
        if let Some(index) = part_index(rest) {
            remove_dead_part(&place, |file| is_part(index, file));
        } else if let Some(at) = rest.iter().position(|byte| *byte == b'.')
            && part_index(&rest[..at]).is_some()
            && let Some(pid) = leftover_pid(&rest[at..])
        {
            remove_abandoned(&place, pid);
        }
    });
}

/// Removes the file at `path` if it belongs to this user and has no owner, and if `is_meant` returns true.
pub(crate) fn remove_dead_file(path: &Path, is_meant: impl Fn(&RingFile) -> bool) {
    if let Ok(place) = DirectoryEntry::from_path(path) {
        remove_dead_part(&Arc::new(place), is_meant);
    }
}

fn remove_dead_part(place: &Arc<DirectoryEntry>, is_part: impl Fn(&RingFile) -> bool) {
    let Ok(Some((file, _))) = open_existing(place, OPERATION) else { return };
    // The file of a dead owner does not change any more, so `is_part` may read the file before it is locked.
    if let Ok(file) = RingFile::from_descriptor(file)
        && is_part(&file)
        && let Ok(Some(stale)) = StaleFile::lock_own_at(place)
        && stale.id == file.id()
    {
        stale.remove();
    }
}

/// Returns the rest of `name` after the ring's name. Returns `None` if `name` does not begin with the ring's name.
fn behind<'a>(name: &'a CStr, ring: &CStr) -> Option<&'a [u8]> {
    name.to_bytes().strip_prefix(ring.to_bytes())
}

/// Returns the number that `text` consists of. Returns `None` if `text` is not a decimal number, or begins with 0.
fn part_index(text: &[u8]) -> Option<u64> {
    if text.starts_with(b"0") { None } else { digits(text) }
}

/// Returns the process id if the text is the ending `.~<pid>` of a temporary name. Otherwise returns `None`.
fn leftover_pid(behind_name: &[u8]) -> Option<i32> {
    digits(behind_name.strip_prefix(b".~")?)?.try_into().ok()
}

/// Removes the file at `place` if it is unfinished and no process has locked it. Returns true if it was removed.
pub(in crate::shm::linux) fn remove_leftover(place: &Arc<DirectoryEntry>) -> bool {
    lock_if_unfinished(place, |_| true).map(StaleFile::remove).is_some()
}

/// Removes the file at `place` if it is unfinished and its maker, the process `pid`, has died. An old file that is
/// still empty is removed even if a process `pid` lives.
fn remove_abandoned(place: &Arc<DirectoryEntry>, pid: i32) {
    let _ = lock_if_unfinished(place, |stat| is_gone(pid) || is_old(stat)).map(StaleFile::remove);
}

impl StaleFile {
    /// Locks the file at `path` if a dead process of this user has left it. The file must be an unfinished ring file
    /// (`<name>.~<pid>`) or the lock file of a replacer (`<name>.~lock`). Returns `None` if the file is neither of
    /// these, or if its maker lives.
    ///
    /// # Errors
    /// The file cannot be opened, or is another user's.
    pub fn lock_unfinished(path: impl AsRef<Path>) -> Result<Option<Self>, ShmError> {
        const OPERATION: &str = "remove unfinished ring file";
        let path = path.as_ref();
        let Ok(place) = DirectoryEntry::from_path(path).map(Arc::new) else { return Ok(None) };
        let name = place.name.to_bytes();
        let pid = name.iter().rposition(|byte| *byte == b'.').and_then(|at| leftover_pid(&name[at..]));
        if pid.is_none() && !name.ends_with(replacer::SUFFIX) {
            return Ok(None);
        }
        let Some((_, stat)) = open_existing(&place, OPERATION)? else { return Ok(None) };
        if !is_unfinished(&stat) {
            return Ok(None);
        }
        trust::check_own(OPERATION, &stat, path)?;
        Ok(lock_if_unfinished(&place, |stat| pid.is_none_or(is_gone) || is_old(stat)))
    }
}

fn is_marked(stat: &Stat) -> bool {
    stat.st_mode & STICKY != 0
}

/// Returns true if the file has the mark of unfinished files (the sticky bit), or is empty. A new file is empty until
/// its maker has locked and marked it. If the maker dies before that, the file stays empty.
fn is_unfinished(stat: &Stat) -> bool {
    is_marked(stat) || stat.st_size == 0
}

/// Locks the file at `place` if it is unfinished and its maker has died. Otherwise returns `None`.
///
/// If the file has the mark, the lock shows whether the maker lives: a maker holds the lock as long as its file has the
/// mark. The process id in the name proves less, because the id may belong to a zombie or to another process by now.
///
/// If the file has no mark, its maker may be alive and may not have taken the lock yet. In this case `is_abandoned`
/// must confirm that the maker has died.
fn lock_if_unfinished(place: &Arc<DirectoryEntry>, is_abandoned: impl FnOnce(&Stat) -> bool) -> Option<StaleFile> {
    let (file, stat) = open_existing(place, OPERATION).ok()??;
    if !(is_marked(&stat) || (is_unfinished(&stat) && is_abandoned(&stat))) {
        return None;
    }
    let locked = StaleFile::try_lock(place, file, &stat, OPERATION).ok()?;
    // The mark is checked again under the lock, because the maker may have finished the file before we locked it.
    let is_still = fstat(locked.descriptor()).is_ok_and(|stat| is_unfinished(&stat));
    (is_still && place.current() == Some(locked.id)).then_some(locked)
}

/// Returns true if the file is more than a minute old. A living maker locks its file immediately, so the maker of an
/// old file without a lock is probably dead. If the maker lives, no harm is done: it notices that its file was removed,
/// and begins again.
fn is_old(stat: &Stat) -> bool {
    const SECONDS: u64 = 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    u64::try_from(stat.st_mtime).is_ok_and(|made| now.saturating_sub(made) > SECONDS)
}
