//! A client's connection to the server of another process.

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::socket::{self, Packet, Tried};
use super::state::{ClientWish, Domain, ProcessState, WishTime};
use super::switches::SwitchedDomain;
use super::wire::{Answer, ClientRequest, DomainAnswer, MESSAGE_BYTES_MAX, ServedInfo, WishInfo, WishLife};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that a server has for an answer. A server answers in less than a millisecond, unless its process is
/// stopped.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect to a server that has no room for connections.
const CONNECT_PAUSE: Duration = Duration::from_millis(5);
/// The largest number of changes that are kept for [`Process::changes`].
const CHANGES_MAX: usize = 4096;

/// A process that runs a server, as a client sees it. Dropping it closes the connection: wishes that live as long as
/// the client end then.
///
/// ```
/// use eventring::control::{Process, Server};
/// use eventring::reader::Reader;
/// use eventring::recorder::{ContentDescription, Recorder};
///
/// let server = Server::builder().abstract_name("orders-control").start()?;
/// let ring = Recorder::builder(ContentDescription::new(300, "ORDERS")).anonymous().build()?;
/// ring.record(2, [0; 4], b"ordered");
/// // In another process:
/// let process = Process::connect(server.address())?;
/// let file = process.files()?.into_iter().find(|file| file.content_name() == "ORDERS").expect("it is served");
/// let reader = Reader::options().open_fd(process.import(&file)?)?;
/// assert_eq!(reader.info().last_seqno, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Process {
    address: ServerAddress,
    pid: u32,
    program: String,
    may_switch: bool,
    clients: u32,
    /// A descriptor that becomes readable when the process has ended, if there is one.
    end: Option<OwnedFd>,
    line: Mutex<ServerLine>,
}

/// The connection, and what came over it without a request.
struct ServerLine {
    socket: OwnedFd,
    /// The process that serves, as the kernel knows it; 0 if it is in another pid namespace.
    pid: u32,
    /// The time that the server has for an answer.
    patience: Duration,
    last_number: u32,
    changes: VecDeque<FileChange>,
    is_gone: bool,
    buffer: Vec<u8>,
}

/// A ring that a server serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServedFile {
    info: ServedInfo,
}

/// A change of what a server serves.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileChange {
    /// The server serves this ring now.
    Added(ServedFile),
    /// The server no longer serves the ring with this number.
    Removed(u64),
}

impl Process {
    /// Connects to the server at this address.
    ///
    /// # Errors
    /// Returns an error if no server is there, if it refuses this process, or if it does not answer within 5 seconds.
    pub fn connect(address: &ServerAddress) -> Result<Self, ControlError> {
        Self::connect_timeout(address, ANSWER_PATIENCE)
    }

