//! Gateways of invented nodes, asked by clients that behave well, badly, and not at all.

mod connections;
mod crowds;
mod ends;
mod losses;
mod requests;
mod resume;

use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring_exec::{Blocks, Wanted};
use eventring_gateway::{Gateway, GatewayStats};
use eventring_stress::chain::Made;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tungstenite::{Error, Message, WebSocket};

eventring_stress::names_lead_nowhere!();

/// A node, and a gateway for its ring.
struct Served {
    made: Made,
    recorded: usize,
    recorder: Recorder,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<GatewayStats>,
}

impl Served {
    fn start() -> Self {
        Self::with(|gateway| gateway)
    }

    fn with(tune: impl FnOnce(Gateway) -> Gateway) -> Self {
        let content = ContentDescription::from_event_type::<ExecEvent>();
        let recorder = Recorder::builder(content).anonymous().shifts(17, 26).compact(true).build().unwrap();
        let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
        let (address, is_over, thread) = serve(Blocks::of_ring(&reader, Wanted::TRANSACTIONS).unwrap(), tune);
        Self { made: Made::default(), recorded: 0, recorder, address, is_over, thread }
    }

    /// Records what was made.
    fn record(&mut self) {
        self.recorded = self.made.record(self.recorded, &self.recorder);
    }

    fn client(&self) -> Client {
        Client::new(self.address)
    }

    fn end(self) -> GatewayStats {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn serve(
    mut blocks: Blocks,
    tune: impl FnOnce(Gateway) -> Gateway,
) -> (SocketAddr, Arc<AtomicBool>, JoinHandle<GatewayStats>) {
    let gateway = tune(Gateway::listen("127.0.0.1:0").unwrap());
    let address = gateway.local_address().unwrap();
    let is_over = Arc::<AtomicBool>::default();
    let end = is_over.clone();
    let thread = std::thread::spawn(move || gateway.serve(&mut blocks, || end.load(Ordering::Relaxed)).unwrap());
    (address, is_over, thread)
}

/// A client by another program's library.
struct Client {
    socket: WebSocket<TcpStream>,
    waiting: Vec<Value>,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://{address}"), stream).unwrap();
        Self { socket, waiting: Vec::new() }
    }

    fn say(&mut self, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.socket.send(Message::text(request.to_string())).unwrap();
    }

    /// Returns the answer to a request, or the error's message. What is told meanwhile waits.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.say(method, params);
        loop {
            let message = self.read().unwrap();
            match (message.get("result"), message.get("error")) {
                (Some(result), _) => return Ok(result.clone()),
                (_, Some(error)) => return Err(error["message"].as_str().unwrap().to_owned()),
                _ => self.waiting.push(message["params"]["result"].clone()),
            }
        }
    }

    fn subscribe(&mut self, kind: &str, options: &Value) {
        self.ask("eth_subscribe", &json!([kind, options])).unwrap();
    }

    fn read(&mut self) -> Result<Value, Error> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(text.as_str()).unwrap());
            }
        }
    }

    /// Returns the next thing that is told.
    fn next(&mut self) -> Value {
        match self.waiting.is_empty() {
            true => self.read().unwrap()["params"]["result"].take(),
            false => self.waiting.remove(0),
        }
    }

    /// Returns what is told until nothing comes for a while.
    fn rest(&mut self) -> Vec<Value> {
        let mut told = std::mem::take(&mut self.waiting);
        self.socket.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        loop {
            match self.read() {
                Ok(mut message) => told.push(message["params"]["result"].take()),
                Err(Error::Io(error)) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.socket.get_ref().set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        told
    }
}

/// Returns a line for each thing that was told: a header's number and state, a log's number and index, a gap.
fn lines(told: &[Value]) -> Vec<String> {
    let line = |result: &Value| {
        let number = |value: &Value| {
            let text = value.as_str().unwrap_or("-").trim_start_matches("0x").to_owned();
            u64::from_str_radix(&text, 16).map_or(text, |number| number.to_string())
        };
        if let Some(gap) = result.get("gap") {
            let kind = gap.get("kind").map_or("unknown place", |kind| kind.as_str().unwrap());
            return format!("gap {kind} {}", number(&gap["blockNumber"]));
        }
        let state = result.get("commitState").map(|state| format!(" {}", state.as_str().unwrap())).unwrap_or_default();
        if result.get("logIndex").is_some() {
            let removed = if result["removed"] == true { " removed" } else { "" };
            return format!("{}.{}{state}{removed}", number(&result["blockNumber"]), number(&result["logIndex"]));
        }
        let part = if result.get("complete").is_some() { " part" } else { "" };
        format!("{}{state}{part}", number(&result["number"]))
    };
    told.iter().map(line).collect()
}
