//! Handshakes, refusals and closes.

use crate::Served;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

fn answer(served: &Served, request: &str) -> String {
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A connection that stays open has answered with less than this.
    while !answer.ends_with(b"\r\n\r\n") || !answer.starts_with(b"HTTP/1.1 101") {
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer).unwrap() {
            0 => break,
            count => answer.extend_from_slice(&buffer[..count]),
        }
    }
    String::from_utf8(answer).unwrap()
}

fn handshake(origin: &str) -> String {
    let key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{key}\r\n{origin}\r\n")
}

#[test]
fn whoever_is_no_websocket_client_is_told_so_in_a_sentence() {
    let served = Served::start();
    let body = "{}".repeat(2000);
    let post = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for request in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", &post, "GET / HTTP/1.0\r\n\r\n"] {
        let answer = answer(&served, request);
        assert!(
            answer.contains(" 426 Upgrade Required\r\n") && answer.contains("Here are WebSockets only"),
            "{answer}"
        );
    }
    assert!(answer(&served, "GET /\r\n\r\n").starts_with("HTTP/1.1 4"));
    let long = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(9000));
    assert!(answer(&served, &long).starts_with("HTTP/1.1 431 "));
    assert!(answer(&served, "\x16\x03\x01 hello").starts_with("HTTP/1.1 400 "));
    served.end();
}

#[test]
fn web_pages_connect_only_if_their_origin_is_named() {
    let served = Served::start();
    assert!(answer(&served, &handshake("")).starts_with("HTTP/1.1 101 "));
    for origin in ["http://127.0.0.1", "null", "https://example.org"] {
        let answer = answer(&served, &handshake(&format!("Origin: {origin}\r\n")));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("--allow-origin"), "{answer}");
    }
    assert_eq!((served.end()).refused, 3);
    let served = Served::with(|gateway| gateway.allow_origins(vec!["https://example.org/".into()]));
    assert!(answer(&served, &handshake("Origin: https://example.org\r\n")).starts_with("HTTP/1.1 101 "));
    assert!(answer(&served, &handshake("Origin: https://example.org.evil\r\n")).starts_with("HTTP/1.1 403 "));
    let two = "Origin: https://example.org\r\nOrigin: https://evil.org\r\n";
    assert!(answer(&served, &handshake(two)).starts_with("HTTP/1.1 403 "));
    served.end();
    let served = Served::with(|gateway| gateway.allow_origins(vec!["*".into()]));
    assert!(answer(&served, &handshake("Origin: null\r\n")).starts_with("HTTP/1.1 101 "));
    served.end();
}

#[test]
fn a_close_is_answered_and_a_connection_is_closed_with_a_reason() {
    let served = Served::start();
    let mut client = served.client();
    client.socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).unwrap();
    let Ok(Message::Close(Some(frame))) = client.socket.read() else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Normal);
    assert!(matches!(client.socket.read(), Err(Error::ConnectionClosed)));
    drop(client);
    // The frame is longer than what the gateway reads.
    let mut client = served.client();
    let _ = client.socket.send(Message::text("x".repeat(3 << 20)));
    let Ok(Message::Close(Some(frame))) = client.socket.read() else { panic!("no close frame") };
    assert_eq!((frame.code, frame.reason.as_str()), (CloseCode::Size, "a request has at most 65536 bytes"));
    drop(client);
    // A frame without a mask.
    let mut client = served.client();
    client.socket.get_mut().write_all(b"\x81\x02{}").unwrap();
    let Ok(Message::Close(Some(frame))) = client.socket.read() else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Protocol);
    drop(client);
    let mut client = served.client();
    let (end, begin) = (std::thread::spawn(|| served.end()), Instant::now());
    let Ok(Message::Close(Some(frame))) = client.socket.read() else { panic!("no close frame") };
    assert_eq!(frame.code, CloseCode::Away);
    assert!(client.socket.read().is_err());
    drop(client);
    assert_eq!(end.join().unwrap().clients, 4);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}