    /// Connects to the server at this address. The server has the time `timeout` for each answer, now and later. (It
    /// answers in less than a millisecond, unless its process is stopped or the machine is very busy.)
    ///
    /// # Errors
    /// The errors of [`Self::connect`], with this time in place of 5 seconds.
    pub fn connect_timeout(address: &ServerAddress, timeout: Duration) -> Result<Self, ControlError> {
        let socket = connect(address, timeout).map_err(|error| error.at(address))?;
        let server = socket::peer(&socket).ok().and_then(|peer| Pid::from_raw(peer.pid.as_raw_pid()));
        let end = server.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let line = ServerLine {
            socket,
            pid: server.map_or(0, |pid| pid.as_raw_pid().cast_unsigned()),
            patience: timeout,
            last_number: 0,
            changes: VecDeque::new(),
            is_gone: false,
            buffer: vec![0; MESSAGE_BYTES_MAX],
        };
        let mut process = Self {
            address: address.clone(),
            pid: 0,
            program: String::new(),
            may_switch: false,
            clients: 0,
            end,
            line: Mutex::new(line),
        };
        let (answer, _) = process.ask(&ClientRequest::Hello { program: crate::shm::program_name() })?;
        let Answer::Welcome { pid, program, may_switch, clients } = answer else { return Err(process.unexpected()) };
        (process.pid, process.program, process.may_switch, process.clients) = (pid, program, may_switch, clients);
        Ok(process)
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns the process id, as the process itself knows it. In another pid namespace it has another number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the name of the program.
    #[must_use]
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Returns true if this client may switch on what the process records.
    #[must_use]
    pub fn may_switch(&self) -> bool {
        self.may_switch
    }

    /// Returns how many other clients the server had when this one connected.
    #[must_use]
    pub fn other_clients(&self) -> u32 {
        self.clients
    }

    /// Returns the rings that the server serves.
    ///
    /// # Errors
    /// Returns an error if the process has ended, or does not answer.
    pub fn files(&self) -> Result<Vec<ServedFile>, ControlError> {
        self.list(&ClientRequest::List)
    }

    /// Returns the rings that the server serves. From now on, [`Self::changes`] returns the rings that come and go.
    ///
    /// # Errors
    /// Returns an error if the process has ended, or does not answer.
    pub fn follow(&self) -> Result<Vec<ServedFile>, ControlError> {
        self.list(&ClientRequest::Follow)
    }

    /// Returns the changes since the last call. Never waits.
    pub fn changes(&self) -> Vec<FileChange> {
        let mut line = self.line();
        while let Ok(Some(_)) = line.receive() {}
        line.changes.drain(..).collect()
    }

    /// Returns a descriptor of a ring, which can only read.
    ///
    /// # Errors
    /// Returns an error if the server no longer serves the ring, or if the process has ended.
    pub fn import(&self, file: &ServedFile) -> Result<OwnedFd, ControlError> {
        let ServedInfo { id, content_type, schema_hash, .. } = file.info;
        match self.ask(&ClientRequest::Import { id, content_type, schema_hash })? {
            (Answer::Imported { .. }, Some(descriptor)) => Ok(descriptor),
            _ => Err(self.unexpected()),
        }
    }

    /// Asks to switch on what a directive names. Returns what the server says about it, or an empty text.
    ///
    /// # Errors
    /// Returns an error if the directive is wrong, if this user may not switch, or if the process has ended.
    pub fn wish(&self, directive: &str, time: WishTime) -> Result<String, ControlError> {
        let life = match time {
            WishTime::Connection => WishLife::Client,
            WishTime::For(time) => WishLife::Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            WishTime::Kept => WishLife::Kept,
        };
        match self.ask(&ClientRequest::Wish { life, directive: directive.to_owned() })? {
            (Answer::Granted { note, .. }, _) => Ok(note),
            _ => Err(self.unexpected()),
        }
    }

    /// Takes back all wishes with this directive: those of this user, or for root those of all users. Returns how many
    /// there were.
    ///
    /// # Errors
    /// Returns an error if this user may not switch, or if the process has ended.
    pub fn withdraw(&self, directive: &str) -> Result<u64, ControlError> {
        match self.ask(&ClientRequest::Withdraw { directive: directive.to_owned() })? {
            (Answer::End { count }, _) => Ok(count),
            _ => Err(self.unexpected()),
        }
    }

    /// Returns what the process records, and who wants it.
    ///
    /// # Errors
    /// Returns an error if the process has ended, or does not answer.
    pub fn state(&self) -> Result<ProcessState, ControlError> {
        let mut state = ProcessState::default();
        let ended = self.ask_all(&ClientRequest::State, |answer| match answer {
            Answer::State { configured, effective } => (state.configured, state.effective) = (configured, effective),
            Answer::Wish(WishInfo { pid, uid, until_epoch_nanos, directive }) => {
                let until_epoch_nanos = Some(until_epoch_nanos).filter(|nanos| *nanos > 0);
                state.wishes.push(ClientWish { pid, user: uid, directive, until_epoch_nanos });
            }
            Answer::Domain(DomainAnswer(SwitchedDomain { name, is_enabled, is_forbidden })) => {
                state.domains.push(Domain { name, is_enabled, is_forbidden });
            }
            _ => {}
        });
        ended.map(|()| state)
    }

    /// Returns true if the process or its server is known to have ended.
    pub fn is_gone(&self) -> bool {
        if self.end.as_ref().is_some_and(|end| is_readable(end, Duration::ZERO)) {
            return true;
        }
        let mut line = self.line();
        while let Ok(Some(_)) = line.receive() {}
        line.is_gone
    }

    fn list(&self, request: &ClientRequest) -> Result<Vec<ServedFile>, ControlError> {
        let mut files = Vec::new();
        self.ask_all(request, |answer| {
            if let Answer::File(info) = answer {
                files.push(ServedFile { info });
            }
        })?;
        Ok(files)
    }

    /// Sends a request, and returns its one answer.
    fn ask(&self, request: &ClientRequest) -> Result<(Answer, Option<OwnedFd>), ControlError> {
        let mut line = self.line();
        let number = line.send(request).map_err(|error| error.at(&self.described()))?;
        line.answer(number).map_err(|error| error.at(&self.described()))
    }

    /// Sends a request, and calls `each` with its answers up to the last one.
    fn ask_all(&self, request: &ClientRequest, mut each: impl FnMut(Answer)) -> Result<(), ControlError> {
        let mut line = self.line();
        let number = line.send(request).map_err(|error| error.at(&self.described()))?;
        loop {
            match line.answer(number).map_err(|error| error.at(&self.described()))? {
                (Answer::End { .. }, _) => return Ok(()),
                (answer, _) => each(answer),
            }
        }
    }

    /// Gives the server another time for its answers.
    pub(super) fn set_patience(&self, patience: Duration) {
        self.line().patience = patience;
    }

    /// Returns the process in words, for messages: its program and its number, if they are known, and its address.
    fn described(&self) -> String {
        match self.pid {
            0 => self.address.to_string(),
            pid => format!("{} (process {pid}, {})", self.program, self.address),
        }
    }

    fn line(&self) -> MutexGuard<'_, ServerLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unexpected(&self) -> ControlError {
        ControlError::new(ControlErrorKind::BadMessage, "the server has given another answer than the expected one")
            .at(&self.described())
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("address", &self.address).field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl ServerLine {
    fn send(&mut self, request: &ClientRequest) -> Result<u32, ControlError> {
        self.last_number = self.last_number.wrapping_add(1).max(1);
        let bytes = request.encode(self.last_number);
        let start = Instant::now();
        loop {
            match socket::send(&self.socket, &bytes, None) {
                Tried::Done(()) => return Ok(self.last_number),
                // A server that has refused this client has closed the connection. Its reason may still be there.
                Tried::Gone => return Ok(self.last_number),
                Tried::NotNow if start.elapsed() > self.patience => return Err(no_answer(self.pid, self.patience)),
                Tried::NotNow => std::thread::sleep(CONNECT_PAUSE),
            }
        }
    }

    /// Returns the next answer to the request with this number.
    fn answer(&mut self, number: u32) -> Result<(Answer, Option<OwnedFd>), ControlError> {
        let start = Instant::now();
        loop {
            match self.receive()? {
                // A refusal with the number 0 ends the connection.
                Some((0, Answer::Refused { kind, text }, _)) => return Err(ControlError::new(kind, text)),
                Some((found, Answer::Refused { kind, text }, _)) if found == number => {
                    return Err(ControlError::new(kind, text));
                }
                Some((found, answer, descriptor)) if found == number => return Ok((answer, descriptor)),
                Some(_) => {}
                None if self.is_gone => {
                    return Err(ControlError::new(ControlErrorKind::Gone, "the process or its server has ended"));
                }
                None => {
                    let left = self.patience.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Err(no_answer(self.pid, self.patience));
                    }
                    is_readable(&self.socket, left);
                }
            }
        }
    }

    /// Receives a message if one is there. Keeps changes of the served files.
    fn receive(&mut self) -> Result<Option<(u32, Answer, Option<OwnedFd>)>, ControlError> {
        if self.is_gone {
            return Ok(None);
        }
        let Packet { bytes, descriptor, .. } = match socket::receive(&self.socket, &mut self.buffer) {
            Tried::Done(packet) => packet,
            Tried::NotNow => return Ok(None),
            Tried::Gone => {
                self.is_gone = true;
                return Ok(None);
            }
        };
        let decoded = Answer::decode(&bytes);
        let (number, answer) =
            decoded.map_err(|fault| ControlError::new(ControlErrorKind::BadMessage, fault.to_string()))?;
        let change = match &answer {
            Answer::Added(info) => Some(FileChange::Added(ServedFile { info: info.clone() })),
            Answer::Removed { id } => Some(FileChange::Removed(*id)),
            _ => None,
        };
        if let Some(change) = change.filter(|_| self.changes.len() < CHANGES_MAX) {
            self.changes.push_back(change);
        }
        Ok(Some((number, answer, descriptor)))
    }
}

impl ServedFile {
    /// Returns the number of the ring at its server. No other ring of this server ever has it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.info.id
    }

