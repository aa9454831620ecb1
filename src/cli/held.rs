//! What running programs hold open without a name: notes of those that record nothing.

use eventring::__internals::shm::HeldFile;
use std::os::unix::fs::MetadataExt as _;

/// Returns the notes of programs that record nothing: the process and the text, each note once.
pub(super) fn notes() -> Vec<(u32, String)> {
    let mut notes: Vec<(u64, u32, String)> = HeldFile::of(None)
        .iter()
        .filter_map(|file| Some((file.path.metadata().ok()?.ino(), file.pid, file.note()?)))
        .collect();
    // A forked child has the note of its parent open, too.
    notes.sort();
    notes.dedup_by_key(|(inode, ..)| *inode);
    notes.into_iter().map(|(_, pid, text)| (pid, text)).collect()
}
