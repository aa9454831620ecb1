//! One client of a server.

use crate::control::socket::{self, Packet, Tried};
use crate::control::wire::{Answer, WireMessage};
use crate::shm::{UninheritedFd, is_all_read};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest size in bytes of the messages that a client has not taken yet. A client that does not read is given up
/// at this size.
pub(super) const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The estimated memory of a message beside its bytes.
pub(super) const MESSAGE_BYTES: usize = 64;
/// The first and the longest time until a message is sent again that could not be sent, and until the server looks
/// again whether a client has taken a descriptor.
pub(super) const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(256)];

/// A client.
pub(super) struct Connection {
    pub(super) socket: UninheritedFd,
    /// A descriptor that becomes readable when the client's process has ended. It is not there if the kernel has no
    /// pidfds, or if the process is in a pid namespace that this process does not see. A child that the client has
    /// forked may keep the connection open, so the end of the connection is not enough.
    pub(super) process: Option<UninheritedFd>,
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) may_switch: bool,
    pub(super) has_greeted: bool,
    pub(super) follows: bool,
    pub(super) since: Instant,
    /// The time at which kept messages are sent again, if there are some.
    pub(super) next_try: Option<Instant>,
    pause: Duration,
    /// True if a descriptor was sent that the client may not have taken yet. The kernel limits how many descriptors of
    /// a user are on their way, in all programs of the user together.
    has_descriptor_on_its_way: bool,
    unsent: VecDeque<(Vec<u8>, Option<Arc<OwnedFd>>)>,
    unsent_bytes: usize,
}

/// The client has ended, or must be given up.
pub(super) struct Lost;

impl Connection {
    pub(super) fn new(socket: UninheritedFd, pid: u32, uid: u32) -> Self {
        Self {
            socket,
            process: None,
            pid,
            uid,
            may_switch: false,
            has_greeted: false,
            follows: false,
            since: Instant::now(),
            next_try: None,
            pause: PAUSES[0],
            has_descriptor_on_its_way: false,
            unsent: VecDeque::new(),
            unsent_bytes: 0,
        }
    }

    /// Watches the process of the client.
    pub(super) fn watch_process(&mut self) {
        let process = Pid::from_raw(self.pid.cast_signed());
        self.process = process.and_then(|pid| UninheritedFd::make(|| pidfd_open(pid, PidfdFlags::empty())).ok());
    }

    /// Receives the next message, or returns `None` if there is none.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<Packet>, Lost> {
        match socket::receive(&self.socket, buffer) {
            Tried::Done(packet) => Ok(Some(packet)),
            Tried::NotNow => Ok(None),
            Tried::Gone => Err(Lost),
        }
    }

    /// Ends the connection. Returns its socket if it holds a descriptor that the client may not have taken.
    pub(super) fn end(self) -> Option<UninheritedFd> {
        (self.has_descriptor_on_its_way && !is_all_read(&self.socket)).then_some(self.socket)
    }

    /// Sends a message, or keeps it until the client has room.
    pub(super) fn send(&mut self, number: u32, answer: &Answer, descriptor: Option<Arc<OwnedFd>>) -> Result<(), Lost> {
        let bytes = answer.encode(number);
        self.unsent_bytes += bytes.len() + MESSAGE_BYTES;
        self.unsent.push_back((bytes, descriptor));
        if self.unsent_bytes > UNSENT_BYTES_MAX {
            return Err(Lost);
        }
        if self.next_try.is_some() { Ok(()) } else { self.flush() }
    }

    /// Sends kept messages, as far as that is possible now. [`Self::next_try`] says when to call it again.
    ///
    /// That is after a pause, and not when the kernel says that the client has room: it also says so when a message
    /// cannot be sent for another reason.
    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        self.next_try = None;
        while let Some((bytes, descriptor)) = self.unsent.front() {
            let must_wait = descriptor.is_some() && self.has_descriptor_on_its_way && !is_all_read(&self.socket);
            let descriptor = descriptor.as_ref().map(|descriptor| descriptor.as_fd());
            match if must_wait { Tried::NotNow } else { socket::send(&self.socket, bytes, descriptor) } {
                Tried::Done(()) => {
                    self.has_descriptor_on_its_way |= descriptor.is_some();
                    self.pause = PAUSES[0];
                    self.unsent_bytes -= bytes.len() + MESSAGE_BYTES;
                    self.unsent.pop_front();
                }
                Tried::NotNow => {
                    self.next_try = Some(Instant::now() + self.pause);
                    self.pause = (self.pause * 2).min(PAUSES[1]);
                    return Ok(());
                }
                Tried::Gone => return Err(Lost),
            }
        }
        Ok(())
    }
}
