//! The temporary directory of a run of `icount`, with the program's rings and the report of QEMU's plugin. It is
//! removed at the end of the run. If `eventring` was killed, the next run removes it from `/dev/shm`.

use crate::exit::Failure;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::path::Path;
use tempfile::TempDir;

/// A file system in memory, if there is one.
const MEMORY: &str = "/dev/shm";
/// The beginning of the names of these directories.
const PREFIX: &str = "eventring-icount-";
/// The file whose lock shows that the run goes on.
const LOCK: &str = "lock";

/// A directory of a run.
pub(super) struct RunDirectory {
    directory: TempDir,
    /// The lock ends with the process, however that ends.
    _lock: File,
}

impl RunDirectory {
    /// Makes a directory, in memory if possible. Removes those of runs that were killed.
    pub(super) fn make() -> Result<Self, Failure> {
        remove_abandoned(Path::new(MEMORY));
        let cannot = |error| Failure::io("cannot make a temporary directory", &error);
        let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(MEMORY);
        let directory = made.or_else(|_| tempfile::tempdir()).map_err(cannot)?;
        // The file gets its name when it is locked, so nobody finds it without a lock while this process lives.
        let unlocked = directory.path().join("lock.new");
        let lock = File::create_new(&unlocked).map_err(cannot)?;
        lock.lock().map_err(cannot)?;
        std::fs::rename(&unlocked, directory.path().join(LOCK)).map_err(cannot)?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories of runs whose process has ended.
fn remove_abandoned(memory: &Path) {
    let Ok(entries) = std::fs::read_dir(memory) else { return };
    let is_ours = |entry: &std::fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    for entry in entries.flatten().filter(is_ours) {
        // Others may have put anything there.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(lock) = rustix::fs::open(entry.path().join(LOCK), flags, Mode::empty()).map(File::from) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
