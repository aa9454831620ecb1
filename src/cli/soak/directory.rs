//! The directory of a soak's rings, which is removed even if the soak is killed.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

const PARENT: &str = "/dev/shm";
const PREFIX: &str = "eventring-soak-";

/// A directory of this process that is removed on drop.
pub(super) struct SoakDirectory(PathBuf);

impl SoakDirectory {
    /// Creates the directory, and removes the directories of soaks that were killed.
    pub(super) fn create() -> anyhow::Result<Self> {
        sweep(Path::new(PARENT));
        let path = Path::new(PARENT).join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    /// Returns the path of the exec ring.
    pub(super) fn ring(&self) -> PathBuf {
        self.0.join("ring")
    }
}

impl Drop for SoakDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the directory that holds `ring` if a soak has made it. A writer calls this if its parent is dead, or will
/// end because the writer has failed; then no other process would remove the directory.
pub(super) fn remove_directory_of(ring: &Path) {
    if let Some(directory) = ring.parent()
        && directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
    {
        let _ = std::fs::remove_dir_all(directory);
    }
}

/// Removes the directories of soaks whose process has ended.
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
    fn only_directories_of_dead_soaks_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        // The names are of a soak that has ended (no process has the largest pid), of a soak that lives, and of another
        // program.
        let names = [format!("{PREFIX}{}", u32::MAX), format!("{PREFIX}{}", std::process::id()), "other-1".into()];
        for name in &names {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            std::fs::write(parent.path().join(name).join("ring"), "RING").unwrap();
        }
        sweep(parent.path());
        assert_eq!(names.map(|name| parent.path().join(name).exists()), [false, true, true]);
    }
}
