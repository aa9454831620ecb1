//! Identifying the recorder whose tables a file has, and removing the tables of dead recorders.

use crate::layout::now::{MAGIC, header};
use crate::shm::{RingFile, remove_dead_file};
use std::path::{Path, PathBuf};

/// The start of the magic of all versions.
const MAGIC_START: &[u8] = b"EVRNOW0";

/// Returns the path of the file of the present of the recorder whose shard 0 has this path.
#[must_use]
pub fn now_path(shard0: &Path) -> PathBuf {
    let mut name = shard0.as_os_str().to_os_string();
    name.push(".now");
    PathBuf::from(name)
}

/// Returns the group number of the recorder whose tables of the present are in this file. Returns `None` if the file is
/// another one, or of another version.
#[must_use]
pub fn tables_group(file: &RingFile) -> Option<u64> {
    let start = start(file)?;
    let word = |offset: usize| start[offset..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    word(header::GROUP).filter(|_| word(header::MAGIC_OFFSET) == Some(MAGIC))
}

/// Removes the tables of the recorder with this group number whose shard 0 is or was at this path. Nothing happens if
/// they are another user's, or if their writer lives.
pub fn remove_dead_tables(shard0: &Path, group: u64) {
    remove_dead_file(&now_path(shard0), |file| tables_group(file) == Some(group));
}

/// Removes the tables of any dead recorder whose shard 0 was at this path, of whatever version.
pub(crate) fn remove_all_dead_tables(shard0: &Path) {
    remove_dead_file(&now_path(shard0), |file| start(file).is_some_and(|start| start.starts_with(MAGIC_START)));
}

/// Returns the first words, if the file has them.
fn start(file: &RingFile) -> Option<[u8; header::WRITER_PID]> {
    let mut start = [0; header::WRITER_PID];
    file.read_at(&mut start, 0).ok().filter(|read| *read == start.len()).map(|_| start)
}
