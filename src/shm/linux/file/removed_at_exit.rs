//! Files that the process removes when it exits, such as sockets.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, statat};

use super::owned::{DirectoryEntry, Registration};
use crate::shm::answers::FileId;

/// A file that is removed when this value is dropped, or when the process exits. It stays if another file has taken its
/// name meanwhile, or if a signal kills the process. In a forked child, the copy of the value removes nothing.
#[derive(Debug)]
pub(crate) struct RemovedAtExit {
    _registration: Registration,
}

impl RemovedAtExit {
    /// Registers the file at this path. Returns `None` if there is no such file.
    pub(crate) fn register(path: &Path) -> Option<Self> {
        let file = FileId::from_stat(&statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?);
        let place = DirectoryEntry::from_path(path).ok()?;
        Some(Self { _registration: Registration::new(Some(Arc::new(place)), file) })
    }
}
