//! Shards that an earlier recorder of the same name has left.

use crate::layout::extension as ext;
use crate::layout::header::MAGIC;
use crate::shm::{RingFile, remove_dead_parts};
use std::path::Path;

/// Removes the shards of dead recorders of that name, because readers of the new ring at `path` would take them for its
/// shards. The shards of the new recorder are not made yet.
pub(super) fn remove(path: &Path) {
    remove_dead_parts(path, |index, file| is_shard(index, file).unwrap_or(false));
}

/// Returns true if the file's header says that it is shard `index` of a recorder.
fn is_shard(index: u64, file: &RingFile) -> Option<bool> {
    let mut header = [0; ext::SHARD_LIMIT + 8];
    let read = file.read_at(&mut header, 0).ok()?;
    let word = |offset: usize| header[..read].get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    // In another major version the words may mean something else.
    let is_known = header.starts_with(&MAGIC)
        && word(ext::MAGIC_OFFSET)? == ext::MAGIC
        && (word(ext::VERSION_OFFSET)? as u32) >> 16 == (ext::VERSION >> 16) as u32;
    Some(is_known && word(ext::SHARD_LIMIT)? > index && word(ext::SHARD_INDEX)? == index)
}