    /// Returns the name of the ring.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Returns the path of the ring's file, or `None` if the ring is in anonymous memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        Some(Path::new(&self.info.path)).filter(|path| *path != PathBuf::new())
    }

    /// Returns the code of the content type.
    #[must_use]
    pub fn content_type(&self) -> u16 {
        self.info.content_type
    }

    /// Returns the name of the content type.
    #[must_use]
    pub fn content_name(&self) -> &str {
        &self.info.content_name
    }

    /// Returns the hash of the schema.
    #[must_use]
    pub fn schema_hash(&self) -> [u8; 32] {
        self.info.schema_hash
    }

    /// Returns the size of the ring's file in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.info.bytes
    }

    /// Returns the number that all shards of one recorder share, and the index of this shard. Returns `None` if the
    /// ring is no shard.
    #[must_use]
    pub fn shard(&self) -> Option<(u64, u32)> {
        (self.info.shard_group != 0).then_some((self.info.shard_group, self.info.shard_index))
    }

    /// Returns true if the ring is a shard other than shard 0. A reader finds such shards by itself, through shard 0.
    #[must_use]
    pub fn is_further_shard(&self) -> bool {
        self.shard().is_some_and(|(_, index)| index != 0)
    }
}

fn connect(address: &ServerAddress, patience: Duration) -> Result<OwnedFd, ControlError> {
    let failed = |error: Errno| {
        let start_one = "start the program with EVENTRING_SERVER=1, or start a server in it";
        let (kind, mend) = match error {
            Errno::NOENT | Errno::CONNREFUSED | Errno::NOTSOCK | Errno::PROTOTYPE | Errno::NAMETOOLONG => {
                (ControlErrorKind::NoServer, start_one)
            }
            Errno::ACCESS | Errno::PERM => (ControlErrorKind::PermissionDenied, REACHABLE),
            _ => (ControlErrorKind::Io, start_one),
        };
        let error = std::io::Error::from(error);
        ControlError::new(kind, format!("connect to the server: {error}; {mend}"))
    };
    let socket_address = address.to_socket_address().map_err(failed)?;
    let start = Instant::now();
    loop {
        match socket::connect(&socket_address) {
            // The server has not accepted earlier connections yet.
            Err(Errno::AGAIN) if start.elapsed() < patience => std::thread::sleep(CONNECT_PAUSE),
            Err(Errno::AGAIN) => return Err(no_answer(0, patience)),
            connected => return connected.map_err(failed),
        }
    }
}

/// Advice for a user who may not reach a socket.
pub(super) const REACHABLE: &str = "a ring directory is for the user and the group of the program; give the server an \
                                    address that this user can reach (EVENTRING_SERVER=/tmp/NAME.sock or @NAME), and let \
                                    the program allow this user";

/// Waits until a descriptor is readable. Returns false if it did not become readable in this time.
fn is_readable(descriptor: &OwnedFd, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Returns the error of a server that does not answer. `pid` is 0 if its process is not known.
fn no_answer(pid: u32, patience: Duration) -> ControlError {
    let process = if pid == 0 { "the process that serves".to_owned() } else { format!("process {pid}") };
    let text = format!("{process} does not answer (for {} ms): it may be stopped", patience.as_millis());
    ControlError::new(ControlErrorKind::NoAnswer, text)
}
