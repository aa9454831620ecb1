//! The published recordings. They may be missing: their directory is beside the project's directory.

use std::path::PathBuf;

/// Returns the path of a file of the shared data. If the file is not there, prints a message and returns `None`.
pub fn path(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(file);
    if path.exists() {
        return Some(path);
    }
    crate::skipped(format_args!("{} is not there", path.display()));
    None
}
