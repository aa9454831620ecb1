//! A receiver reads any stream, also one that never had a message.
#![cfg(feature = "cli")]

mod broker;
mod program;

use broker::place::Place;
use program::program;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn a_stream_without_messages_is_received_and_is_idle() {
    let Some(place) = Place::new() else { return };
    let mut raw = TcpStream::connect(place.broker.address().trim_start_matches("nats://")).unwrap();
    let config = r#"{"name":"S","subjects":["S.>"]}"#;
    let made = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB made 1\r\nPUB $JS.API.STREAM.CREATE.S made {}\r\n{config}\r\n",
        config.len()
    );
    raw.write_all(made.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("MSG made") {
        let mut byte = [0];
        raw.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let (address, file) = (place.broker.address(), place.path("all.evc"));
    let words = ["receive", &address, "--stream", "S", "-o", &file, "--until-idle", "300ms"];
    let mut receive = program(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let ended = loop {
        match receive.try_wait().unwrap() {
            None if begin.elapsed() < Duration::from_secs(30) => std::thread::sleep(Duration::from_millis(20)),
            ended => break ended,
        }
    };
    let _ = receive.kill();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
}
