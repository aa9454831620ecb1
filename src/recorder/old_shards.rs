//! Removal of the shard files and tables of an earlier recorder of the same name.

use crate::layout::extension as ext;
use crate::layout::header::MAGIC;
use crate::now::remove_all_dead_tables;
use crate::shm::{RingFile, remove_dead_parts};
use std::path::Path;

/// Removes the shard files of dead recorders whose shard 0 had this `path`, and their tables. Otherwise readers would
/// take the shards for those of the new ring at `path`. Call this function before the new recorder makes its own files.
pub(super) fn remove(path: &Path) {
    remove_dead_parts(path, |index, file| is_shard(index, file).unwrap_or(false));
    remove_all_dead_tables(path);
}

/// Returns `Some(true)` if the file's header states that the file is shard `index` of a recorder, otherwise
/// `Some(false)`. Returns `None` if the header cannot be read or is too short.
fn is_shard(index: u64, file: &RingFile) -> Option<bool> {
    let mut header = [0; ext::SHARD_LIMIT + 8];
    let read = file.read_at(&mut header, 0).ok()?;
    let word = |offset: usize| header[..read].get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    // The words are trusted only if the file has this major version of the format. In another major version they may
    // have another meaning.
    let is_known = header.starts_with(&MAGIC)
        && word(ext::MAGIC_OFFSET)? == ext::MAGIC
        && (word(ext::VERSION_OFFSET)? as u32) >> 16 == (ext::VERSION >> 16) as u32;
    Some(is_known && word(ext::SHARD_LIMIT)? > index && word(ext::SHARD_INDEX)? == index)
}
