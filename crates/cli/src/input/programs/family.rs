//! A program, its child processes, and the rings that they have mapped. A verb finds these rings even if the program
//! has no server (a thread that hands out rings).

use super::process;
use super::program::is_numbered;
use crate::input::directories::{is_first_shard, is_unfinished};
use eventring::files::FileId;
use eventring::reader::{Reader, ReaderError, ReaderErrorKind};
use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pauses between two looks: short ones at first, because many programs make their rings when they begin.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// What opens a ring.
type OpenRing = fn(&Path) -> Result<Reader, ReaderError>;

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

    /// Opens the rings that have come since the last look. Looks only after a pause. `open` opens a ring that the
    /// capture can take.
    pub(crate) fn new_rings(&mut self, open: OpenRing) -> Vec<Result<Reader, ReaderError>> {
        if Instant::now() < self.next_look {
            return Vec::new();
        }
        self.grow();
        self.pause = (2 * self.pause).min(PAUSE_MAX);
        let files: Vec<_> = self.members.iter().flat_map(|pid| process::rings_of(*pid)).collect();
        let new = files.into_iter().filter_map(|(name, path, was_at)| {
            // The further shards of a recorder whose files were removed are found by the name alone.
            let name = if was_at.is_some() { PathBuf::from(name) } else { path.clone() };
            self.look_at(&path, &name, open)
        });
        let new = new.collect();
        self.next_look = Instant::now() + self.pause;
        new
    }

    /// Opens the rings that the processes have left in the usual directories.
    pub(crate) fn left_rings(
        &mut self,
        rings: impl IntoIterator<Item = (PathBuf, Reader)>,
        open: OpenRing,
    ) -> Vec<Result<Reader, ReaderError>> {
        let is_of_member = |ring: &Reader| {
            let by = ring.info().extension.map(|extension| extension.writer);
            by.is_some_and(|by| self.members.iter().any(|pid| is_numbered(&by, *pid)))
        };
        let left: Vec<PathBuf> =
            rings.into_iter().filter(|(_, ring)| is_of_member(ring)).map(|(path, _)| path).collect();
        left.iter().filter_map(|path| self.look_at(path, path, open)).collect()
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

    /// Opens a file if it is a ring, or the first shard of one, and was not seen before. `name` is what to open it by.
    ///
    /// A ring that is being made has another name until it is complete ([`is_unfinished`]). It is looked at again soon:
    /// its header may not be whole, and nobody finds its further shards by that name.
    fn look_at(&mut self, path: &Path, name: &Path, open: OpenRing) -> Option<Result<Reader, ReaderError>> {
        let found = path.metadata();
        let Some(found) = found.ok().filter(|found| !is_unfinished(path, found)) else {
            self.pause = PAUSE_MIN;
            return None;
        };
        let file = FileId { device: found.dev(), inode: found.ino() };
        if self.seen.contains(&file) {
            return None;
        }
        let opened = match Reader::options().header_only().open(name) {
            Ok(ring) if !is_first_shard(&ring) => None,
            // Whoever opens it says what is wrong with it.
            Err(error) if [ReaderErrorKind::NotARing, ReaderErrorKind::BadName].contains(&error.kind()) => {
                if error.may_come() {
                    return None;
                }
                None
            }
            _ => match open(name) {
                Err(error) if error.may_come() => return None,
                // Another ring has the name now.
                Ok(ring) if ring.file_id() != file => return None,
                opened => Some(opened),
            },
        };
        self.seen.insert(file);
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::recorder::{ContentDescription, Recorder};
    use eventring::tracing::PerfRecorder;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn looked_at(family: &mut Family, path: &Path) -> Option<FileId> {
        let opened = family.look_at(path, path, |path| Reader::open(path))?;
        Some(opened.unwrap().file_id())
    }

    #[test]
    fn a_ring_is_taken_when_it_is_complete_and_under_its_own_name() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("ring");
        let builder = Recorder::builder(ContentDescription::new(300, "SHOP")).config(&path).shifts(15, 21);
        let recorder = builder.prefault(false).build().unwrap();
        let mut family = Family::of_running(&[std::process::id()]);
        // While it is being made, it has another name and a mark, and its header may be whole already.
        let temporary = directory.path().join(format!("ring.~{:010}", std::process::id()));
        fs::rename(&path, &temporary).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o1600)).unwrap();
        assert_eq!(looked_at(&mut family, &temporary), None);
        fs::rename(&temporary, &path).unwrap();
        // The name is gone between the look at the maps and the opening.
        assert_eq!(looked_at(&mut family, &temporary), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let taken = looked_at(&mut family, &path);
        assert_eq!(taken, Some(Reader::open(&path).unwrap().file_id()));
        assert_eq!(looked_at(&mut family, &path), None, "it is taken once");
        drop(recorder);
    }

    #[test]
    fn a_further_shard_is_never_a_ring_of_its_own_even_before_its_header_says_so() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("spans");
        let perf = PerfRecorder::builder().config(&path).shifts(15, 21).shards(2).prefault(false).build().unwrap();
        let shard = directory.path().join("spans.1");
        let dispatch = tracing::Dispatch::new(eventring::tracing::RecorderSubscriber::new(perf));
        let record = || tracing::dispatcher::with_default(&dispatch, || tracing::info!("one"));
        record();
        std::thread::scope(|scope| _ = scope.spawn(record).join());
        while !shard.exists() {
            std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(record));
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
        }
        let mut family = Family::of_running(&[std::process::id()]);
        // A copy stands for the shard whose header is written: the fixed part first, and who it belongs to at the end.
        let unfinished = directory.path().join(format!("spans.1.~{:010}", std::process::id()));
        let mut bytes = fs::read(&shard).unwrap();
        bytes[64..4096].fill(0);
        fs::write(&unfinished, bytes).unwrap();
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o1600)).unwrap();
        assert_eq!(looked_at(&mut family, &unfinished), None);
        assert_eq!(looked_at(&mut family, &shard), None);
        assert!(looked_at(&mut family, &path).is_some());
    }
}
