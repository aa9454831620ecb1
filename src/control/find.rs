//! Finding the servers of a machine.

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::process::Process;
use crate::shm;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Returns the addresses of all sockets in the ring directories. A socket may belong to a process that has ended.
#[must_use]
pub fn addresses() -> Vec<ServerAddress> {
    let directories = shm::RingDirectories::from_environment().for_reading();
    directories.iter().flat_map(|directory| ServerAddress::in_ring_directory(directory)).collect()
}

impl Process {
    /// Connects to the processes that `name` means. The name is a process id (`pid:N`), the path of a socket, `@name`
    /// for a name in the abstract namespace, the name of a program, or that of one of its rings. A name of a program
    /// or ring can mean several processes. Only servers in the ring directories are found by such a name.
    ///
    /// # Errors
    /// Returns an error if there is no such process, or if it refuses this process.
    pub fn find(name: &str) -> Result<Vec<Self>, ControlError> {
        if let Some(address) = explicit_address(name) {
            return Ok(vec![Self::connect(&address)?]);
        }
        let pid = name.strip_prefix("pid:");
        let wanted = match pid.map(str::parse::<u32>) {
            Some(Err(_)) => {
                let text = format!("`{name}` has no process id after `pid:`, expected for example pid:1234");
                return Err(ControlError::new(ControlErrorKind::NotFound, text));
            }
            Some(Ok(pid)) => Some(pid),
            None => None,
        };
        let (mut found, mut refusal) = (Vec::new(), None);
        for address in addresses() {
            // The name of a socket has the id of the process, which spares connections to others.
            if wanted.is_some_and(|pid| address.pid_hint().is_some_and(|hint| hint != pid)) {
                continue;
            }
            match Self::connect(&address) {
                Ok(process) if is_meant(&process, name, wanted) => found.push(process),
                Ok(_) => {}
                Err(error) if error.kind() == ControlErrorKind::PermissionDenied => refusal = Some(error),
                Err(_) => {}
            }
        }
        match (found.is_empty(), refusal) {
            (false, _) => Ok(found),
            (true, Some(refusal)) => Err(refusal),
            (true, None) => {
                let text = format!(
                    "no process with a server has the name `{name}`: start the program with EVENTRING_SERVER=1 (it needs \
                     eventring's feature `server`); `eventring list` shows all rings"
                );
                Err(ControlError::new(ControlErrorKind::NoServer, text))
            }
        }
    }
}

/// Returns the address if `name` is that of a socket.
pub(crate) fn explicit_address(name: &str) -> Option<ServerAddress> {
    let is_socket = |path: &Path| path.metadata().is_ok_and(|found| found.file_type().is_socket());
    (name.starts_with('@') || is_socket(Path::new(name))).then(|| ServerAddress::of(name))
}

fn is_meant(process: &Process, name: &str, pid: Option<u32>) -> bool {
    match pid {
        Some(pid) => process.pid() == pid,
        None => {
            process.program() == name || process.files().is_ok_and(|files| files.iter().any(|file| file.name() == name))
        }
    }
}
