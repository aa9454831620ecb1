//! The limit on the memory for rings of other hosts. A sender may name any number of rings.

use eventring::files::{LockState, free_bytes, lock_state};
use eventring::internal::shm;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The room in a directory that the rings of one receiver may take together: half of what was free when it began.
pub(super) struct RingSpace {
    directory: PathBuf,
    /// The rest of it. It has no limit if the system does not show how much is free.
    bytes: u64,
    /// Host and name of each ring for which there was no room.
    without: HashSet<(String, String)>,
}

impl RingSpace {
    pub(super) fn in_directory(directory: &Path) -> Self {
        let free = free_bytes(Some(&directory.join("ring")));
        Self { directory: directory.to_owned(), bytes: free.map_or(u64::MAX, |free| free / 2), without: HashSet::new() }
    }

    /// Takes the room of a ring of so many bytes at a path, unless there is too little. What an earlier receiver has
    /// left there is replaced, and needs no room.
    pub(super) fn take(&mut self, path: &Path, ring_bytes: u64) -> bool {
        let left = self.bytes.checked_sub(ring_bytes.saturating_sub(replaced_bytes(path)));
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    /// Notes that there is no room for a ring. Returns what is to be said of it, once, and of the first ones only.
    pub(super) fn note_without(&mut self, host: &str, name: &str) -> Option<String> {
        const SAID_MAX: usize = 64;
        let is_new = self.without.insert((host.to_owned(), name.to_owned()));
        (is_new && self.without.len() <= SAID_MAX).then(|| {
            let directory = self.directory.display();
            format!(
                "no ring is made for {name} of the host {host}: all rings together take at most half of what was free \
                 in {directory} when the receiver began; name a directory with more room, or fewer hosts or rings \
                 (--host, --ring, --share). The capture has its events"
            )
        })
    }

    /// Returns the number of rings for which there was no room.
    pub(super) fn count_without(&self) -> u64 {
        self.without.len() as u64
    }
}

/// Returns the size of the ring at a path, if nobody writes it.
fn replaced_bytes(path: &Path) -> u64 {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    let dead = is_file.then(|| shm::open_file(path).ok()).flatten().filter(|file| lock_state(file) == LockState::Free);
    dead.and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len())
}
