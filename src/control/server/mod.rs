//! The server: a thread that answers clients.
//!
//! | file | idea |
//! |---|---|
//! | `serving` | the thread: it waits for clients, messages and points in time |
//! | `connection` | one client: its permissions, and the messages that it has not received yet |
//! | `given_up` | ended connections with a descriptor that the client may not have received |
//! | `answers` | the answer to each request |
//! | `effort` | the working time of the thread, and the pauses that limit it |

mod answers;
mod connection;
mod effort;
mod given_up;
mod serving;

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::served::{self, ServedFiles, wake};
use super::socket;
use super::wire::ServedInfo;
use crate::shm::{self, UninheritedFd};
use rustix::event::{EventfdFlags, eventfd};
use serving::{Rights, Serving};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Environment variable that starts a server. `1` starts it in the ring directory. A path, or `@name` for the abstract
/// namespace, starts it there. If the variable is empty, or is `0`, `no`, `false` or `off`, no server is started. If
/// the server cannot be started, [`environment_error`] returns the reason.
pub const SERVER_VARIABLE: &str = "EVENTRING_SERVER";

/// The largest number of clients, unless [`ServerBuilder::clients_max`] sets another.
const CLIENTS_MAX: usize = 64;

/// A server of this process. Dropping it ends the server: clients see the end, and the socket is removed.
///
/// The server is one thread. No other thread of the program waits for it.
///
/// ```
/// let server = eventring::control::Server::builder().abstract_name("my-app-control").start()?;
/// let process = eventring::control::Process::connect(server.address())?;
/// assert_eq!(process.pid(), std::process::id());
/// # Ok::<(), eventring::control::ControlError>(())
/// ```
pub struct Server {
    address: ServerAddress,
    stop: Arc<UninheritedFd>,
    thread: Option<JoinHandle<()>>,
    _socket_file: Option<shm::RemovedAtExit>,
    process: u64,
}

/// Configuration of a [`Server`].
#[derive(Default)]
#[must_use = "nothing happens before `start`"]
pub struct ServerBuilder {
    address: Option<ServerAddress>,
    rights: Rights,
    clients_max: Option<usize>,
    /// The list to serve, if it is not that of this process.
    files: Option<Arc<ServedFiles>>,
    exports: Vec<served::Export>,
    program: Option<String>,
}

impl Server {
    /// Starts the server of this process in the ring directory. It serves all rings that the process has or makes.
    ///
    /// # Errors
    /// The errors of [`ServerBuilder::start`].
    pub fn start() -> Result<Self, ControlError> {
        Self::builder().start()
    }

    /// Returns the default configuration.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Returns the address of the socket.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }
}

impl ServerBuilder {
    /// Puts the socket at this address. Default: a new name in the ring directory, where `eventring list` finds it.
    pub fn address(mut self, address: ServerAddress) -> Self {
        self.address = Some(address);
        self
    }

    /// Puts the socket into the abstract namespace: it has no file, and every process of the network namespace can
    /// connect to it. Who may do what is the same as with a file.
    pub fn abstract_name(self, name: impl Into<String>) -> Self {
        self.address(ServerAddress::Abstract(name.into()))
    }

    /// Lets the user with this number import rings. The user of this process and root always may.
    ///
    /// The user must be able to reach the socket. A ring directory has the permission bits 0750, so that users outside
    /// of its group cannot: give the server another [address](Self::address), such as `/tmp/my-app.sock`, or an
    /// [abstract name](Self::abstract_name).
    pub fn allow_import(mut self, user: u32) -> Self {
        self.rights.import.push(user);
        self
    }

    /// Lets the user with this number import rings, and switch on what the program records. The user of this process
    /// and root always may. As with [`Self::allow_import`], the user must be able to reach the socket.
    pub fn allow_switch(mut self, user: u32) -> Self {
        self.rights.switch.push(user);
        self
    }

    /// Sets the largest number of clients. Further clients are refused. Default: 64. Of these places, half are kept for
    /// the user of this process and for root, and one other user has at most a quarter.
    pub fn clients_max(mut self, clients: usize) -> Self {
        self.clients_max = Some(clients);
        self
    }

