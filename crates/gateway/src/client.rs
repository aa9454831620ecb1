//! One connection: requests in, notifications out.

use crate::hub::{Hub, News, Queue};
use crate::subscription::Subscription;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

/// The longest request.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// The number of subscriptions of a client.
const SUBSCRIPTIONS_MAX: usize = 64;
/// How long news may take from the queue to the client at most, while the client says nothing.
const READ_WAIT: Duration = Duration::from_millis(1);
const NEWS_WAIT: Duration = Duration::from_millis(20);
/// A client that takes nothing for so long is gone.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// Serves a connection to its end.
pub(crate) fn serve(stream: TcpStream, hub: &Hub, queue: &Queue, has_ended: &AtomicBool) {
    let _ = Client::accept(stream).map(|mut client| client.run(hub, queue, has_ended));
}

struct Client {
    socket: WebSocket<TcpStream>,
    subscriptions: Vec<Subscription>,
    next_id: u64,
}

impl Client {
    fn accept(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(false).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(WRITE_LIMIT)).ok()?;
        stream.set_write_timeout(Some(WRITE_LIMIT)).ok()?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(REQUEST_BYTES_MAX))
            .max_frame_size(Some(REQUEST_BYTES_MAX));
        let socket = tungstenite::accept_with_config(stream, Some(config)).ok()?;
        socket.get_ref().set_read_timeout(Some(READ_WAIT)).ok()?;
        Some(Self { socket, subscriptions: Vec::new(), next_id: 1 })
    }

    fn run(&mut self, hub: &Hub, queue: &Queue, has_ended: &AtomicBool) -> Result<(), Error> {
        loop {
            let (news, lost) = queue.take(NEWS_WAIT);
            self.tell(&news)?;
            if lost > 0 {
                for at in 0..self.subscriptions.len() {
                    self.notify(at, &json!({ "lost": lost }))?;
                }
            }
            if has_ended.load(Ordering::Relaxed) {
                self.socket.close(None)?;
                return self.socket.flush();
            }
            match self.socket.read() {
                Ok(Message::Text(text)) => self.request(text.as_str(), hub, queue)?,
                Ok(Message::Close(_)) => return Ok(()),
                Ok(_) => {}
                Err(Error::Io(error)) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn tell(&mut self, news: &[Arc<News>]) -> Result<(), Error> {
        for news in news {
            for at in 0..self.subscriptions.len() {
                for result in self.subscriptions[at].results(news) {
                    self.notify(at, &result)?;
                }
            }
        }
        Ok(())
    }

    fn notify(&mut self, subscription: usize, result: &Value) -> Result<(), Error> {
        let id = format!("{:#x}", self.subscriptions[subscription].id);
        let params = json!({ "subscription": id, "result": result });
        self.send(&json!({ "jsonrpc": "2.0", "method": "eth_subscription", "params": params }))
    }

    fn send(&mut self, message: &Value) -> Result<(), Error> {
        self.socket.send(Message::text(message.to_string()))
    }

    fn request(&mut self, text: &str, hub: &Hub, queue: &Queue) -> Result<(), Error> {
        let request: Value = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return self.send(&failure(&Value::Null, -32700, &format!("not JSON: {error}"))),
        };
        let (id, params) = (&request["id"], &request["params"]);
        match request["method"].as_str() {
            Some("eth_subscribe") if self.subscriptions.len() >= SUBSCRIPTIONS_MAX => {
                self.send(&failure(id, -32000, "a connection has at most 64 subscriptions: end one, or open another"))
            }
            Some("eth_subscribe") => match Subscription::new(self.next_id, params) {
                Err(why) => self.send(&failure(id, -32602, &why)),
                Ok(subscription) => {
                    self.next_id += 1;
                    self.send(&success(id, format!("{:#x}", subscription.id).into()))?;
                    self.subscribe(subscription, hub, queue)
                }
            },
            Some("eth_unsubscribe") => {
                let before = self.subscriptions.len();
                let ended = params[0].as_str().unwrap_or_default().to_owned();
                self.subscriptions.retain(|subscription| format!("{:#x}", subscription.id) != ended);
                self.send(&success(id, (self.subscriptions.len() < before).into()))
            }
            Some(other) => {
                let why = format!("there is no method {other}; there are eth_subscribe and eth_unsubscribe");
                self.send(&failure(id, -32601, &why))
            }
            None => self.send(&failure(id, -32600, "expected an object with `method`")),
        }
    }

    /// Begins a subscription. If it goes on from a place, what was told since is told first.
    fn subscribe(&mut self, mut subscription: Subscription, hub: &Hub, queue: &Queue) -> Result<(), Error> {
        let mut results = Vec::new();
        if subscription.resumes() {
            let (history, waiting) = hub.history(queue);
            self.tell(&waiting)?;
            results = subscription.resume(&history);
        }
        self.subscriptions.push(subscription);
        let at = self.subscriptions.len() - 1;
        results.iter().try_for_each(|result| self.notify(at, result))
    }
}

fn success(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
