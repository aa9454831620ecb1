//! Removal of shard files that an earlier recorder of the same name has left.

use crate::layout::extension as ext;
use crate::layout::header::MAGIC;
use crate::shm::{RingFile, remove_dead_parts};
use std::path::Path;

/// Removes the shards of dead recorders whose shard 0 had this `path`. Readers would take them for shards of the new
/// ring at `path`. Call this before the new recorder makes shards.
pub(super) fn remove(path: &Path) {
    remove_dead_parts(path, |index, file| is_shard(index, file).unwrap_or(false));
}

/// Returns true if the file's header says that it is shard `index` of a recorder.
fn is_shard(index: u64, file: &RingFile) -> Option<bool> {
    let mut header = [0; ext::SHARD_LIMIT + 8];
    let read = file.read_at(&mut header, 0).ok()?;
    let word = |offset: usize| header[..read].get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    // In another major version of the format these words may have another meaning.
    let is_known = header.starts_with(&MAGIC)
        && word(ext::MAGIC_OFFSET)? == ext::MAGIC
        && (word(ext::VERSION_OFFSET)? as u32) >> 16 == (ext::VERSION >> 16) as u32;
    Some(is_known && word(ext::SHARD_LIMIT)? > index && word(ext::SHARD_INDEX)? == index)
}
