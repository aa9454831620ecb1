//! The servers of running programs, as `eventring list` shows them.

use crate::input::programs::processes::FileNumbers;
use crate::text::format::counted;
use eventring::control::{ControlError, ControlErrorKind, Process, ServedFile, ServerAddress};
use eventring::internal::SharedTimeout;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that each server has for its answers. It is short, because a stopped process does not answer at all.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The same for a socket that may be dead. Nobody answers at a dead one, so only the connection counts.
const DEAD_SOCKET_TIMEOUT: Duration = Duration::from_millis(10);

/// A server that answers this user.
pub(crate) struct ListedServer {
    pub(crate) process: Process,
    files: Vec<ServedFile>,
    /// The rings that have a path, or had one.
    with_paths: Vec<FileNumbers>,
    /// The directives in force, or an empty text.
    effective: String,
}

/// A server whose process is there and does not answer.
pub(crate) struct SilentServer {
    address: ServerAddress,
}

/// The server of a program, in JSON. Of one that does not answer, only the socket is known.
#[derive(Clone, Serialize, JsonSchema)]
pub(crate) struct ServerRow {
    socket: String,
    answers: bool,
    pid: Option<u32>,
    user: Option<u32>,
    clients: Option<u32>,
    /// The directives in force.
    enabled: Option<String>,
    /// What the table shows: the number of clients, and what is switched on.
    #[serde(skip)]
    pub(crate) words: String,
}

/// Returns the servers whose sockets lie in these directories: those that answer, and those that do not.
pub(crate) fn in_directories(directories: &[PathBuf]) -> (Vec<ListedServer>, Vec<SilentServer>) {
    let addresses = directories.iter().flat_map(|directory| ServerAddress::in_ring_directory(directory));
    let serving = |address: &ServerAddress, timeout: Duration| {
        let process = Process::connect_timeout(address, timeout)?;
        let (files, effective) = (process.files()?, process.state()?.effective);
        let with_paths = files.iter().filter(|file| file.path().is_some() && !file.is_further_shard());
        let with_paths = with_paths.filter_map(|file| FileNumbers::of_served(&process, file)).collect();
        Ok::<_, ControlError>(ListedServer { process, files, with_paths, effective })
    };
    let (mut listed, mut silent) = (Vec::new(), Vec::new());
    let mut shared = SharedTimeout::new(TIMEOUT);
    for address in addresses {
        match shared.ask(|timeout| serving(&address, timeout)) {
            Ok(server) => listed.push(server),
            Err(error) if error.kind() == ControlErrorKind::NoAnswer => silent.push(SilentServer { address }),
            Err(_) => {}
        }
    }
    (listed, silent)
}

impl SilentServer {
    /// Returns the id of the process, as the name of its socket says.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.address.pid_hint()
    }

    /// Returns the server as JSON.
    pub(crate) fn row(&self) -> ServerRow {
        ServerRow {
            socket: self.address.to_string(),
            answers: false,
            pid: None,
            user: None,
            clients: None,
            enabled: None,
            words: "does not answer".to_owned(),
        }
    }

    /// Returns the process in words, for a warning.
    pub(crate) fn described(&self) -> String {
        format!("the process that serves at {}", self.address)
    }
}

/// Returns true if the path is that of a server's socket in a ring directory, and nobody answers there.
pub(crate) fn is_dead_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let address = ServerAddress::new(path);
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket
        && address.pid_hint().is_some()
        && Process::connect_timeout(&address, DEAD_SOCKET_TIMEOUT)
            .is_err_and(|error| error.kind() == ControlErrorKind::NoServer)
}

impl ListedServer {
    /// Returns true if the server serves the ring of this file.
    pub(crate) fn has(&self, path: &Path) -> bool {
        FileNumbers::from_path(path).is_some_and(|numbers| self.with_paths.contains(&numbers))
    }

    /// Returns the rings that are in anonymous memory, without the further shards of recorders.
    pub(crate) fn anonymous(&self) -> impl Iterator<Item = &ServedFile> {
        self.files.iter().filter(|file| file.path().is_none() && !file.is_further_shard())
    }

    /// Returns the server as JSON.
    pub(crate) fn row(&self) -> ServerRow {
        ServerRow {
            socket: self.process.address().to_string(),
            answers: true,
            pid: Some(self.process.pid()).filter(|pid| *pid != 0),
            user: Some(self.process.user()),
            clients: Some(self.process.other_clients()),
            enabled: Some(self.effective.clone()),
            words: self.in_words(),
        }
    }

    fn in_words(&self) -> String {
        let clients = self.process.other_clients();
        let clients = counted(clients as u64, "client", "clients");
        let clients = match self.process.is_stranger() {
            true => format!("user {}, {clients}", self.process.user()),
            false => clients,
        };
        if self.effective.is_empty() { clients } else { format!("{clients}, {}", self.effective) }
    }
}
