//! One client: requests in, messages out.

use crate::hub::{At, ClientSlot, Hub, room};
use crate::line::{Line, PIECE_BYTES, REQUEST_BYTES_MAX};
use crate::messages::{Lost, NO_ID, failure, notification, success};
use crate::params::Params;
use crate::subscription::Subscription;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tungstenite::error::ProtocolError;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message};

/// The number of subscriptions of a client.
const SUBSCRIPTIONS_MAX: usize = 64;
/// The number of addresses and topics that all of them compare.
const WANTED_MAX: usize = 4096;
/// The number of requests, and of looks at notifications, until it is another client's turn.
const REQUESTS_OF_TURN: usize = 4;
const STEPS_OF_TURN: usize = 16;

/// A client with its subscriptions.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) line: Line,
    subscriptions: Vec<Subscription>,
    next_id: u64,
    _seat: ClientSlot,
}

/// What comes of a client after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// There is more to do for it.
    Busy,
    /// It has everything.
    Idle,
    /// It does not take more now.
    Full,
    Gone,
}

impl Client {
    pub(crate) fn new(line: Line, client_slot: ClientSlot) -> Self {
        Self { line, subscriptions: Vec::new(), next_id: 1, _seat: client_slot }
    }

    /// Does some of what there is to do for the client. Never waits for it.
    pub(crate) fn turn(&mut self, hub: &Arc<Hub>, now: Instant) -> Turn {
        let turn = if self.line.is_closing() { Ok(Turn::Full) } else { self.advance(hub, now) };
        if let Err(error) = &turn
            && !self.fail(error, now)
        {
            return Turn::Gone;
        }
        match self.line.is_closing() {
            true if self.line.is_closed(now) => Turn::Gone,
            true => Turn::Full,
            false if self.line.is_stalled(now) => Turn::Gone,
            false => turn.unwrap_or(Turn::Full),
        }
    }

    fn advance(&mut self, hub: &Arc<Hub>, now: Instant) -> Result<Turn, Error> {
        self.line.flush()?;
        for _ in 0..REQUESTS_OF_TURN {
            // Who does not take answers is not asked for requests.
            if !self.line.has_room() {
                break;
            }
            match self.line.read()? {
                None => break,
                Some(Message::Text(text)) => self.request(text.as_str(), hub)?,
                Some(Message::Binary(_)) => {
                    self.line.send(failure(NO_ID, -32600, "expected a text message, found a binary one"), None)?;
                }
                Some(Message::Close(_)) => {
                    self.line.is_closed_by_client(now);
                    return Ok(Turn::Full);
                }
                Some(_) => {}
            }
        }
        let mut has_all = false;
        for _ in 0..STEPS_OF_TURN {
            if has_all || !self.line.has_room() {
                break;
            }
            has_all = self.step(hub)?;
        }
        self.line.flush()?;
        Ok(match self.line.has_room() {
            false => Turn::Full,
            true if has_all && !self.line.can_read => Turn::Idle,
            true => Turn::Busy,
        })
    }

    /// Tells the next thing to the subscription that is furthest behind. Returns true if none is behind.
    fn step(&mut self, hub: &Arc<Hub>) -> Result<bool, Error> {
        let furthest = self.subscriptions.iter_mut().min_by_key(|subscription| subscription.next);
        let Some(subscription) = furthest else { return Ok(true) };
        let next = match hub.at(subscription.next) {
            At::End => return Ok(true),
            At::Lost(lost) => {
                subscription.pass(lost);
                hub.lose(lost);
                self.line.send(notification(subscription.id, &Lost { lost }), None)?;
                return Ok(false);
            }
            At::Notification(next) => next,
        };
        let Some(message) = subscription.message(&next) else {
            subscription.pass(1);
            return Ok(false);
        };
        let len = message.len();
        let room = room(hub, if len > PIECE_BYTES { len } else { 0 });
        if room.is_none() {
            hub.lose(1);
            self.line.send(notification(subscription.id, &Lost { lost: 1 }), None)?;
            return Ok(false);
        }
        self.line.send(notification(subscription.id, &message), room)?;
        Ok(false)
    }

    fn request(&mut self, text: &str, hub: &Arc<Hub>) -> Result<(), Error> {
        let request = match serde_json::from_str::<&RawValue>(text) {
            Ok(request) => serde_json::from_str::<BTreeMap<String, &RawValue>>(request.get()).unwrap_or_default(),
            Err(error) => return self.line.send(failure(NO_ID, -32700, &format!("not JSON: {error}")), None),
        };
        let id = request.get("id").map_or(NO_ID, |id| id.get());
        let params = match request.get("params").map_or(Ok(Value::Null), |params| serde_json::from_str(params.get())) {
            Ok(params) => params,
            Err(why) => return self.line.send(failure(id, -32602, &format!("params: {why}")), None),
        };
        let method = request.get("method").and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let answer = match method.as_deref() {
            Some("eth_subscribe") => return self.subscribe(id, &params, hub),
            Some("eth_unsubscribe") => {
                let before = self.subscriptions.len();
                let ended = params[0].as_str().unwrap_or_default();
                self.subscriptions.retain(|subscription| format!("{:#x}", subscription.id) != ended);
                success(id, &(self.subscriptions.len() < before))
            }
            Some(other) => {
                let why = format!("there is no method {other}; there are eth_subscribe and eth_unsubscribe");
                failure(id, -32601, &why)
            }
            None => failure(id, -32600, "expected an object with `method`"),
        };
        self.line.send(answer, None)
    }

    /// Begins a subscription. If it goes on from a place, what was told since is told first.
    fn subscribe(&mut self, id: &str, params: &Value, hub: &Arc<Hub>) -> Result<(), Error> {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let why = "a connection has at most 64 subscriptions: end one, or open another";
            return self.line.send(failure(id, -32000, why), None);
        }
        let wanted: usize = self.subscriptions.iter().map(Subscription::wanted_len).sum();
        let made = Params::read(params).and_then(|params| {
            if wanted + params.wanted_len() > WANTED_MAX {
                return Err("a connection has at most 4,096 addresses and topics: open another one".to_owned());
            }
            let resumes = params.resume_from.is_some();
            let mut subscription = Subscription::new(self.next_id, params, hub.end());
            let (first, history) = if resumes { hub.history() } else { (0, Vec::new()) };
            let gap = subscription.resume(first, &history)?;
            Ok((subscription, gap))
        });
        let (subscription, gap) = match made {
            Ok(made) => made,
            Err(why) => return self.line.send(failure(id, -32602, &why), None),
        };
        self.next_id += 1;
        self.line.send(success(id, &format!("{:#x}", subscription.id)), None)?;
        if let Some(gap) = gap {
            self.line.send(notification(subscription.id, &gap), None)?;
        }
        self.subscriptions.push(subscription);
        Ok(())
    }

    /// Begins to close the connection because of an error. Returns false if there is no connection any more.
    fn fail(&mut self, error: &Error, now: Instant) -> bool {
        let (code, reason) = match error {
            Error::Capacity(_) => (CloseCode::Size, format!("a request has at most {REQUEST_BYTES_MAX} bytes")),
            Error::Utf8(_) => (CloseCode::Invalid, "a text message is not UTF-8".to_owned()),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return false,
            Error::Protocol(error) => (CloseCode::Protocol, error.to_string()),
            _ => return false,
        };
        self.line.close(code, reason, now);
        true
    }
}
