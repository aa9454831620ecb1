//! The directory that holds the rings of a soak. It is removed even if the soak is killed.

use crate::Result;
use std::path::{Path, PathBuf};

const PARENT: &str = "/dev/shm";
const PREFIX: &str = "eventring-soak-";

/// A directory of this process that is removed on drop.
pub(crate) struct SoakDirectory(PathBuf);

impl SoakDirectory {
    /// Creates the directory. First removes the directories of earlier soaks that were killed.
    pub(crate) fn create() -> Result<Self> {
        sweep(Path::new(PARENT));
        let path = Path::new(PARENT).join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("cannot make the directory {}: {error}", path.display()))?;
        Ok(Self(path))
    }

    /// Returns the path of the exec ring.
    pub(crate) fn ring(&self) -> PathBuf {
        self.0.join("ring")
    }
}

impl Drop for SoakDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the directory of `ring` if a soak has made this directory. A writer calls this function if its parent is
/// dead, or if the writer itself fails, because the soak is over then.
pub(crate) fn remove_directory_of(ring: &Path) {
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
        // The names of three directories: of a soak that has ended (no process has the largest pid), of a soak that
        // lives (this process), and of another program.
        let names = [format!("{PREFIX}{}", u32::MAX), format!("{PREFIX}{}", std::process::id()), "other-1".into()];
        for name in &names {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            std::fs::write(parent.path().join(name).join("ring"), "RING").unwrap();
        }
        sweep(parent.path());
        assert_eq!(names.map(|name| parent.path().join(name).exists()), [false, true, true]);
    }
}
