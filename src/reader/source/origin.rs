//! The programs that have a ring which no file has: a server, or the holder of a removed file.

use super::options::ReaderOptions;
use crate::control::{ControlError, Process, ServedFile, ServerAddress};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The program that holds a removed ring open, and the path that the ring had.
#[derive(Clone, Debug)]
pub(in crate::reader) struct OpenedBy {
    pub(in crate::reader) pid: u32,
    pub(in crate::reader) was_at: PathBuf,
}

/// The server from which a ring came.
#[derive(Debug)]
pub(in crate::reader) struct ServedBy {
    pub(in crate::reader) server: Arc<RingServer>,
    pub(in crate::reader) file: ServedFile,
    /// The name and the options with which the ring was opened, or `None` for a shard that a reader has found.
    pub(in crate::reader) opened_as: Option<(ServedName, ReaderOptions)>,
}

impl ServedBy {
    /// Returns true if the program or its server is known to have ended.
    pub(in crate::reader) fn is_gone(&self) -> bool {
        self.server.process.is_gone()
    }

    /// Returns the process that serves, in words, if it is a stranger.
    pub(in crate::reader) fn stranger(&self) -> Option<String> {
        let process = &self.server.process;
        process.is_stranger().then(|| process.in_words())
    }

    /// Returns the name of the ring, for messages.
    pub(in crate::reader) fn label(&self) -> String {
        format!("{}/{}", self.server.process.short_name(), self.file.name())
    }

    /// Returns true if the ring is a shard, so that the server may have the others.
    pub(in crate::reader) fn is_shard(&self) -> bool {
        self.file.shard().is_some()
    }
}

/// A server, and what it serves.
#[derive(Debug)]
pub(in crate::reader) struct RingServer {
    pub(in crate::reader) process: Process,
    /// The served files at the last look, or `None` before the first look.
    files: Mutex<Option<Vec<ServedFile>>>,
}

impl RingServer {
    pub(in crate::reader) fn new(process: Process) -> Arc<Self> {
        Arc::new(Self { process, files: Mutex::new(None) })
    }

    /// Returns the recorders' rings that `is_meant` accepts. The server is asked only if its rings have changed since
    /// the last call, so this may be called often.
    pub(in crate::reader) fn find(
        &self,
        is_meant: impl Fn(&ServedFile) -> bool,
    ) -> Result<Option<ServedFile>, ControlError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let has_changed = !self.process.changes().is_empty();
        let known = match files.take().filter(|_| !has_changed) {
            Some(known) => known,
            None => without_further_shards(self.process.follow()?),
        };
        Ok(files.insert(known).iter().find(|file| is_meant(file)).cloned())
    }
}

/// A name that leads to a ring of a server: `PROCESS` or `PROCESS/RING`. A process is `pid:N`, the path of a socket, or
/// `@name`. A ring is its name, or `#` and its number.
#[derive(Clone, Debug)]
pub(in crate::reader) struct ServedName {
    pub(in crate::reader) as_written: PathBuf,
    pub(in crate::reader) process: String,
    /// The address, if it was written. A program that is started again has the same address, and another process id.
    pub(in crate::reader) address: Option<ServerAddress>,
    ring: Option<String>,
}

impl ServedName {
    /// Returns `None` if the name is that of a file.
    pub(in crate::reader) fn parse(name: &Path) -> Option<Self> {
        let text = name.to_str()?;
        let of = |process: &str, ring: Option<&str>| {
            let (as_written, ring) = (name.to_path_buf(), ring.map(str::to_owned));
            let address = (!process.starts_with("pid:")).then(|| ServerAddress::new(process));
            Process::is_named_by(process).then(|| Self { as_written, process: process.to_owned(), address, ring })
        };
        let with_ring = text.rsplit_once('/').and_then(|(process, ring)| of(process, Some(ring)));
        with_ring.or_else(|| of(text, None))
    }

    pub(in crate::reader) fn has_number(&self) -> bool {
        self.ring.as_deref().is_some_and(|ring| ring.starts_with('#'))
    }

    pub(in crate::reader) fn is_meant(&self, file: &ServedFile) -> bool {
        match self.ring.as_deref() {
            None => true,
            Some(ring) => match ring.strip_prefix('#') {
                Some(number) => number.parse() == Ok(file.id()),
                None => file.name() == ring,
            },
        }
    }
}

/// Leaves out the shards that a reader finds through shard 0.
pub(in crate::reader) fn without_further_shards(mut files: Vec<ServedFile>) -> Vec<ServedFile> {
    files.retain(|file| !file.is_further_shard());
    files
}
