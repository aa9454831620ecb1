//! The servers of running programs, as `eventring list` shows them.

use eventring::control::{ControlErrorKind, Process, ServedFile, ServerAddress};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A server that answers this user.
pub(super) struct ListedServer {
    process: Process,
    files: Vec<ServedFile>,
    /// The directives in force, or an empty text.
    effective: String,
}

/// Returns the servers whose sockets lie in these directories.
pub(super) fn in_directories(directories: &[PathBuf]) -> Vec<ListedServer> {
    let addresses = directories.iter().flat_map(|directory| ServerAddress::in_ring_directory(directory));
    let serving = |address: ServerAddress| {
        let process = Process::connect(&address).ok()?;
        let files = process.files().ok()?;
        let effective = process.state().ok()?.effective;
        Some(ListedServer { process, files, effective })
    };
    addresses.filter_map(serving).collect()
}

/// Returns true if the path is that of a server's socket in a ring directory, and nobody answers there.
pub(super) fn is_dead_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let address = ServerAddress::of(path);
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket
        && address.pid_hint().is_some()
        && Process::connect(&address).is_err_and(|error| error.kind() == ControlErrorKind::NoServer)
}

impl ListedServer {
    /// Returns true if the server serves the ring of this file.
    pub(super) fn has(&self, path: &Path, writer: Option<u32>) -> bool {
        let is_it = |served: &Path| {
            served == path || (writer == Some(self.process.pid()) && served.file_name() == path.file_name())
        };
        self.files.iter().filter_map(ServedFile::path).any(is_it)
    }

    /// Returns the rings that are in anonymous memory, without the further shards of recorders.
    pub(super) fn anonymous(&self) -> impl Iterator<Item = &ServedFile> {
        let is_listed = |file: &&ServedFile| file.path().is_none() && file.shard().is_none_or(|(_, index)| index == 0);
        self.files.iter().filter(is_listed)
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the server as JSON.
    pub(super) fn object(&self) -> Value {
        json!({
            "socket": self.process.address().to_string(),
            "clients": self.process.other_clients(),
            "enabled": self.effective,
        })
    }

    /// Returns what the table shows: the number of clients, and what is switched on.
    pub(super) fn in_words(&self) -> String {
        let clients = self.process.other_clients();
        let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        if self.effective.is_empty() { clients } else { format!("{clients}, {}", self.effective) }
    }
}
