//! The files that a server serves. The server's thread reads the list of files. Threads that make and end rings change
//! this list.

use super::wire::ServedInfo;
use crate::shm::{self, UninheritedFd, lock_with_timeout};
use crate::sync::locked_section::get_or_make;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A list of files.
pub(super) struct ServedFiles {
    files: Mutex<Listed>,
}

struct Listed {
    files: BTreeMap<u64, ListedFile>,
    next_id: u64,
    /// The descriptors that wake the servers of this list when it changes.
    wakers: Vec<Arc<UninheritedFd>>,
}

struct ListedFile {
    info: ServedInfo,
    /// A descriptor that can only read.
    descriptor: Arc<OwnedFd>,
    /// The process that has put the file on the list. A forked child does not serve the files of its parent.
    process: u64,
}

/// A place on a list. Dropping it takes the file off the list.
pub(crate) struct Export {
    list: Arc<ServedFiles>,
    id: u64,
    process: u64,
}

impl Drop for Export {
    fn drop(&mut self) {
        if self.process != shm::process_number() {
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

    /// Puts a file on the list and gives it a number. `descriptor` must be open for reading only. Returns `None` in a
    /// forked child that cannot use the list.
    pub(super) fn add(self: &Arc<Self>, info: ServedInfo, descriptor: OwnedFd) -> Option<Export> {
        let mut listed = self.lock()?;
        let (id, process) = (listed.next_id, shm::process_number());
        listed.next_id += 1;
        let info = ServedInfo { id, ..info };
        listed.files.insert(id, ListedFile { info, descriptor: Arc::new(descriptor), process });
        listed.wake();
        Some(Export { list: Arc::clone(self), id, process })
    }

    /// Returns all files of this process.
    pub(super) fn infos(&self) -> Vec<ServedInfo> {
        let Some(listed) = self.lock() else { return Vec::new() };
        let process = shm::process_number();
        listed.files.values().filter(|entry| entry.process == process).map(|entry| entry.info.clone()).collect()
    }

    /// Returns the description and the descriptor of a file.
    pub(super) fn find(&self, id: u64) -> Option<(ServedInfo, Arc<OwnedFd>)> {
        let listed = self.lock()?;
        let entry = listed.files.get(&id).filter(|entry| entry.process == shm::process_number())?;
        Some((entry.info.clone(), Arc::clone(&entry.descriptor)))
    }

    /// Returns true if a file of the list has this number, or had it.
    pub(super) fn had(&self, id: u64) -> bool {
        self.lock().is_some_and(|listed| (1..listed.next_id).contains(&id))
    }

    /// Returns a descriptor that becomes readable when the list has changed.
    pub(super) fn waker(&self) -> io::Result<Arc<UninheritedFd>> {
        let waker = Arc::new(UninheritedFd::make(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))?);
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
    pub(super) fn forget(&self, waker: &Arc<UninheritedFd>) {
        if let Some(mut listed) = self.lock() {
            listed.wakers.retain(|known| !Arc::ptr_eq(known, waker));
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Listed>> {
        lock_with_timeout(&self.files)
    }
}

impl Listed {
    fn wake(&self) {
        self.wakers.iter().for_each(|waker| wake(waker));
    }
}

/// Makes the descriptor of a waker readable. Does nothing in a forked child of its process.
pub(super) fn wake(waker: &UninheritedFd) {
    if waker.is_open_here() {
        // The only error is a full counter, and then the descriptor is readable.
        let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
    }
}

/// Returns the list of this process's own rings.
pub(super) fn of_process() -> &'static Arc<ServedFiles> {
    static OWN: OnceLock<Arc<ServedFiles>> = OnceLock::new();
    get_or_make(&OWN, || Arc::new(ServedFiles::new()))
}
