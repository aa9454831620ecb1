//! Warnings of servers of other users.

use crate::text::paint::WARNING;
use eventring::reader::Reader;
use std::path::Path;

/// Warns on stderr that a server belongs to another user. `process` is its process in words.
pub(crate) fn warn_of_stranger(name: &str, process: &str) {
    say!(
        "{WARNING}warning:{WARNING:#} {name} is served by {process}: its program, its rings and their names are what that user says"
    );
}

/// Warns on stderr if a stranger serves this ring.
pub(crate) fn warn_of_strangers_ring(name: &Path, reader: &Reader) {
    if let Some(process) = reader.serving_stranger() {
        warn_of_stranger(&name.display().to_string(), &process);
    }
}