    /// Serves this file instead of the rings of the process. A further call adds another file.
    #[doc(hidden)]
    pub fn serve_file(mut self, content: ServedFileContent, descriptor: OwnedFd) -> Self {
        let files = self.files.get_or_insert_with(|| Arc::new(ServedFiles::new()));
        self.exports.extend(files.add(content.0, descriptor));
        self
    }

    /// Sets the name by which clients see the program. Default: the name of the program's file.
    pub fn program_name(mut self, name: impl Into<String>) -> Self {
        self.program = Some(name.into());
        self
    }

    /// Makes the socket, and starts the thread.
    ///
    /// # Errors
    /// Returns an error if the socket or the thread cannot be made: for example if a server has this address, if the
    /// path is that of something else than a socket, or if it is longer than 107 bytes. The socket of a server that has
    /// ended is replaced.
    pub fn start(self) -> Result<Server, ControlError> {
        let address = match self.address {
            Some(address) => address,
            None => address_in_ring_directory()?,
        };
        let failed = |what: &str, error: std::io::Error| {
            ControlError::io(format!("start the server: {what}"), error).at(&address)
        };
        let socket_address = address.to_socket_address().map_err(|error| failed(PATH_TOO_LONG, error.into()))?;
        if let ServerAddress::Path(path) = &address {
            remove_dead(path).map_err(|error| error.at(&address))?;
        }
        let listener = socket::listen(&socket_address).map_err(|error| {
            let error = std::io::Error::from(error);
            let remedy = match error.kind() {
                std::io::ErrorKind::NotFound => " (make its directory first)",
                std::io::ErrorKind::PermissionDenied => " (choose a directory that this user may write to)",
                _ => "",
            };
            failed(&format!("make the socket{remedy}"), error)
        })?;
        let socket_file = match &address {
            ServerAddress::Path(path) => {
                let file = shm::RemovedAtExit::register(path);
                let_everybody_connect(path);
                file
            }
            ServerAddress::Abstract(_) => None,
        };
        let files = self.files.unwrap_or_else(|| Arc::clone(served::of_process()));
        let stop = UninheritedFd::make(|| eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK));
        let stop = Arc::new(stop.map_err(|error| failed("make an eventfd", error.into()))?);
        let serving = Serving::new(
            listener,
            Arc::clone(&stop),
            files,
            self.exports,
            self.rights,
            self.clients_max.unwrap_or(CLIENTS_MAX),
            self.program.unwrap_or_else(shm::program_name),
        );
        let serving = serving.map_err(|error| failed("make an epoll instance", error))?;
        let thread = std::thread::Builder::new().name("eventring-server".into()).spawn(move || serving.run());
        let thread = thread.map_err(|error| ControlError::io("start the server: make a thread", error).at(&address))?;
        Ok(Server { address, stop, thread: Some(thread), _socket_file: socket_file, process: shm::process_number() })
    }
}

const PATH_TOO_LONG: &str = "the path of a socket has at most 107 bytes; use a shorter path, or `@name`";

