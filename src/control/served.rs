//! The files that a server serves. A list of files is shared by the server's thread, which reads it, and by the threads
//! that make and end rings.

use super::patience;
use super::wire::ServedInfo;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// The description of a served file.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedContent {
    pub(crate) name: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) content_type: u16,
    pub(crate) content_name: String,
    pub(crate) schema_hash: [u8; 32],
    pub(crate) bytes: u64,
    /// The number that the shards of one recorder share, or 0.
    pub(crate) shard_group: u64,
    pub(crate) shard_index: u32,
}

/// A list of files.
pub(super) struct ServedFiles {
    files: Mutex<Listed>,
}

struct Listed {
    files: BTreeMap<u64, ListedFile>,
    next_id: u64,
    /// The descriptors that wake the servers of this list when it changes.
    wakers: Vec<Arc<OwnedFd>>,
}

struct ListedFile {
    content: ServedContent,
    /// A descriptor that can only read.
    descriptor: Arc<OwnedFd>,
    /// The process that has put the file on the list. A forked child does not serve the files of its parent.
    process: u32,
}

/// A place on a list. Dropping it takes the file off the list.
pub(crate) struct Export {
    list: Arc<ServedFiles>,
    id: u64,
    process: u32,
}

impl Drop for Export {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            return;
        }
        if let Some(mut listed) = self.list.lock() {
            listed.files.remove(&self.id);
            listed.wake();
        }
    }
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ServedFiles {
    pub(super) fn new() -> Self {
        Self { files: Mutex::new(Listed { files: BTreeMap::new(), next_id: 1, wakers: Vec::new() }) }
    }

    /// Puts a file on the list. `descriptor` must be open for reading only. Returns `None` in a forked child that
    /// cannot use the list.
    pub(super) fn add(self: &Arc<Self>, content: ServedContent, descriptor: OwnedFd) -> Option<Export> {
        let mut listed = self.lock()?;
        let (id, process) = (listed.next_id, std::process::id());
        listed.next_id += 1;
        listed.files.insert(id, ListedFile { content, descriptor: Arc::new(descriptor), process });
        listed.wake();
        Some(Export { list: Arc::clone(self), id, process })
    }

    /// Returns all files of this process.
    pub(super) fn infos(&self) -> Vec<ServedInfo> {
        let Some(listed) = self.lock() else { return Vec::new() };
        let process = std::process::id();
        listed.files.iter().filter(|(_, entry)| entry.process == process).map(|(id, entry)| entry.info(*id)).collect()
    }

    /// Returns the description and the descriptor of a file.
    pub(super) fn find(&self, id: u64) -> Option<(ServedInfo, Arc<OwnedFd>)> {
        let listed = self.lock()?;
        let entry = listed.files.get(&id).filter(|entry| entry.process == std::process::id())?;
        Some((entry.info(id), Arc::clone(&entry.descriptor)))
    }

    /// Returns a descriptor that becomes readable when the list has changed.
    pub(super) fn waker(&self) -> io::Result<Arc<OwnedFd>> {
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        if let Some(mut listed) = self.lock() {
            listed.wakers.push(Arc::clone(&waker));
        }
        Ok(waker)
    }

    /// Wakes the servers, because something else has changed that they must know.
    pub(super) fn changed(&self) {
        if let Some(listed) = self.lock() {
            listed.wake();
        }
    }

    /// Forgets a waker whose server has ended.
    pub(super) fn forget(&self, waker: &Arc<OwnedFd>) {
        if let Some(mut listed) = self.lock() {
            listed.wakers.retain(|known| !Arc::ptr_eq(known, waker));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Listed>> {
        patience::lock(&self.files)
    }
}

impl Listed {
    fn wake(&self) {
        self.wakers.iter().for_each(|waker| wake(waker));
    }
}

/// Makes the descriptor of a waker readable.
pub(super) fn wake(waker: &OwnedFd) {
    // The only error is a full counter, and then the descriptor is readable.
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}

impl ListedFile {
    fn info(&self, id: u64) -> ServedInfo {
        let content = &self.content;
        ServedInfo {
            id,
            name: content.name.clone(),
            path: content.path.as_ref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
            content_type: content.content_type,
            content_name: content.content_name.clone(),
            schema_hash: content.schema_hash,
            bytes: content.bytes,
            shard_group: content.shard_group,
            shard_index: content.shard_index,
        }
    }
}

/// Returns the list of this process's own rings.
pub(super) fn of_process() -> &'static Arc<ServedFiles> {
    static OWN: std::sync::LazyLock<Arc<ServedFiles>> = std::sync::LazyLock::new(|| Arc::new(ServedFiles::new()));
    &OWN
}

/// Serves a ring of this process, as long as the returned value lives. `descriptor` must be open for reading only.
///
/// If the environment variable `EVENTRING_SERVER` says so, the first call starts the server of the process.
pub(crate) fn export(content: ServedContent, descriptor: OwnedFd) -> Option<Export> {
    let export = of_process().add(content, descriptor);
    super::server::start_if_environment_says_so();
    export
}
