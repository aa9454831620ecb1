//! The published recordings, where they are present beside the project.

use std::path::PathBuf;

/// A file of the shared data; `None`, visibly, if it is not there.
pub fn path(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")).join(file);
    if path.exists() {
        return Some(path);
    }
    // To the real stderr: the test harness keeps what `eprintln!` writes to itself.
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there", path.display());
    None
}
