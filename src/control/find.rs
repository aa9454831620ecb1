//! Finding the servers of a machine.

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::line::{ANSWER_TIMEOUT, REACHABLE};
use super::process::Process;
use super::served_file::ServedFile;
use crate::shm;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time that each server has for its answer while one of them is looked for by name. It is short, because servers
/// that are not meant may be stopped.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for which servers that are asked one after the other may be late together.
const LATE_MAX: Duration = Duration::from_secs(2);
/// The time that each further server has. A server that is well answers in less than a millisecond.
const SHORT_TIMEOUT: Duration = Duration::from_millis(10);
/// The largest number of further servers that an error names.
const NAMED_MAX: usize = 20;

/// The time for servers that are asked one after the other, so that many which do not answer delay a command not
/// much longer than one of them.
#[derive(Debug)]
pub struct SharedTimeout {
    each: Duration,
    late: Duration,
}

impl SharedTimeout {
    /// Gives each server this time, as long as few of them use it.
    #[must_use]
    pub fn new(each: Duration) -> Self {
        Self { each, late: Duration::ZERO }
    }

    /// Asks a server. `ask` gets the time that the server has for an answer.
    pub fn ask<R>(&mut self, ask: impl FnOnce(Duration) -> R) -> R {
        let begin = Instant::now();
        let answer = ask(if self.late < LATE_MAX { self.each } else { self.each.min(SHORT_TIMEOUT) });
        self.late += begin.elapsed().saturating_sub(SHORT_TIMEOUT);
        answer
    }
}

/// Returns the error of a ring directory in which this user may not look for servers, if there is one.
fn closed_directory() -> Option<ControlError> {
    let directories = shm::RingDirectories::from_environment().for_reading();
    let denied = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    let closed =
        directories.iter().find(|directory| std::fs::read_dir(directory).err().as_ref().is_some_and(denied))?;
    let text = format!("look for servers in {}: permission denied; {REACHABLE}", closed.display());
    Some(ControlError::new(ControlErrorKind::PermissionDenied, text))
}

/// Returns the addresses of all sockets in the ring directories. A socket may belong to a process that has ended.
fn addresses() -> Vec<ServerAddress> {
    let directories = shm::RingDirectories::from_environment().for_reading();
    directories.iter().flat_map(|directory| ServerAddress::in_ring_directory(directory)).collect()
}

impl Process {
    /// Returns true if the name can only be that of a process: `pid:N`, `@name`, or the path of a socket. Names of
    /// programs and of rings are not among them.
    #[must_use]
    pub fn is_named_by(name: &str) -> bool {
        let is_pid_or_abstract = name.starts_with("pid:") || name.starts_with('@');
        if is_pid_or_abstract { !name.contains('/') } else { is_socket(name) }
    }

    /// Connects to the processes that `name` means. The name is a process id (`pid:N`), the path of a socket, `@name`
    /// for a name in the abstract namespace, the name of a program, or that of one of its rings. A name of a program
    /// or ring can mean several processes. Only servers in the ring directories are found by such a name, and by the
    /// path of a ring's file. `PROCESS/RING` means the process.
    ///
    /// # Errors
    /// Returns an error if there is no such process, if it refuses this process, or if it does not answer. Returns an
    /// error, too, if the only processes that may be meant do not answer, or if this user may not look for them.
    pub fn find(name: &str) -> Result<Vec<Self>, ControlError> {
        Self::find_timeout(name, ANSWER_TIMEOUT)
    }

