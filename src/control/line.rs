//! A client's end of a connection: requests, their answers, and unrequested messages.
//!
//! The server may be hostile. So the client limits the time and the size of all answers to one request. It also limits
//! the total time of its waits on a connection: to four times the limit for one request, plus half of the connection's
//! age.

use super::address::ServerAddress;
use super::error::{ControlError, ControlErrorKind};
use super::served_file::{FileChange, ServedFile};
use super::shares;
use super::socket::{self, Packet, Tried};
use super::wire::{Answer, ClientRequest, MESSAGE_BYTES_MAX, WireMessage};
use crate::shm::process_and_user;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The time that a server has for an answer. A server answers in less than a millisecond, unless its process is
/// stopped.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The times of answers that a server may take together, beside half of the time since the connection was made.
const ANSWERS_IN_A_ROW: u32 = 4;
/// The pause between two attempts to send to a server that does not read.
const SEND_PAUSE: Duration = Duration::from_millis(5);
/// The largest size of the answers to a request. Each message counts as [`MESSAGE_BYTES`] more than its bytes: an
/// answer has at most 16,384 messages.
const ANSWERS_BYTES_MAX: usize = 32 << 20;
const MESSAGE_BYTES: usize = 2 << 10;
/// The largest number of changes that are kept, and of messages that are taken at once without a request.
const CHANGES_MAX: usize = 4096;

/// The process that serves, as the kernel knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// 0 if the process is in another pid namespace.
    pub(super) pid: u32,
    pub(super) user: u32,
}

/// The connection, and what came over it without a request.
pub(super) struct ServerLine {
    socket: OwnedFd,
    peer: Peer,
    /// The time that the server has for an answer.
    pub(super) timeout: Duration,
    since: Instant,
    /// The time for which this client has waited for answers.
    waited: Duration,
    last_number: u32,
    changes: VecDeque<FileChange>,
    pub(super) is_gone: bool,
    buffer: Vec<u8>,
}

/// A request that was sent, and what is left of the time and the size of its answers.
pub(super) struct Asked {
    number: u32,
    until: Instant,
    bytes_left: usize,
    has_begun: bool,
}

/// A message of the server.
struct Received {
    number: u32,
    answer: Answer,
    descriptor: Option<OwnedFd>,
    bytes: usize,
}

impl ServerLine {
    pub(super) fn open(address: &ServerAddress, timeout: Duration) -> Result<Self, ControlError> {
        let socket = connect(address, timeout)?;
        let peer = process_and_user(&socket).map_err(|error| ControlError::io("ask who the server is", error))?;
        let peer = Peer { pid: peer.0, user: peer.1 };
        Ok(Self {
            socket,
            peer,
            timeout,
            since: Instant::now(),
            waited: Duration::ZERO,
            last_number: 0,
            changes: VecDeque::new(),
            is_gone: false,
            buffer: vec![0; MESSAGE_BYTES_MAX],
        })
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    pub(super) fn send(&mut self, request: &ClientRequest) -> Result<Asked, ControlError> {
        self.last_number = self.last_number.wrapping_add(1).max(1);
        let bytes = request.encode(self.last_number);
        let now = Instant::now();
        let left = (self.timeout * ANSWERS_IN_A_ROW + self.since.elapsed() / 2).saturating_sub(self.waited);
        let until = now + left.min(self.timeout);
        let asked = Asked { number: self.last_number, until, bytes_left: ANSWERS_BYTES_MAX, has_begun: false };
        loop {
            match socket::send(&self.socket, &bytes, None) {
                // A server that has refused this client has closed the connection. Its reason may still be there.
                Tried::Done(()) | Tried::Gone => return Ok(asked),
                Tried::NotNow if Instant::now() >= until => return Err(self.no_answer(&asked)),
                Tried::NotNow => self.wait(|_| std::thread::sleep(SEND_PAUSE)),
            }
        }
    }

    /// Returns the next answer to a request.
    pub(super) fn answer(&mut self, asked: &mut Asked) -> Result<(Answer, Option<OwnedFd>), ControlError> {
        loop {
            match self.receive()? {
                // A refusal with the number 0 ends the connection.
                Some(Received { number, answer: Answer::Refused { kind, text }, .. })
                    if number == 0 || number == asked.number =>
                {
                    return Err(ControlError::new(kind, text));
                }
                Some(Received { number, answer, descriptor, bytes }) if number == asked.number => {
                    asked.has_begun = true;
                    asked.bytes_left = asked.bytes_left.checked_sub(bytes + MESSAGE_BYTES).ok_or_else(|| {
                        let text = "the server's answer has no end: it has more than 16,384 messages or 32 MiB";
                        ControlError::new(ControlErrorKind::BadMessage, text)
                    })?;
                    return Ok((answer, descriptor));
                }
                None if self.is_gone => {
                    return Err(ControlError::new(ControlErrorKind::Gone, "the process or its server has ended"));
                }
                // Messages that nobody has asked for do not give the server more time.
                received => {
                    let left = asked.until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(self.no_answer(asked));
                    }
                    if received.is_none() {
                        self.wait(|line| _ = is_readable(&line.socket, left));
                    }
                }
            }
        }
    }

