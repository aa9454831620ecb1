//! Serving a ring through the server of its process.

use super::config::ContentDescription;
use super::header::Shard;
pub(super) use crate::control::Export;
use crate::control::{ServedInfo, export};
use crate::shm;

/// Puts a ring on the list of the server of this process, as long as the returned value lives. Returns `None` if the
/// ring cannot be opened once more.
pub(super) fn serve(
    file: &shm::OwnedRingFile,
    description: &ContentDescription,
    shard: Shard,
    name: Option<&str>,
) -> Option<Export> {
    let name = match (name, file.path().and_then(std::path::Path::file_name)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(name)) => name.to_string_lossy().into_owned(),
        (None, None) => description.content_name().to_owned(),
    };
    let info = ServedInfo {
        id: 0,
        name,
        path: file.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        content_type: description.content_type(),
        content_name: description.content_name().to_owned(),
        schema_hash: description.schema_hash,
        bytes: file.bytes(),
        shard_group: shard.group,
        shard_index: shard.index as u32,
    };
    export(info, shm::open_read_only(file.descriptor()).ok()?)
}
