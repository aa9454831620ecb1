//! The limits and options of `eventring exec gateway`.

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
        Live::start(&[&["exec", "gateway", argument(ring), "--listen", "127.0.0.1:0", "--json"], options].concat());
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

/// Lets this process, and those that it starts, have as many files as they may.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Returns the memory that the system has for each connection to a port, as `ss` shows it: for what waits to be sent to
/// the client, and for what the program at the port has not read. Waits until it changes no more, for some seconds at
/// most: the gateway ends the connections after 30 s.
fn memory_of_connections(address: &str) -> Option<Vec<(u64, u64)>> {
    let port = address.rsplit(':').next().unwrap();
    let (until, mut last) = (Instant::now() + Duration::from_secs(5), Vec::new());
    loop {
        let mut ss = std::process::Command::new("ss");
        let Ok(output) = ss.args(["-H", "-t", "-n", "-m", "-O", "state", "established", "sport", "=", port]).output()
        else {
            eventring_stress::missing("`ss` of iproute2, which shows what sockets take");
            return None;
        };
        let now: Vec<(u64, u64)> = String::from_utf8(output.stdout).unwrap().lines().map(of_socket).collect();
        if now == last || Instant::now() > until {
            return Some(now);
        }
        last = now;
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Returns the memory of one socket from its line: `… skmem:(r0,rb131072,t0,tb87040,f4096,w0,o0,bl0,d0)`.
fn of_socket(line: &str) -> (u64, u64) {
    let (_, of_memory) = line.split_once("skmem:(").unwrap();
    let number = |name: &str| {
        let mut all = of_memory.trim_end_matches(')').split(',').filter_map(|part| part.strip_prefix(name));
        all.find_map(|rest| rest.parse().ok()).unwrap()
    };
    (number("w"), number("r"))
}

/// Connects a client that asks for everything and reads nothing.
fn deaf(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let (mut client, _) = tungstenite::client(format!("ws://{address}"), stream.try_clone().unwrap()).unwrap();
    for number in 0..4 {
        let params = json!(["monadLogs", { "resume_from": { "number": 1 } }]);
        let request = json!({ "jsonrpc": "2.0", "id": number, "method": "eth_subscribe", "params": params });
        client.send(Message::text(request.to_string())).unwrap();
    }
    stream
}

#[test]
fn a_thousand_clients_that_read_nothing_take_the_memory_of_the_table_and_are_gone_after_a_while() {
    /// The rows of the table in docs/EXEC.md, in bytes.
    const SENT_MAX: u64 = 192 << 10;
    const READ_MAX: u64 = 64 << 10;
    const CLIENTS: usize = 990;
    open_many_files();
    let dir = directory();
    let ring = place(&dir, "node");
    let content = ContentDescription::from_event_type::<ExecEvent>();
    let recorder = Recorder::builder(content).config(argument(&ring)).shifts(17, 26).compact(true).build().unwrap();
    let mut made = Made::default();
    for number in 1..=100 {
        let tag = made.block(number, number as u8, 20);
        made.vote(tag);
    }
    made.record(0, &recorder);
    let (mut gateway, address) = gateway(&ring, &["--from-oldest"]);
    assert_eq!(result(&mut subscribe(&address, "newHeads"))["number"], "0x1");
    let mut deaf: Vec<TcpStream> = (0..CLIENTS).map(|_| deaf(&address)).collect();
    // A client that reads gets everything meanwhile.
    let mut client = subscribe(&address, "logs");
    while result(&mut client)["blockNumber"] != "0x64" {}
    let Some(of_sent) = memory_of_connections(&address) else { return };
    // They do not take what they are told, so nobody reads what they say.
    let ping = b"\x89\x80\0\0\0\0".repeat(10_000);
    for client in &mut deaf {
        client.set_nonblocking(true).unwrap();
        while client.write(&ping).is_ok_and(|written| written > 0) {}
    }
    let Some(of_read) = memory_of_connections(&address) else { return };
    let largest_and_all = |of: Vec<u64>| (of.iter().copied().max().unwrap(), of.iter().sum::<u64>());
    let sent = largest_and_all(of_sent.iter().map(|(sent, _)| *sent).collect());
    let read = largest_and_all(of_read.iter().map(|(_, read)| *read).collect());
    // The control: both are in use.
    let is_used = |(_, all): (u64, u64)| all > 16_384 * CLIENTS as u64;
    // On a busy machine the first of them may be gone by the second look.
    assert!(of_sent.len() > CLIENTS && is_used(sent) && is_used(read), "{} {sent:?} {read:?}", of_sent.len());
    assert!(sent.0 <= SENT_MAX && read.0 <= READ_MAX, "to clients {sent:?}, from clients {read:?}: largest and all");
    // They take nothing of what waits for them, so their connections end.
    let mut first = deaf.swap_remove(0);
    first.set_nonblocking(false).unwrap();
    first.set_read_timeout(Some(LIMIT)).unwrap();
    let mut buffer = [0; 4096];
    let until = Instant::now() + LIMIT;
    while memory_of_connections(&address).is_some_and(|of| of.len() > 2) {
        assert!(Instant::now() < until);
    }
    while first.read(&mut buffer).is_ok_and(|read| read > 0) {}
    gateway.interrupt();
    assert_eq!(gateway.json_line()["clients"], CLIENTS + 2);
}

#[test]
fn the_thousand_and_first_client_is_refused_until_another_one_leaves() {
    // This process has the other ends of all connections.
    open_many_files();
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
    let builder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).config(argument(&ring));
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
