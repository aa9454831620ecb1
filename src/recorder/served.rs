//! Serving a ring by the server of its process.

use super::config::ContentDescription;
use super::header::Shard;
use crate::control::{Export, ServedContent, export};
use crate::shm;

/// Puts a ring on the list of the server of this process, as long as the returned value lives. Returns `None` if the
/// ring cannot be opened once more.
pub(super) fn serve(file: &shm::OwnedRingFile, description: &ContentDescription, shard: Shard) -> Option<Export> {
    let name = match file.path().and_then(std::path::Path::file_name) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => description.content_name().to_owned(),
    };
    let content = ServedContent {
        name,
        path: file.path().map(std::path::Path::to_path_buf),
        content_type: description.content_type(),
        content_name: description.content_name().to_owned(),
        schema_hash: description.schema_hash,
        bytes: file.bytes(),
        shard_group: shard.group,
        shard_index: shard.index as u32,
    };
    export(content, shm::open_read_only(file.descriptor()).ok()?)
}
