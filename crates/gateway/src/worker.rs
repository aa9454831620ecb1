//! A thread that serves some of the clients in turn.

use crate::client::{Client, Turn};
use crate::hub::Hub;
use crate::turns::Turns;
use mio::{Events, Interest, Poll, Token};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tungstenite::protocol::frame::coding::CloseCode;

/// The token of the waker.
pub(crate) const WAKE: Token = Token(usize::MAX);
/// The longest wait between two looks at what is due.
const TICK: Duration = Duration::from_millis(50);
/// How long clients may take what waits for them, after the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Serves clients until the hub has ended and they are gone. No client can hold this up.
pub(crate) fn run(mut poll: Poll, arrivals: &Receiver<Client>, hub: &Arc<Hub>) {
    let mut events = Events::with_capacity(1024);
    let mut clients: HashMap<usize, Client> = HashMap::new();
    let (mut next_token, mut turns) = (0, Turns::default());
    let mut drained = None;
    loop {
        let wait = if turns.is_any_waiting() { Duration::ZERO } else { TICK };
        if poll.poll(&mut events, Some(wait)).is_err() {
            events.clear();
        }
        for event in &events {
            if let Some(client) = clients.get_mut(&event.token().0) {
                client.line.can_read |= event.is_readable() || event.is_read_closed() || event.is_error();
                client.line.can_write |= event.is_writable() || event.is_write_closed() || event.is_error();
                turns.wait(event.token().0);
            }
        }
        for mut client in arrivals.try_iter() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            // Without it the connection is closed.
            if poll.registry().register(client.line.stream(), Token(next_token), interest).is_ok() {
                clients.insert(next_token, client);
                turns.wait(next_token);
                next_token += 1;
            }
        }
        let now = Instant::now();
        let is_last = hub.has_ended();
        let drain_end = *drained.get_or_insert(now + DRAIN_LIMIT);
        if !is_last {
            drained = None;
        }
        let close = |client: &mut Client| client.line.close(CloseCode::Away, "the gateway ends", now);
        if is_last && now >= drain_end {
            // Also those whose turn has not come.
            clients.values_mut().for_each(close);
        }
        turns.round(&mut clients, |client| {
            let turn = client.turn(hub, now);
            if is_last && turn == Turn::Idle {
                close(client);
            }
            turn
        });
        if is_last && clients.is_empty() {
            return;
        }
    }
}
