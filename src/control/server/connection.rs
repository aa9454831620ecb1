//! One client of a server.

use crate::control::socket::{self, Packet, Tried};
use crate::control::wire::Answer;
use crate::shm::UninheritedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// The largest size in bytes of the messages that a client has not taken yet. A client that does not read is given up
/// at this size.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The estimated memory of a message beside its bytes.
const MESSAGE_BYTES: usize = 64;

/// A client.
pub(super) struct Connection {
    pub(super) socket: UninheritedFd,
    /// A descriptor that becomes readable when the client's process has ended. It is not there if the kernel has no
    /// pidfds, or if the process is in a pid namespace that this process does not see. A child that the client has
    /// forked may keep the connection open, so the end of the connection is not enough.
    pub(super) process: Option<UninheritedFd>,
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) may_import: bool,
    pub(super) may_switch: bool,
    pub(super) has_greeted: bool,
    pub(super) follows: bool,
    pub(super) since: Instant,
    /// True if the server waits until the client has room for messages.
    pub(super) awaits_room: bool,
    unsent: VecDeque<(Vec<u8>, Option<Arc<OwnedFd>>)>,
    unsent_bytes: usize,
}

/// The client has ended, or must be given up.
pub(super) struct Lost;

impl Connection {
    pub(super) fn new(socket: UninheritedFd, pid: i32, uid: u32) -> Self {
        let process = Pid::from_raw(pid);
        let process = process.and_then(|pid| UninheritedFd::make(|| pidfd_open(pid, PidfdFlags::empty())).ok());
        Self {
            socket,
            process,
            pid: pid.cast_unsigned(),
            uid,
            may_import: false,
            may_switch: false,
            has_greeted: false,
            follows: false,
            since: Instant::now(),
            awaits_room: false,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
        }
    }

    /// Receives the next message, or returns `None` if there is none.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<Packet>, Lost> {
        match socket::receive(&self.socket, buffer) {
            Tried::Done(packet) => Ok(Some(packet)),
            Tried::NotNow => Ok(None),
            Tried::Gone => Err(Lost),
        }
    }

    /// Sends a message, or keeps it until the client has room.
    pub(super) fn send(&mut self, number: u32, answer: &Answer, descriptor: Option<Arc<OwnedFd>>) -> Result<(), Lost> {
        let bytes = answer.encode(number);
        self.unsent_bytes += bytes.len() + MESSAGE_BYTES;
        self.unsent.push_back((bytes, descriptor));
        if self.unsent_bytes > UNSENT_BYTES_MAX {
            return Err(Lost);
        }
        if self.awaits_room { Ok(()) } else { self.flush() }
    }

    /// Sends kept messages until the client has no room. [`Self::awaits_room`] then says so.
    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        while let Some((bytes, descriptor)) = self.unsent.front() {
            match socket::send(&self.socket, bytes, descriptor.as_ref().map(|descriptor| descriptor.as_fd())) {
                Tried::Done(()) => {
                    self.unsent_bytes -= bytes.len() + MESSAGE_BYTES;
                    self.unsent.pop_front();
                }
                Tried::NotNow => {
                    self.awaits_room = true;
                    return Ok(());
                }
                Tried::Gone => return Err(Lost),
            }
        }
        self.awaits_room = false;
        Ok(())
    }
}
