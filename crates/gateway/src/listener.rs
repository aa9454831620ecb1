//! Connections before they become clients: each has a few seconds to ask for a WebSocket, and does not count as a
//! client.

use crate::client::Client;
use crate::handshake::{Answer, REQUEST_BYTES_MAX, answer, head_len};
use crate::hub::{Hub, client_slot};
use crate::line::Line;
use crate::wire::discard_input;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// The number of clients at a time. Further ones are refused.
const CLIENTS_MAX: usize = 1000;
/// The number of connections that have not asked yet. If there are more, the oldest one is closed.
const PENDING_MAX: usize = 512;
/// The time from the connection to the end of the request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a connection has to read why it is refused.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of connections that are accepted until those that are there are looked at.
const ACCEPTED_OF_TURN: usize = 64;
const TICK: Duration = Duration::from_millis(50);
const LISTENER: Token = Token(0);

/// A listener, and the connections that have not asked yet, by their tokens.
pub(crate) struct Listener<'a> {
    pub(crate) listener: TcpListener,
    pub(crate) poll: Poll,
    pub(crate) hub: &'a Arc<Hub>,
    /// The origins of web pages that may connect.
    pub(crate) origins: &'a [String],
    pub(crate) workers: Vec<Sender<Client>>,
    pending: BTreeMap<usize, Pending>,
    clients: u64,
    refused: u64,
}

struct Pending {
    stream: TcpStream,
    received: Vec<u8>,
    until: Instant,
    is_refused: bool,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(
        listener: TcpListener,
        poll: Poll,
        hub: &'a Arc<Hub>,
        origins: &'a [String],
        workers: Vec<Sender<Client>>,
    ) -> Self {
        Self { listener, poll, hub, origins, workers, pending: BTreeMap::new(), clients: 0, refused: 0 }
    }

    /// Lets clients in until the hub has ended. Returns how many came, and how many were refused.
    pub(crate) fn run(mut self) -> (u64, u64) {
        let mut events = Events::with_capacity(1024);
        let (mut can_accept, mut next_token) = (true, 1);
        if self.poll.registry().register(&mut self.listener, LISTENER, Interest::READABLE).is_err() {
            return (0, 0);
        }
        while !self.hub.has_ended() {
            let wait = if can_accept { Duration::from_millis(1) } else { TICK };
            if self.poll.poll(&mut events, Some(wait)).is_err() {
                events.clear();
            }
            for event in &events {
                match event.token() {
                    LISTENER => can_accept = true,
                    Token(token) => self.hear(token),
                }
            }
            for _ in 0..ACCEPTED_OF_TURN {
                match self.listener.accept() {
                    Ok((stream, _)) => self.accepted(next_token, stream),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        can_accept = false;
                        break;
                    }
                    // There may be no file descriptors left.
                    Err(_) => {
                        self.pending.pop_first();
                        break;
                    }
                }
                next_token += 1;
            }
            let now = Instant::now();
            self.pending.retain(|_, pending| now < pending.until);
        }
        (self.clients, self.refused)
    }

    fn accepted(&mut self, token: usize, mut stream: TcpStream) {
        if self.pending.len() >= PENDING_MAX {
            self.pending.pop_first();
        }
        let _ = stream.set_nodelay(true);
        if self.poll.registry().register(&mut stream, Token(token), Interest::READABLE).is_ok() {
            let until = Instant::now() + REQUEST_TIMEOUT;
            self.pending.insert(token, Pending { stream, received: Vec::new(), until, is_refused: false });
            self.hear(token);
        }
    }

    /// Reads what a connection says, and answers when that is a whole request.
    fn hear(&mut self, token: usize) {
        let Some(mut pending) = self.pending.remove(&token) else { return };
        if pending.is_refused {
            if !discard_input(&mut pending.stream) {
                self.pending.insert(token, pending);
            }
            return;
        }
        let mut buffer = [0; 4096];
        let is_at_end = loop {
            // The end of the request may be in two pieces.
            let looked_at = pending.received.len().saturating_sub(3);
            match pending.stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => pending.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            if pending.received.len() > REQUEST_BYTES_MAX || head_len(&pending.received[looked_at..]).is_some() {
                break true;
            }
        };
        // A request begins with the name of its method.
        if pending.received.first().is_some_and(|first| !first.is_ascii_uppercase()) {
            return;
        }
        if !is_at_end {
            self.pending.insert(token, pending);
            return;
        }
        match answer(&pending.received, self.origins) {
            Answer::Accepted(response) => self.upgrade(token, pending, &response),
            Answer::Refused(status, why) => self.refuse(token, pending, status, why),
        }
    }

    fn upgrade(&mut self, token: usize, mut pending: Pending, response: &[u8]) {
        let Some(client_slot) = client_slot(self.hub, CLIENTS_MAX) else {
            return self.refuse(
                token,
                pending,
                "503 Service Unavailable",
                "There are 1,000 clients already: try later.",
            );
        };
        // A new connection takes so few bytes at once.
        if self.poll.registry().deregister(&mut pending.stream).is_err() || pending.stream.write_all(response).is_err()
        {
            return;
        }
        let head = head_len(&pending.received).unwrap_or(pending.received.len());
        let line = Line::new(pending.stream, pending.received.split_off(head));
        if let Some(worker) = self.workers.get(self.clients as usize % self.workers.len().max(1))
            && worker.send(Client::new(line, client_slot)).is_ok()
        {
            self.clients += 1;
            self.hub.wake();
        }
    }

    fn refuse(&mut self, token: usize, mut pending: Pending, status: &str, why: &str) {
        self.refused += u64::from(!status.starts_with('4') || status.starts_with("403"));
        let answer = format!(
            "HTTP/1.1 {status}\r\nUpgrade: websocket\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{why}\n",
            why.len() + 1
        );
        let _ = pending.stream.write_all(answer.as_bytes());
        let _ = pending.stream.shutdown(Shutdown::Write);
        // It is closed when the other side has read that, or soon.
        (pending.is_refused, pending.until) = (true, Instant::now() + REFUSAL_TIMEOUT);
        if !discard_input(&mut pending.stream) {
            self.pending.insert(token, pending);
        }
    }
}
