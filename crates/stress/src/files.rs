//! Directories in memory, for rings and for files made from rings.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Makes a directory in memory.
pub fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Returns the path of `name` in `directory`.
pub fn place(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join(name)
}

/// Makes a directory in memory, and returns the paths of these names in it.
pub fn places<const N: usize>(names: [&str; N]) -> (TempDir, [PathBuf; N]) {
    let directory = directory();
    let paths = names.map(|name| place(&directory, name));
    (directory, paths)
}

/// Returns the names of the files in a directory, sorted.
pub fn names_in(directory: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
