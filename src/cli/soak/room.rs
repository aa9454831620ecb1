//! The directory of a soak's rings, which must not outlive it, however it ends.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

const PARENT: &str = "/dev/shm";
const PREFIX: &str = "eventring-soak-";

/// A directory of our own, removed at the end.
pub(super) struct Room(PathBuf);

impl Room {
    /// Makes it, and removes those of soaks that were killed.
    pub(super) fn make() -> anyhow::Result<Self> {
        sweep(Path::new(PARENT));
        let path = Path::new(PARENT).join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where the exec ring goes.
    pub(super) fn ring(&self) -> PathBuf {
        self.0.join("ring")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the directory that holds `ring`, if it is a soak's: for a writer whose parent has died, or will because the writer has failed.
pub(super) fn clear_up_after(ring: &Path) {
    if let Some(directory) = ring.parent()
        && directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    {
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// Removes the directories of soaks whose process is gone.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_soaks_go_and_those_of_live_ones_and_of_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        // No process has the largest number that there is.
        let names = [format!("{PREFIX}{}", u32::MAX), format!("{PREFIX}{}", std::process::id()), "other-1".into()];
        for name in &names {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            std::fs::write(parent.path().join(name).join("ring"), "RING").unwrap();
        }
        sweep(parent.path());
        assert_eq!(names.map(|name| parent.path().join(name).exists()), [false, true, true]);
    }
}
