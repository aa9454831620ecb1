//! The limits and options of `eventring gateway`.

use crate::program::{Live, argument, directory, exec_ring, place};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventPayload as _;
use eventring::schema::EventType as _;
use eventring::schema::exec::{Address, ExecEvent, TxnLog};
use eventring_stress::chain::Made;
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tungstenite::{Message, WebSocket};

/// The longest wait for something that must happen.
const LIMIT: Duration = Duration::from_secs(60);

fn gateway(ring: &Path, options: &[&str]) -> (Live, String) {
    let mut gateway =
        Live::start(&[&["gateway", argument(ring), "--listen", "127.0.0.1:0", "--json"], options].concat());
    let address = gateway.json_line()["listening"].as_str().unwrap().to_owned();
    (gateway, address)
}

/// Asks for a WebSocket, with further lines of the request. Returns the connection, and the status of the answer.
fn ask(address: &str, headers: &str) -> (TcpStream, u16) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let status = String::from_utf8(answer).unwrap();
    (stream, status.split(' ').nth(1).unwrap().parse().unwrap())
}

#[test]
fn the_thousand_and_first_client_is_refused_until_another_one_leaves() {
    // This process has the other ends of all connections.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit }).unwrap();
    let dir = directory();
    let ring = place(&dir, "node");
    let _recorder = exec_ring(&ring);
    let (mut gateway, address) = gateway(&ring, &[]);
    let mut clients: Vec<(TcpStream, u16)> = (0..1000).map(|_| ask(&address, "")).collect();
    assert!(clients.iter().all(|(_, status)| *status == 101));
    let (mut refused, status) = ask(&address, "");
    let mut why = String::new();
    refused.read_to_string(&mut why).unwrap();
    assert_eq!((status, why.as_str()), (503, "There are 1,000 clients already: try later.\n"));
    clients.truncate(999);
    let until = Instant::now() + LIMIT;
    let mut tries = 1;
    while ask(&address, "").1 == 503 {
        tries += 1;
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(20));
    }
    gateway.interrupt();
    let stats = gateway.json_line();
    assert_eq!((&stats["clients"], &stats["refused"]), (&1001.into(), &tries.into()));
}

#[test]
fn pages_connect_only_from_origins_that_are_allowed() {
    let dir = directory();
    let ring = place(&dir, "node");
    let _recorder = exec_ring(&ring);
    let origins = ["Origin: https://example.org\r\n", "Origin: https://example.com\r\n", ""];
    for (options, expected) in [
        (&[][..], [403, 403, 101]),
        (&["--allow-origin", "https://example.org"], [101, 403, 101]),
        (&["--allow-origin", "https://example.org", "--allow-origin", "https://example.com"], [101, 101, 101]),
        (&["--allow-origin", "*"], [101, 101, 101]),
    ] {
        let (mut gateway, address) = gateway(&ring, options);
        assert_eq!(origins.map(|origin| ask(&address, origin).1), expected, "{options:?}");
        gateway.interrupt();
        let refused = expected.iter().filter(|status| **status == 403).count();
        assert_eq!(gateway.json_line()["refused"], refused);
    }
}

#[test]
fn a_gateway_ends_some_time_after_the_ring_if_it_is_told_to() {
    let dir = directory();
    let ring = place(&dir, "node");
    let recorder = exec_ring(&ring);
    let (mut ends, _) = gateway(&ring, &["--linger", "1s"]);
    let (mut stays, address) = gateway(&ring, &[]);
    drop(recorder);
    let ended = Instant::now();
    assert_eq!(ends.json_line()["clients"], 0);
    assert!(ended.elapsed() >= Duration::from_millis(900), "{:?}", ended.elapsed());
    assert_eq!(ends.end().code, Some(0));
    // The control: without the option it waits for the node's next ring.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((stays.child.try_wait().unwrap(), ask(&address, "").1), (None, 101));
    stays.interrupt();
    assert_eq!(stays.json_line()["clients"], 1);
}

type Client = WebSocket<TcpStream>;

fn subscribe(address: &str, kind: &str) -> Client {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let (mut client, _) = tungstenite::client(format!("ws://{address}"), stream).unwrap();
    let params = json!([kind, { "resume_from": { "number": 0 } }]);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params });
    client.send(Message::text(request.to_string())).unwrap();
    assert!(told(&mut client)["result"].is_string());
    client
}

fn told(client: &mut Client) -> Value {
    serde_json::from_str(client.read().unwrap().to_text().unwrap()).unwrap()
}

/// Returns the first thing that is told and no note about where the telling begins.
fn result(client: &mut Client) -> Value {
    loop {
        let result = told(client)["params"]["result"].take();
        if result.get("gap").is_none() {
            return result;
        }
    }
}

#[test]
fn a_message_for_which_there_is_no_room_is_told_as_lost_and_the_next_one_comes() {
    /// The bytes of the log's data, of which a message has two characters each: more than the 256 MiB for all clients.
    const DATA: usize = (128 << 20) + 1;
    let dir = directory();
    let ring = place(&dir, "node");
    let builder = Recorder::builder(ContentDescription::of::<ExecEvent>()).config(argument(&ring));
    let recorder = builder.shifts(17, 29).compact(true).prefault(false).build().unwrap();
    let (mut gateway, address) = gateway(&ring, &["--from-oldest"]);
    let mut made = Made::default();
    made.block(1, 1, 1);
    let code = ExecEvent::TxnLog.code();
    let (_, payload) = made.0.iter_mut().find(|(event, _)| event.event_type == code).unwrap();
    let log = TxnLog { index: 0, address: Address([3; 20]), topic_count: 0, data_length: DATA as u32 };
    *payload = log.with_bytes(<[u8]>::to_vec);
    payload.resize(payload.len() + DATA, 7);
    made.record(0, &recorder);
    assert_eq!(result(&mut subscribe(&address, "newHeads"))["number"], "0x1");
    let mut client = subscribe(&address, "logs");
    assert_eq!(result(&mut client), json!({ "lost": 1 }));
    assert_eq!(result(&mut client)["logIndex"], "0x1");
    gateway.interrupt();
    assert_eq!(gateway.json_line()["lost"], 1);
}
