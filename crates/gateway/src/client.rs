//! One client: its requests, and the messages to it. Only the client's own task ever waits for the client.

use crate::hub::{At, ClientSlot, Hub, room};
use crate::messages::{Lost, NO_ID, failure, notification};
use crate::subscription::Subscription;
use eventring_door::part;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Bytes;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// The number of looks at notifications until it is another client's turn.
const STEPS_OF_TURN: usize = 16;
/// The longest request.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The longest piece of a message. A longer message is written in pieces, so that no buffer grows with it.
const PIECE_BYTES: usize = 32 << 10;
const READ_BYTES: usize = 4 << 10;
/// The time that a client has to take a piece that waits for it. Otherwise it is gone.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// How long a client may take what waits for it, after the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The longest time from a close frame to the end of the connection.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// A client with its subscriptions.
#[derive(Debug)]
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) next_id: u64,
    _slot: ClientSlot,
}

/// Why a connection ends.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has said that it closes the connection.
    ByClient,
    Close(CloseCode, String),
    /// There is no connection any more.
    Gone,
}

impl Client {
    /// Serves a client until it is gone, or there are no more notifications. It has a connection after its handshake,
    /// and what has come since.
    pub(crate) async fn serve(stream: std::net::TcpStream, rest: Bytes, hub: Arc<Hub>, slot: ClientSlot) {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(PIECE_BYTES)
            .max_message_size(Some(REQUEST_BYTES_MAX))
            .max_frame_size(Some(REQUEST_BYTES_MAX));
        let Ok(stream) = TcpStream::from_std(stream) else { return };
        let socket = WebSocketStream::from_partially_read(stream, rest.into(), Role::Server, Some(config)).await;
        hub.clients.fetch_add(1, Ordering::Relaxed);
        let mut client = Self { socket, hub: hub.clone(), subscriptions: Vec::new(), next_id: 1, _slot: slot };
        let is_quiet = AtomicBool::new(false);
        let end = tokio::select! {
            Err(end) = hub.turns.take(&is_quiet, client.talk(&is_quiet)) => end,
            () = async { hub.ended().await; sleep(DRAIN_LIMIT).await } => End::last(),
        };
        let close = async {
            _ = match end {
                End::Close(code, reason) => client.socket.close(Some(CloseFrame { code, reason: reason.into() })).await,
                End::ByClient => client.socket.flush().await,
                End::Gone => return,
            };
            part(client.socket.get_mut(), CLOSE_LIMIT).await;
        };
        _ = timeout(CLOSE_LIMIT, close).await;
    }

    /// Answers the client, and tells it what there is.
    async fn talk(&mut self, is_quiet: &AtomicBool) -> Result<Infallible, End> {
        let (mut news, mut is_behind) = (self.hub.news(), true);
        loop {
            if !is_behind {
                taken(self.socket.flush()).await?;
                if news.borrow().is_last {
                    return Err(End::last());
                }
                is_quiet.store(true, Ordering::Relaxed);
            }
            tokio::select! {
                message = self.socket.next() => {
                    // It is answered when it is its turn.
                    if is_quiet.swap(false, Ordering::Relaxed) {
                        yield_now().await;
                    }
                    self.hear(message.ok_or(End::Gone)??).await?;
                    is_behind = true;
                }
                _ = news.changed(), if !is_behind => is_behind = true,
                () = ready(()), if is_behind => {
                    is_behind = self.catch_up().await?;
                    if is_behind {
                        is_quiet.store(false, Ordering::Relaxed);
                        yield_now().await;
                    }
                }
            }
        }
    }

    /// Tells some of what the client has not been told. Returns true if there may be more.
    async fn catch_up(&mut self) -> Result<bool, End> {
        for _ in 0..STEPS_OF_TURN {
            if self.step().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn hear(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Text(text) => self.request(text.as_str()).await,
            Message::Binary(_) => {
                self.send(failure(NO_ID, -32600, "expected a text message, found a binary one")).await
            }
            Message::Close(_) => Err(End::ByClient),
            _ => Ok(()),
        }
    }

    /// Tells the next thing to the subscription that is furthest behind. Returns true if none is behind.
    async fn step(&mut self) -> Result<bool, End> {
        let furthest = self.subscriptions.iter_mut().min_by_key(|subscription| subscription.next);
        let Some(subscription) = furthest else { return Ok(true) };
        let id = subscription.id;
        let next = match self.hub.at(subscription.next) {
            At::End => return Ok(true),
            At::Lost(lost) => {
                subscription.pass(lost);
                self.hub.lose(lost);
                self.send(notification(id, &Lost { lost })).await?;
                return Ok(false);
            }
            At::Notification(next) => next,
        };
        let Some(message) = subscription.message(&next) else {
            subscription.pass(1);
            return Ok(false);
        };
        let len = message.len();
        let room = room(&self.hub, if len > PIECE_BYTES { len } else { 0 });
        if room.is_none() {
            self.hub.lose(1);
            self.send(notification(id, &Lost { lost: 1 })).await?;
            return Ok(false);
        }
        self.send(notification(id, &message)).await?;
        Ok(false)
    }

    /// Sends a message, in pieces if it is long. What the client does not take at once is waited for.
    pub(crate) async fn send(&mut self, text: String) -> Result<(), End> {
        if text.len() <= PIECE_BYTES {
            return taken(self.socket.feed(Message::text(text))).await;
        }
        let (mut rest, mut data) = (Bytes::from(text), Data::Text);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let frame = Frame::message(piece, OpCode::Data(data), rest.is_empty());
            taken(self.socket.feed(Message::Frame(frame))).await?;
            data = Data::Continue;
        }
        Ok(())
    }
}

impl End {
    fn last() -> Self {
        Self::Close(CloseCode::Away, "the gateway ends".to_owned())
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(_) => {
                Self::Close(CloseCode::Size, format!("a request has at most {REQUEST_BYTES_MAX} bytes"))
            }
            Error::Utf8(_) => Self::Close(CloseCode::Invalid, "a text message is not UTF-8".to_owned()),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Self::Gone,
            Error::Protocol(error) => Self::Close(CloseCode::Protocol, error.to_string()),
            _ => Self::Gone,
        }
    }
}

/// Waits until the client has taken something that waited for it.
async fn taken(sent: impl Future<Output = Result<(), Error>>) -> Result<(), End> {
    timeout(STALL_LIMIT, sent).await.map_err(|_| End::Gone)?.map_err(End::from)
}