impl Drop for Server {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process != shm::process_number() {
            // A forked child has no such thread.
            std::mem::forget(thread);
            return;
        }
        wake(&self.stop);
        if let Some(thread) = thread {
            // A panic of the thread has ended the server already.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The description of a file that a server serves.
#[derive(Clone, Debug)]
pub struct ServedFileContent(ServedInfo);

impl ServedFileContent {
    /// Makes the description of a ring.
    #[must_use]
    pub fn new(name: String, content_type: u16, content_name: String, schema_hash: [u8; 32], bytes: u64) -> Self {
        Self(ServedInfo { name, content_type, content_name, schema_hash, bytes, ..ServedInfo::default() })
    }

    /// Says which shard of a recorder the ring is.
    #[must_use]
    pub fn shard(mut self, group: u64, index: u32) -> Self {
        (self.0.shard_group, self.0.shard_index) = (group, index);
        self
    }
}

fn address_in_ring_directory() -> Result<ServerAddress, ControlError> {
    let directories = shm::RingDirectories::from_environment().for_reading();
    let Some(directory) = directories.last() else {
        return Err(ControlError::new(ControlErrorKind::NotFound, "start the server: there is no ring directory"));
    };
    shm::prepare_ring_directory(directory).map_err(|error| {
        let kind = match error.kind() {
            shm::ShmErrorKind::PermissionDenied => ControlErrorKind::PermissionDenied,
            _ => ControlErrorKind::Io,
        };
        ControlError::new(kind, format!("start the server: {error}"))
    })?;
    Ok(ServerAddress::in_directory(directory, std::process::id(), shm::process_number() as u32))
}

/// Removes the socket of a server that has ended. The socket of a living server stays, and so does everything that is
/// no socket: the kernel answers a connection to an ordinary file as it answers one to a dead socket.
///
/// # Errors
/// Returns an error if the path is that of something else than a socket.
fn remove_dead(path: &Path) -> Result<(), ControlError> {
    let socket_at =
        |path: &Path| std::fs::symlink_metadata(path).map(|found| (found.file_type(), (found.dev(), found.ino())));
    let Ok((kind, found)) = socket_at(path) else { return Ok(()) };
    if !kind.is_socket() {
        let what = match kind {
            kind if kind.is_symlink() => "a symbolic link",
            kind if kind.is_dir() => "a directory",
            kind if kind.is_file() => "a file",
            _ => "something",
        };
        let text = format!("start the server: {what} is there that is no socket; name another path");
        return Err(ControlError::new(ControlErrorKind::Exists, text));
    }
    let Ok(address) = rustix::net::SocketAddrUnix::new(path) else { return Ok(()) };
    let is_dead = socket::connect(&address, Duration::ZERO).err() == Some(rustix::io::Errno::CONNREFUSED);
    // Another server may have taken the place of the dead one meanwhile.
    if is_dead && socket_at(path).is_ok_and(|now| now == (kind, found)) {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Lets every user connect to the socket at this path, so that a refusal can say why. (The server asks the kernel who
/// the client is.) If something else has taken the path meanwhile, it stays as it is.
fn let_everybody_connect(path: &Path) {
    use rustix::fs::{Mode, OFlags};
    let Ok(socket) = rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let socket = std::fs::File::from(socket);
    if socket.metadata().is_ok_and(|found| found.file_type().is_socket()) {
        let place = format!("/proc/thread-self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&socket));
        let _ = std::fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
}

/// The server that the environment variable has started, or why there is none, and the process that has started it.
static STARTED: Mutex<Option<(u64, Result<Server, ControlError>)>> = Mutex::new(None);

/// Returns why the server could not be started that the environment variable [`SERVER_VARIABLE`] asks for. Returns
/// `None` if it was started, if the variable asks for none, or if this process has made no ring yet: the first ring
/// starts the server.
///
/// The library prints nothing, and a program records the same with and without a server. A program that wants its users
/// to know of the failure asks this function after it has made its recorders, and shows the error.
///
/// ```
/// if let Some(error) = eventring::control::environment_error() {
///     eprintln!("warning: nobody can connect to this program: {error}");
/// }
/// ```
#[must_use]
pub fn environment_error() -> Option<ControlError> {
    let started = shm::lock_with_timeout(&STARTED)?;
    let (process, server) = started.as_ref()?;
    server.as_ref().err().filter(|_| *process == shm::process_number()).cloned()
}

/// Starts the server of this process if [`SERVER_VARIABLE`] says so, and if it was not started yet.
pub(super) fn start_if_environment_says_so() {
    let Some(address) = address_from_environment() else { return };
    // Another thread that holds the lock starts the server. In a forked child, the lock may be held for ever.
    let mut started = match STARTED.try_lock() {
        Ok(started) => started,
        Err(TryLockError::Poisoned(started)) => started.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let process = shm::process_number();
    if started.as_ref().is_some_and(|(starter, _)| *starter == process) {
        return;
    }
    let builder = match address {
        None => Server::builder(),
        Some(address) => Server::builder().address(address),
    };
    // The library prints nothing. The rings are as without a server, and `environment_error` returns the error.
    let parent = started.replace((process, builder.start()));
    // The server of a forked child's parent is not this process's to end.
    std::mem::forget(parent);
}

/// Returns `None` if no server is wanted, and `Some(None)` if it is wanted in the ring directory.
fn address_from_environment() -> Option<Option<ServerAddress>> {
    let value: OsString = std::env::var_os(SERVER_VARIABLE)?;
    match value.to_str().map(str::to_ascii_lowercase).as_deref() {
        Some("" | "0" | "no" | "false" | "off") => None,
        Some("1" | "yes" | "true" | "on") => Some(None),
        _ => Some(Some(ServerAddress::new(value))),
    }
}
