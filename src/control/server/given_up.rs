//! Ended connections with a descriptor that the client may not have received.
//!
//! The kernel counts a descriptor that was sent and not received (*in flight*) for the user of this process, until the
//! client receives it or all copies of the client's socket are closed. The count stays even if the server has closed
//! its side. So the server continues to count these connections as clients.

use super::connection::PAUSES;
use crate::shm::{UninheritedFd, is_all_read};
use rustix::net::{Shutdown, shutdown};
use std::time::{Duration, Instant};

/// The sockets of such connections, each with the user of its client.
#[derive(Default)]
pub(super) struct GivenUp {
    sockets: Vec<(UninheritedFd, u32)>,
    /// The time of the next look at them, if there are some.
    pub(super) next_look: Option<Instant>,
    pause: Duration,
}

impl GivenUp {
    /// Keeps the socket of a connection that has ended. The client sees the end.
    pub(super) fn keep(&mut self, socket: UninheritedFd, user: u32) {
        let _ = shutdown(&socket, Shutdown::Both);
        self.sockets.push((socket, user));
        self.pause = PAUSES[0];
        self.next_look = Some(Instant::now() + self.pause);
    }

    /// Forgets the connections in which nothing lies any more.
    pub(super) fn look(&mut self) {
        self.sockets.retain(|(socket, _)| !is_all_read(socket));
    }

    /// Looks if it is time. The kernel does not tell when a client takes something.
    pub(super) fn look_in_time(&mut self) {
        let now = Instant::now();
        if self.next_look.is_some_and(|time| time <= now) {
            self.look();
            self.pause = (self.pause * 2).min(PAUSES[1]);
            self.next_look = (!self.sockets.is_empty()).then(|| now + self.pause);
        }
    }

    /// Returns the user of each place that is taken.
    pub(super) fn users(&self) -> impl Iterator<Item = u32> {
        self.sockets.iter().map(|(_, user)| *user)
    }
}
