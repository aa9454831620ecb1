//! A client's connection to the server of another process.

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::line::{ANSWER_TIMEOUT, Peer, ServerLine, is_readable};
use super::served_file::{FileChange, NAME_BYTES_MAX, ServedFile, cut};
use super::state::{ClientOverride, Domain, OverrideTime, ProcessState};
use super::wire::{Answer, ClientRequest, OverrideInfo, OverrideLife, ServedInfo, SwitchedDomain};
use crate::shm;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A process that runs a server, as a client sees it. Dropping it closes the connection: filter overrides that live as
/// long as the client end then.
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
    peer: Peer,
    program: String,
    may_switch: bool,
    clients: u32,
    /// A descriptor that becomes readable when the process has ended, if there is one.
    end: Option<OwnedFd>,
    line: Mutex<ServerLine>,
}

impl Process {
    /// Connects to the server at this address.
    ///
    /// # Errors
    /// Returns an error if no server is there, if it refuses this process, or if it does not answer within 5 seconds.
    pub fn connect(address: &ServerAddress) -> Result<Self, ControlError> {
        Self::connect_timeout(address, ANSWER_TIMEOUT)
    }

    /// Connects to the server at this address. The server has the time `timeout` for each answer, now and later. (It
    /// answers in less than a millisecond, unless its process is stopped or the machine is very busy.)
    ///
    /// # Errors
    /// The errors of [`Self::connect`], with this time in place of 5 seconds.
    pub fn connect_timeout(address: &ServerAddress, timeout: Duration) -> Result<Self, ControlError> {
        let line = ServerLine::open(address, timeout).map_err(|error| error.at(address))?;
        let peer = line.peer();
        let end = Pid::from_raw(peer.pid.cast_signed()).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let mut process = Self {
            address: address.clone(),
            peer,
            program: String::new(),
            may_switch: false,
            clients: 0,
            end,
            line: Mutex::new(line),
        };
        let (answer, _) = process.ask(&ClientRequest::Hello { program: crate::shm::program_name() })?;
        // The kernel says which process serves. What the server says about it is not needed.
        let Answer::Welcome { pid: _, mut program, may_switch, clients } = answer else {
            return Err(process.unexpected());
        };
        cut(&mut program, NAME_BYTES_MAX);
        (process.program, process.may_switch, process.clients) = (program, may_switch, clients);
        Ok(process)
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// Returns the id of the process that serves, as the kernel knows it. It is 0 if the process is in a pid namespace
    /// that this process does not see.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.peer.pid
    }

