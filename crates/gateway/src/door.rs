//! Connections before they are clients: each has a few seconds to ask for a WebSocket, and takes no client's place.

use crate::client::Client;
use crate::handshake::{Answer, REQUEST_BYTES_MAX, answer, head_len};
use crate::hub::{Hub, seat};
use crate::line::Line;
use crate::wire::throw_away;
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
const KNOCKS_MAX: usize = 512;
/// The time from the connection to the end of the request.
const KNOCK_LIMIT: Duration = Duration::from_secs(5);
/// The time that a connection has to read why it is refused.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);
/// The number of connections that are accepted until those that are there are looked at.
const ACCEPTED_OF_TURN: usize = 64;
const TICK: Duration = Duration::from_millis(50);
const LISTENER: Token = Token(0);

/// A listener, and the connections that have not asked yet, by their tokens.
pub(crate) struct Door<'a> {
    pub(crate) listener: TcpListener,
    pub(crate) poll: Poll,
    pub(crate) hub: &'a Arc<Hub>,
    /// The origins of web pages that may connect.
    pub(crate) origins: &'a [String],
    pub(crate) workers: Vec<Sender<Client>>,
    knocks: BTreeMap<usize, Knock>,
    clients: u64,
    refused: u64,
}

struct Knock {
    stream: TcpStream,
    heard: Vec<u8>,
    until: Instant,
    is_refused: bool,
}

impl<'a> Door<'a> {
    pub(crate) fn new(
        listener: TcpListener,
        poll: Poll,
        hub: &'a Arc<Hub>,
        origins: &'a [String],
        workers: Vec<Sender<Client>>,
    ) -> Self {
        Self { listener, poll, hub, origins, workers, knocks: BTreeMap::new(), clients: 0, refused: 0 }
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
                    Ok((stream, _)) => self.knocked(next_token, stream),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        can_accept = false;
                        break;
                    }
                    // There may be no file descriptors left.
                    Err(_) => {
                        self.knocks.pop_first();
                        break;
                    }
                }
                next_token += 1;
            }
            let now = Instant::now();
            self.knocks.retain(|_, knock| now < knock.until);
        }
        (self.clients, self.refused)
    }

    fn knocked(&mut self, token: usize, mut stream: TcpStream) {
        if self.knocks.len() >= KNOCKS_MAX {
            self.knocks.pop_first();
        }
        let _ = stream.set_nodelay(true);
        if self.poll.registry().register(&mut stream, Token(token), Interest::READABLE).is_ok() {
            let until = Instant::now() + KNOCK_LIMIT;
            self.knocks.insert(token, Knock { stream, heard: Vec::new(), until, is_refused: false });
            self.hear(token);
        }
    }

    /// Reads what a connection says, and answers when that is a whole request.
    fn hear(&mut self, token: usize) {
        let Some(mut knock) = self.knocks.remove(&token) else { return };
        if knock.is_refused {
            if !throw_away(&mut knock.stream) {
                self.knocks.insert(token, knock);
            }
            return;
        }
        let mut buffer = [0; 4096];
        let is_at_end = loop {
            // The end of the request may be in two pieces.
            let looked_at = knock.heard.len().saturating_sub(3);
            match knock.stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => knock.heard.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            if knock.heard.len() > REQUEST_BYTES_MAX || head_len(&knock.heard[looked_at..]).is_some() {
                break true;
            }
        };
        // A request begins with the name of its method.
        if knock.heard.first().is_some_and(|first| !first.is_ascii_uppercase()) {
            return;
        }
        if !is_at_end {
            self.knocks.insert(token, knock);
            return;
        }
        match answer(&knock.heard, self.origins) {
            Answer::Accepted(response) => self.let_in(token, knock, &response),
            Answer::Refused(status, why) => self.refuse(token, knock, status, why),
        }
    }

    fn let_in(&mut self, token: usize, mut knock: Knock, response: &[u8]) {
        let Some(seat) = seat(self.hub, CLIENTS_MAX) else {
            return self.refuse(token, knock, "503 Service Unavailable", "There are 1,000 clients already: try later.");
        };
        // A new connection takes so few bytes at once.
        if self.poll.registry().deregister(&mut knock.stream).is_err() || knock.stream.write_all(response).is_err() {
            return;
        }
        let head = head_len(&knock.heard).unwrap_or(knock.heard.len());
        let line = Line::new(knock.stream, knock.heard.split_off(head));
        if let Some(worker) = self.workers.get(self.clients as usize % self.workers.len().max(1))
            && worker.send(Client::new(line, seat)).is_ok()
        {
            self.clients += 1;
            self.hub.wake();
        }
    }

    fn refuse(&mut self, token: usize, mut knock: Knock, status: &str, why: &str) {
        self.refused += u64::from(!status.starts_with('4') || status.starts_with("403"));
        let answer = format!(
            "HTTP/1.1 {status}\r\nUpgrade: websocket\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{why}\n",
            why.len() + 1
        );
        let _ = knock.stream.write_all(answer.as_bytes());
        let _ = knock.stream.shutdown(Shutdown::Write);
        // It is closed when the other side has read that, or soon.
        (knock.is_refused, knock.until) = (true, Instant::now() + REFUSAL_LIMIT);
        if !throw_away(&mut knock.stream) {
            self.knocks.insert(token, knock);
        }
    }
}
