//! The published recordings, if they are present beside the project.

use std::path::PathBuf;

/// Returns a file of the shared data; `None`, after printing a message, if the file is not there.
pub fn path(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data")).join(file);
    if path.exists() {
        return Some(path);
    }
    // The message goes to the real stderr, because the test harness captures the output of `eprintln!`.
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there", path.display());
    None
}
