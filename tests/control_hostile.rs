//! Clients that send garbage, half messages and floods, that never read, or that come a thousand at a time.
#![cfg(feature = "server")]

use eventring::control::{ControlErrorKind, Process, Server, ServerAddress};
use eventring::recorder::{ContentDescription, Recorder};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

fn server(name: &str) -> Server {
    Server::builder().abstract_name(format!("{name}-{}", std::process::id())).clients_max(32).start().unwrap()
}

fn connect(server: &Server) -> OwnedFd {
    let ServerAddress::Abstract(name) = server.address() else { panic!("an abstract name") };
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

/// Sends bytes as one packet. Returns false if the server has closed the connection, or takes no more.
fn send(socket: &OwnedFd, bytes: &[u8]) -> bool {
    try_send(socket, bytes).is_ok()
}

fn try_send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"EVRC".to_vec();
    bytes.extend_from_slice(&1_u16.to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&7_u32.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn assert_it_still_answers(server: &Server) {
    let start = Instant::now();
    loop {
        match Process::connect(server.address()) {
            Ok(process) => return assert_eq!(process.pid(), std::process::id()),
            // Hostile clients take all places for at most two seconds.
            Err(error) if error.kind() == ControlErrorKind::TooMany => {}
            Err(error) => panic!("{error}"),
        }
        assert!(start.elapsed() < Duration::from_secs(10), "no place becomes free");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn garbage_and_half_messages_end_only_the_connection_that_sends_them() {
    let server = server("garbage");
    let hello = message(1, &[0; 4]);
    let mut wrong: Vec<Vec<u8>> = vec![b"x".to_vec(), vec![0; 65536], vec![255; 70_000], hello[..15].to_vec()];
    wrong.push([&hello[..], b"more"].concat());
    wrong.push(message(99, b""));
    wrong.push(message(5, b"\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"));
    for bytes in wrong {
        let socket = connect(&server);
        send(&socket, &bytes);
        let mut buffer = vec![0; 70_000];
        // The server says why, and closes.
        let (_, received) = rustix::net::recv(&socket, &mut buffer[..], rustix::net::RecvFlags::empty()).unwrap();
        assert_eq!(&buffer[..4], b"EVRC", "{bytes:?}");
        assert_eq!(u16::from_le_bytes([buffer[6], buffer[7]]), 0x800b);
        assert!(received > 20);
        let is_too_long = String::from_utf8_lossy(&buffer[..received]).contains("the message is too long");
        assert_eq!(is_too_long, bytes.len() > 65_536);
        let (_, received) = rustix::net::recv(&socket, &mut buffer[..], rustix::net::RecvFlags::empty()).unwrap();
        assert_eq!(received, 0);
    }
    assert_it_still_answers(&server);
}

#[test]
fn requests_before_the_greeting_are_refused_and_a_silent_client_loses_its_place() {
    let server = server("silent");
    let socket = connect(&server);
    assert!(send(&socket, &message(2, b"")));
    let mut buffer = vec![0; 1000];
    rustix::net::recv(&socket, &mut buffer[..], rustix::net::RecvFlags::empty()).unwrap();
    assert!(String::from_utf8_lossy(&buffer).contains("the first message must be HELLO"));
    // A second greeting is refused, too.
    let mut answer = |request: &[u8]| {
        assert!(send(&socket, request));
        buffer.fill(0);
        rustix::net::recv(&socket, &mut buffer[..], rustix::net::RecvFlags::empty()).unwrap();
        (u16::from_le_bytes([buffer[6], buffer[7]]), String::from_utf8_lossy(&buffer).into_owned())
    };
    assert_eq!(answer(&message(1, &[0; 4])).0, 0x8001);
    assert!(answer(&message(1, &[0; 4])).1.contains("HELLO was sent before"));
    let never = [&u64::MAX.to_le_bytes()[..], &[0; 34]].concat();
    assert!(answer(&message(3, &never)).1.contains("and there was none"));
    let silent: Vec<OwnedFd> = (0..31).map(|_| connect(&server)).collect();
    assert_it_still_answers(&server);
    drop(silent);
}

#[test]
fn clients_that_flood_and_never_read_cost_bounded_memory_and_delay_no_other_client() {
    let server = server("flood");
    let _rings: Vec<Recorder> = (0..20)
        .map(|_| {
            Recorder::builder(ContentDescription::new(300, "FLOOD"))
                .anonymous()
                .shifts(16, 27)
                .prefault(false)
                .build()
                .unwrap()
        })
        .collect();
    assert_it_still_answers(&server);
    let before = resident_kib();
    let deadline = Instant::now() + Duration::from_secs(3);
    let (slowest, largest) = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while Instant::now() < deadline {
                    let socket = connect(&server);
                    send(&socket, &message(1, &[0; 4]));
                    // Each of these asks for twenty answers, which nobody reads. The client stays if the server takes
                    // no more.
                    let mut sent = Ok(0);
                    while matches!(sent, Ok(_) | Err(Errno::AGAIN)) && Instant::now() < deadline {
                        sent = try_send(&socket, &message(2, b""));
                    }
                }
            });
        }
        let (mut slowest, mut largest) = (Duration::ZERO, 0);
        while Instant::now() < deadline {
            let start = Instant::now();
            if let Ok(process) = Process::connect(server.address()) {
                assert!(process.files().unwrap().len() >= 20);
            }
            slowest = slowest.max(start.elapsed());
            // The server gives the memory back when a client ends.
            largest = largest.max(resident_kib());
        }
        (slowest, largest)
    });
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let grown = largest.saturating_sub(before);
    assert!(grown < 12 << 10, "{grown} KiB");
    assert_it_still_answers(&server);
}

#[test]
fn a_thousand_connections_are_refused_beyond_the_limit_with_the_reason() {
    let server = server("thousand");
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..1000 {
        match Process::connect(server.address()) {
            Ok(process) => held.push(process),
            Err(error) => {
                assert_eq!(error.kind(), ControlErrorKind::TooMany, "{error}");
                assert!(error.to_string().contains("the server has 32 clients, which is its limit"), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((held.len(), refused), (32, 968));
    held.truncate(1);
    assert_it_still_answers(&server);
}