    /// Takes what has come without a request, as far as it has come by now.
    pub(super) fn take_changes(&mut self) -> VecDeque<FileChange> {
        self.look();
        std::mem::take(&mut self.changes)
    }

    /// Receives what has come without a request, and notices the end of the connection.
    pub(super) fn look(&mut self) {
        for _ in 0..CHANGES_MAX {
            if !matches!(self.receive(), Ok(Some(_))) {
                break;
            }
        }
    }

    /// Receives a message if one is there. Keeps changes of the served files.
    fn receive(&mut self) -> Result<Option<Received>, ControlError> {
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
            Answer::Added(info) => Some(FileChange::Added(ServedFile::new(info.clone()))),
            Answer::Removed { id } => Some(FileChange::Removed(*id)),
            _ => None,
        };
        if let Some(change) = change.filter(|_| self.changes.len() < CHANGES_MAX) {
            self.changes.push_back(change);
        }
        Ok(Some(Received { number, answer, descriptor, bytes: bytes.len() }))
    }

    fn wait(&mut self, wait: impl FnOnce(&Self)) {
        let start = Instant::now();
        wait(self);
        self.waited += start.elapsed();
    }

    /// Returns the error of a server that does not answer.
    fn no_answer(&self, asked: &Asked) -> ControlError {
        match asked.has_begun {
            false => no_answer(self.peer.pid, self.timeout),
            true => {
                let text = format!("the server has not ended its answer within {} ms", self.timeout.as_millis());
                ControlError::new(ControlErrorKind::NoAnswer, text)
            }
        }
    }
}

impl Peer {
    /// Returns the process in words. Names its user if this is not the user of this process.
    pub(super) fn in_words(self) -> String {
        let process = match self.pid {
            0 => "a process in another pid namespace".to_owned(),
            pid => format!("process {pid}"),
        };
        if self.is_stranger() { format!("{process} of user {}", self.user) } else { process }
    }

    /// Returns true if the process runs neither as the user of this process nor as root.
    pub(super) fn is_stranger(self) -> bool {
        !shares::is_own(self.user)
    }
}

fn connect(address: &ServerAddress, timeout: Duration) -> Result<OwnedFd, ControlError> {
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
    match socket::connect(&socket_address, timeout) {
        // The server has not accepted earlier connections yet.
        Err(Errno::AGAIN) => Err(no_answer(0, timeout)),
        connected => connected.map_err(failed),
    }
}

/// Advice for a user who may not reach a socket.
pub(super) const REACHABLE: &str = "a ring directory is for the user and the group of the program; give the server an \
                                    address that this user can reach (EVENTRING_SERVER=/tmp/NAME.sock or @NAME), and let \
                                    the program allow this user";

/// Waits until a descriptor is readable. Returns false if it did not become readable in this time.
pub(super) fn is_readable(descriptor: &OwnedFd, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    poll(&mut polled, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

/// Returns the error of a server that does not answer. `pid` is 0 if its process is not known.
fn no_answer(pid: u32, timeout: Duration) -> ControlError {
    let process = if pid == 0 { "the process that serves".to_owned() } else { format!("process {pid}") };
    let text = format!("{process} does not answer (for {} ms): it may be stopped", timeout.as_millis());
    ControlError::new(ControlErrorKind::NoAnswer, text)
}
