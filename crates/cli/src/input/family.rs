//! A program with the processes that it starts, and the rings that these have mapped: the way to the rings of programs
//! without a server.

use super::directories::is_first_shard;
use super::process;
use eventring::files::FileId;
use eventring::reader::{Reader, ReaderErrorKind};
use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The pauses between two looks: short ones at first, because many programs make their rings when they begin.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Processes that belong together.
pub(crate) struct Family {
    members: BTreeSet<u32>,
    /// Processes that others have started, or that were there before.
    others: BTreeSet<u32>,
    /// Files that were looked at.
    seen: HashSet<FileId>,
    next_look: Instant,
    pause: Duration,
}

impl Family {
    /// The family of a program that this process has just started.
    pub(crate) fn of_started(process: u32) -> Self {
        Self::new(BTreeSet::from([process]), BTreeSet::new())
    }

    /// The family of processes that run: what they have started before does not belong to it.
    pub(crate) fn of_running(processes: &[u32]) -> Self {
        let members: BTreeSet<u32> = processes.iter().copied().collect();
        let others = process::all().filter(|pid| !members.contains(pid)).collect();
        Self::new(members, others)
    }

    fn new(members: BTreeSet<u32>, others: BTreeSet<u32>) -> Self {
        Self { members, others, seen: HashSet::new(), next_look: Instant::now(), pause: PAUSE_MIN }
    }

    /// Returns true if one of the processes runs.
    pub(crate) fn is_live(&self) -> bool {
        self.members.iter().any(|pid| process::exists(*pid))
    }

    /// Returns the paths of rings that have come since the last look. Looks only after a pause.
    pub(crate) fn new_rings(&mut self) -> Vec<PathBuf> {
        if Instant::now() < self.next_look {
            return Vec::new();
        }
        self.grow();
        let files = self.members.iter().flat_map(|pid| process::rings_of(*pid));
        let paths: Vec<PathBuf> = files.map(|(_, path, _)| path).collect();
        let new = paths.into_iter().filter(|path| self.is_new(path)).collect();
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        self.next_look = Instant::now() + self.pause;
        new
    }

    /// Returns the paths of rings that the processes have left in the usual directories.
    pub(crate) fn left_rings(&self, rings: impl IntoIterator<Item = (PathBuf, Reader)>) -> Vec<PathBuf> {
        let is_of_member = |ring: &Reader| {
            let by = ring.info().extension.map(|extension| extension.writer.pid);
            by.is_some_and(|by| self.members.contains(&by)) && !self.seen.contains(&ring.file_id())
        };
        rings.into_iter().filter(|(_, ring)| is_of_member(ring) && is_first_shard(ring)).map(|(path, _)| path).collect()
    }

    /// Takes the processes that the members have started since the last look.
    fn grow(&mut self) {
        for pid in process::all() {
            if self.members.contains(&pid) || self.others.contains(&pid) {
                continue;
            }
            let parent = process::status(pid, "PPid").and_then(|parent| parent.parse().ok());
            let is_child = parent.is_some_and(|parent: u32| self.members.contains(&parent));
            if is_child { &mut self.members } else { &mut self.others }.insert(pid);
        }
    }

    /// Returns true if the file is a ring, or the first shard of one, that was not seen before.
    fn is_new(&mut self, path: &PathBuf) -> bool {
        let Ok(found) = path.metadata() else { return false };
        let file = FileId { device: found.dev(), inode: found.ino() };
        if self.seen.contains(&file) {
            return false;
        }
        let is_ring = match Reader::options().header_only().open(path) {
            Ok(ring) => is_first_shard(&ring),
            // It is being made.
            Err(error) if error.may_come() => return false,
            // Whoever opens it says what is wrong with it.
            Err(error) => !matches!(error.kind(), ReaderErrorKind::NotARing | ReaderErrorKind::BadName),
        };
        self.seen.insert(file);
        is_ring
    }
}