    /// Connects to the processes that `name` means, as [`Self::find`] does. Each has at most the time `timeout` for an
    /// answer, now and later, and no more than 5 seconds.
    #[doc(hidden)]
    pub fn find_timeout(name: &str, timeout: Duration) -> Result<Vec<Self>, ControlError> {
        let timeout = timeout.min(ANSWER_TIMEOUT);
        if name.starts_with('@') || is_socket(name) || is_access_denied(name) {
            return Ok(vec![Self::connect_timeout(&ServerAddress::new(name), timeout)?]);
        }
        if let Some((process, _)) = name.rsplit_once('/').filter(|(process, _)| Self::is_named_by(process)) {
            return Self::find_timeout(process, timeout);
        }
        let pid = name.strip_prefix("pid:");
        let wanted = match pid.map(str::parse::<u32>) {
            Some(Err(_)) => {
                let text = format!("`{name}` has no number of a process after `pid:`, expected for example pid:1234");
                return Err(ControlError::new(ControlErrorKind::NotFound, text));
            }
            Some(Ok(pid)) => Some(pid),
            None => None,
        };
        let (mut found, mut refusals) = (Vec::new(), Refusals::default());
        let mut shared = SharedTimeout::new(if wanted.is_some() { timeout } else { timeout.min(LOOK_TIMEOUT) });
        for address in addresses() {
            // The name of a socket has the id of the process, which spares connections to others.
            if wanted.is_some_and(|pid| address.pid_hint().is_some_and(|hint| hint != pid)) {
                continue;
            }
            let asked = shared.ask(|timeout| {
                let process = Self::connect_timeout(&address, timeout)?;
                Ok::<_, ControlError>(is_meant(&process, name, wanted).then_some(process))
            });
            match asked {
                Ok(Some(process)) => {
                    process.set_timeout(timeout);
                    found.push(process);
                }
                Ok(None) => {}
                // Sockets of servers that have ended are no reason.
                Err(error) if matches!(error.kind(), ControlErrorKind::NoServer | ControlErrorKind::Gone) => {}
                Err(error) => refusals.add(&address, error),
            }
        }
        match (found.is_empty(), refusals.into_error().or_else(closed_directory)) {
            (false, _) => Ok(found),
            (true, Some(refusal)) => Err(refusal.at(&format_args!("find the process `{name}`"))),
            (true, None) => {
                let what = match wanted {
                    Some(pid) if !Path::new(&format!("/proc/{pid}")).exists() => format!("there is no process {pid}"),
                    Some(pid) => format!("process {pid} has no server in the ring directories"),
                    None if name.contains('/') => {
                        format!("no process with a server has the socket or the ring `{name}`")
                    }
                    None => format!("no process with a server has the name `{name}`"),
                };
                let text = format!(
                    "{what}: start the program with EVENTRING_SERVER=1 (it needs eventring's feature `server`); \
                     `eventring list` shows all rings"
                );
                Err(ControlError::new(ControlErrorKind::NoServer, text))
            }
        }
    }
}

/// The errors of servers that may be the one that is looked for.
#[derive(Default)]
struct Refusals {
    first: Option<ControlError>,
    /// The addresses of the others.
    further: Vec<String>,
}

impl Refusals {
    fn add(&mut self, address: &ServerAddress, error: ControlError) {
        match self.first {
            None => self.first = Some(error),
            Some(_) => self.further.push(address.to_string()),
        }
    }

    /// Returns the first error, which names the other servers, too.
    fn into_error(self) -> Option<ControlError> {
        let first = self.first?;
        if self.further.is_empty() {
            return Some(first);
        }
        let named = self.further.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = match self.further.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(ControlError::new(first.kind(), format!("{first}; nor can these be asked: {named}{more}")))
    }
}

/// Returns true if this is a path to which this user may not go, so that a socket may be there.
fn is_access_denied(path: &str) -> bool {
    let denied = |error: std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    path.contains('/') && std::fs::symlink_metadata(path).err().is_some_and(denied)
}

/// Returns true if this is the path of a socket.
fn is_socket(path: &str) -> bool {
    Path::new(path).metadata().is_ok_and(|found| found.file_type().is_socket())
}

fn is_meant(process: &Process, name: &str, pid: Option<u32>) -> bool {
    match pid {
        Some(pid) => process.pid() == pid,
        None => {
            // The path of a ring is compared without its links. A name is no path.
            let path = Path::new(name).canonicalize().ok().filter(|_| name.contains('/'));
            let has_name = |file: &ServedFile| {
                let its_path = || file.path().and_then(|file| file.canonicalize().ok());
                file.name() == name || (path.is_some() && its_path() == path)
            };
            process.program() == name || process.files().is_ok_and(|files| files.iter().any(has_name))
        }
    }
}