    /// Returns the user of the process that serves, as the kernel knows it. If this is neither the user of this process
    /// nor root, everything that the server says is the word of a stranger.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.peer.user
    }

    /// Returns the process in words, with its user if this is neither the user of this process nor root.
    #[doc(hidden)]
    #[must_use]
    pub fn in_words(&self) -> String {
        self.peer.in_words()
    }

    /// Returns true if the process runs neither as the user of this process nor as root.
    #[doc(hidden)]
    #[must_use]
    pub fn is_stranger(&self) -> bool {
        self.peer.is_stranger()
    }

    /// Returns a name that leads to the process: `pid:N`, or the address of its server.
    #[doc(hidden)]
    #[must_use]
    pub fn short_name(&self) -> String {
        match self.peer.pid {
            0 => self.address.to_string(),
            pid => format!("pid:{pid}"),
        }
    }

    /// Returns the name of the program, as the server says.
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
        self.line().take_changes().into()
    }

    /// Returns a descriptor of a ring, which can only read.
    ///
    /// # Errors
    /// Returns an error if the server no longer serves the ring, if the process has ended, or if it runs as a
    /// [stranger](Self::is_stranger) and the ring is not in memory.
    pub fn import(&self, file: &ServedFile) -> Result<OwnedFd, ControlError> {
        let ServedInfo { id, content_type, schema_hash, .. } = file.info;
        match self.ask(&ClientRequest::Import { id, content_type, schema_hash })? {
            // A stranger may have made the file system (FUSE), and then each call that asks it can wait without end.
            (Answer::Imported { .. }, Some(descriptor)) if self.is_stranger() && !shm::is_in_memory(&descriptor) => {
                let text = format!(
                    "the ring {} of another user is not in memory, expected a file of /dev/shm or hugetlbfs, or a memfd; \
                     read it by its path if you trust that file system",
                    file.name()
                );
                Err(ControlError::new(ControlErrorKind::PermissionDenied, text).at(&self.described()))
            }
            (Answer::Imported { .. }, Some(descriptor)) => Ok(descriptor),
            (Answer::Imported { .. }, None) => {
                let text = "the answer came without its descriptor; this process may have as many open files as it may \
                            have: see `ulimit -n`";
                Err(ControlError::new(ControlErrorKind::Io, text).at(&self.described()))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Asks to switch on what a directive names. Returns what the server says about it, or an empty text.
    ///
    /// # Errors
    /// Returns an error if the directive is wrong, if this user may not switch, or if the process has ended.
    pub fn add_override(&self, directive: &str, time: OverrideTime) -> Result<String, ControlError> {
        let life = match time {
            OverrideTime::Connection => OverrideLife::Client,
            OverrideTime::For(time) => OverrideLife::Millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            OverrideTime::Kept => OverrideLife::Kept,
        };
        match self.ask(&ClientRequest::Override { life, directive: directive.to_owned() })? {
            (Answer::Granted { note, .. }, _) => Ok(note),
            _ => Err(self.unexpected()),
        }
    }

    /// Revokes all filter overrides with this directive: those of this user, or for root those of all users. Returns
    /// how many there were.
    ///
    /// # Errors
    /// Returns an error if this user may not switch, or if the process has ended.
    pub fn revoke(&self, directive: &str) -> Result<u64, ControlError> {
        match self.ask(&ClientRequest::Revoke { directive: directive.to_owned() })? {
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
            Answer::Override(OverrideInfo { pid, uid, until_epoch_nanos, directive }) => {
                let until_epoch_nanos = Some(until_epoch_nanos).filter(|nanos| *nanos > 0);
                state.overrides.push(ClientOverride { pid, user: uid, directive, until_epoch_nanos });
            }
            Answer::Domain(SwitchedDomain { name, is_enabled, is_forbidden }) => {
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
        line.look();
        line.is_gone
    }

    fn list(&self, request: &ClientRequest) -> Result<Vec<ServedFile>, ControlError> {
        let mut files = Vec::new();
        self.ask_all(request, |answer| {
            if let Answer::File(info) = answer {
                files.push(ServedFile::new(info));
            }
        })?;
        Ok(files)
    }

    /// Sends a request, and returns its one answer.
    fn ask(&self, request: &ClientRequest) -> Result<(Answer, Option<OwnedFd>), ControlError> {
        let mut line = self.line();
        let answered = line.send(request).and_then(|mut asked| line.answer(&mut asked));
        answered.map_err(|error| error.at(&self.described()))
    }

    /// Sends a request, and calls `each` with its answers up to the last one.
    fn ask_all(&self, request: &ClientRequest, mut each: impl FnMut(Answer)) -> Result<(), ControlError> {
        let mut line = self.line();
        let mut asked = line.send(request).map_err(|error| error.at(&self.described()))?;
        loop {
            match line.answer(&mut asked).map_err(|error| error.at(&self.described()))? {
                (Answer::End { .. }, _) => return Ok(()),
                (answer, _) => each(answer),
            }
        }
    }

    /// Gives the server another time for its answers.
    pub(super) fn set_timeout(&self, timeout: Duration) {
        self.line().timeout = timeout;
    }

    /// Returns the process in words, for messages: its program and its number, if they are known, and its address. A
    /// stranger's process is called that before it has greeted, too.
    fn described(&self) -> String {
        match self.program.as_str() {
            "" if self.is_stranger() => format!("{} ({})", self.address, self.in_words()),
            "" => self.address.to_string(),
            program => format!("{program} ({}, {})", self.in_words(), self.address),
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
        f.debug_struct("Process").field("address", &self.address).field("peer", &self.peer).finish_non_exhaustive()
    }
}
