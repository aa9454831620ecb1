//! Clients that send garbage, half messages and floods, that never read, or that come a thousand at a time; and what
//! clients can hold: places, descriptors, and time of the server's thread. Those without a right hold nothing, those of
//! other users a part, and none keeps the program's user and root out.

use super::anonymous;
use crate::fixtures::*;
use crate::served;
use crate::served::{
    CLIENTS_MAX, FILES_MAX, GUESTS, IMPORT, OWNER, STRANGER, Served, as_user, connect_to, message, program, send,
    try_send,
};
use eventring::control::{ControlErrorKind, Process, Server, ServerAddress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, SocketAddrUnix};
use rustix::process::{WaitOptions, waitpid};

fn server(name: &str) -> Server {
    Server::builder().abstract_name(format!("{name}-{}", std::process::id())).clients_max(32).start().unwrap()
}

fn connect(server: &Server) -> OwnedFd {
    let ServerAddress::Abstract(name) = server.address() else { panic!("an abstract name") };
    connect_to(name)
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
        assert!(start.elapsed() < Duration::from_secs(60), "no place becomes free");
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
    alone!();
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
    alone!();
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
    alone!();
    let server = server("flood");
    let _rings: Vec<_> = (0..20).map(|_| anonymous("FLOOD")).collect();
    assert_it_still_answers(&server);
    let before = resident_kib();
    let deadline = Instant::now() + Duration::from_secs(3);
    let (answers, largest) = std::thread::scope(|scope| {
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
        let (mut answers, mut largest) = (0, 0);
        while Instant::now() < deadline {
            if let Ok(process) = Process::connect(server.address()) {
                assert!(process.files().unwrap().len() >= 20);
                answers += 1;
            }
            // The server gives the memory back when a client ends.
            largest = largest.max(resident_kib());
        }
        (answers, largest)
    });
    // On an idle machine there are thousands.
    assert!(answers >= 10, "{answers} answers");
    let grown = largest.saturating_sub(before);
    assert!(grown < 12 << 10, "{grown} KiB");
    assert_it_still_answers(&server);
}

#[test]
fn a_thousand_connections_are_refused_beyond_the_limit_with_the_reason() {
    alone!();
    let server = server("thousand");
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..1000 {
        match Process::connect(server.address()) {
            Ok(process) => held.push(process),
            Err(error) => {
                assert_eq!(error.kind(), ControlErrorKind::TooMany, "{error}");
                assert!(error.to_string().contains("the server has 32 clients, and room for at most 32"), "{error}");
                refused += 1;
            }
        }
    }
    assert_eq!((held.len(), refused), (32, 968));
    held.truncate(1);
    assert_it_still_answers(&server);
}

#[test]
fn a_client_that_imports_and_never_reads_costs_no_time_and_no_descriptors_of_others() {
    let test = plays!(program());
    let Some(mut served) = Served::start(test) else { return };
    let greedy: Vec<OwnedFd> = as_user(GUESTS[0], || (0..4).map(|_| served.importing()).collect());
    let work = served.work();
    assert!(work < 0.2, "the server works {work} of the time");
    served.tell("pass");
    assert_eq!(served.talk.hear(), "Ok(1)");
    let process = served.connect().unwrap();
    process.import(&process.files().unwrap()[0]).unwrap();
    // A client that takes its descriptors gets all of them, however many it has asked for at once.
    let mut taken = 0;
    let mut buffer = [0; 100];
    while taken < 100 {
        let received = rustix::net::recv(&greedy[0], &mut buffer[..], RecvFlags::empty()).unwrap();
        assert!(received.1 > 0, "{taken}");
        taken += u32::from(u16::from_le_bytes([buffer[6], buffer[7]]) == 0x8004);
    }
}

#[test]
fn users_without_a_right_hold_no_place_and_no_descriptor_and_are_told_why() {
    let test = plays!(program());
    let Some(served) = Served::start(test) else { return };
    served.connect().unwrap();
    let before = served.descriptors();
    // Half of them greet, the others are silent.
    let mut held: Vec<OwnedFd> = as_user(STRANGER, || {
        (0..200).map(|number| if number % 2 == 0 { served.raw() } else { served.greedy(2, &[]) }).collect()
    });
    served.connect().unwrap();
    as_user(OWNER, || served.connect()).unwrap();
    assert!(served.descriptors() <= before + 4, "{before} {}", served.descriptors());
    let mut buffer = [0; 1000];
    let (_, bytes) = rustix::net::recv(held.pop().unwrap(), &mut buffer[..], RecvFlags::empty()).unwrap_or_default();
    let (_, refused) = rustix::net::recv(&held[0], &mut buffer[..], RecvFlags::empty()).unwrap();
    let text = String::from_utf8_lossy(&buffer[..refused]);
    assert!(text.contains("user 4711 may not read the rings of process") && bytes != 1, "{text}");
    assert_eq!(rustix::net::recv(&held[0], &mut buffer[..], RecvFlags::empty()).unwrap().1, 0);
    let refused = as_user(STRANGER, || served.connect()).unwrap_err();
    assert_eq!(refused.kind(), ControlErrorKind::PermissionDenied, "{refused}");
}

#[test]
fn users_who_were_let_in_have_a_part_of_the_places() {
    let test = plays!(program());
    let Some(served) = Served::start(test) else { return };
    let connected = |user| as_user(user, || (0..CLIENTS_MAX).map(|_| served.connect()).collect::<Vec<_>>());
    let [guest, other] = GUESTS.map(connected);
    for places in [&guest, &other] {
        let (held, refused): (Vec<_>, Vec<_>) = places.iter().partition(|place| place.is_ok());
        assert_eq!(held.len(), CLIENTS_MAX / 4);
        for error in refused.into_iter().map(|place| place.as_ref().unwrap_err()) {
            assert_eq!(error.kind(), ControlErrorKind::TooMany, "{error}");
            assert!(error.to_string().contains("4 of them may be of one other user, and 8 of all others"), "{error}");
        }
    }
    // The other half is for the user of the program, and for root.
    let own: Vec<Process> = [0, OWNER].map(connected).into_iter().flatten().flatten().collect();
    assert_eq!(own.len(), CLIENTS_MAX / 2);
}

#[test]
fn no_client_keeps_the_thread_of_the_server_busy() {
    let test = plays!(program());
    let Some(mut served) = Served::start(test) else { return };
    // A client that asks for more than it takes, and then shuts its connection down without closing it.
    let (shut, half) = (served.greedy(2, &[]), served.greedy(2, &[]));
    std::thread::sleep(Duration::from_millis(500));
    rustix::net::shutdown(&shut, Shutdown::Both).unwrap();
    rustix::net::shutdown(&half, Shutdown::Write).unwrap();
    let work = served.work();
    assert!(work < 0.2, "connections that are shut down: {work}");
    // The program has no descriptor left, so that connections cannot be accepted.
    served.tell("fill");
    served.talk.hear();
    let waiting: Vec<OwnedFd> = (0..4).map(|_| served.raw()).collect();
    let work = served.work();
    assert!(work < 0.2, "connections that cannot be accepted: {work}");
    served.tell("free");
    served.connect().unwrap();
    drop((waiting, half));
    // A user without a right connects without end, and one who was let in asks without end.
    served.assert_flood_is_bounded(STRANGER, || drop(served.raw()));
    served.assert_flood_is_bounded(GUESTS[0], || {
        let process = served.connect().unwrap();
        (0..1000).for_each(|_| drop(process.files().unwrap()));
    });
}

/// Waits until something has happened to a socket, at most for a second.
fn wait_for(socket: &OwnedFd, what: PollFlags) -> bool {
    let mut polled = [PollFd::new(socket, what)];
    poll(&mut polled, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// Greets and asks for the ring, and leaves the answer with its descriptor where it is.
fn ask_without_taking(socket: &OwnedFd, requests: &[Vec<u8>; 2]) -> bool {
    let mut buffer = [0; 1000];
    let is_welcome =
        send(socket, &requests[0]) && rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).is_ok();
    is_welcome && buffer[6..8] == [0x01, 0x80] && send(socket, &requests[1]) && wait_for(socket, PollFlags::IN)
}

/// Ends the connection of a client that goes on to have its socket, in one of the ways that there are.
fn end_without_closing(way: &str, name: &str) -> OwnedFd {
    let requests = [message(1, &[0; 4]), message(3, IMPORT)];
    let socket = if way == "its process ends" { served::socket() } else { connect_to(name) };
    match way {
        "its process ends" => {
            let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
            // SAFETY: the child makes system calls, and ends without any clean-up.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let _ = rustix::net::connect(&socket, &address);
                ask_without_taking(&socket, &requests);
                // SAFETY: `_exit` has no preconditions.
                unsafe { libc::_exit(0) };
            }
            waitpid(Pid::from_raw(child), WaitOptions::empty()).unwrap();
        }
        _ if !ask_without_taking(&socket, &requests) => {}
        "it shuts down" => {
            rustix::net::shutdown(&socket, Shutdown::Both).unwrap();
            // From now on the client does not see what the server does.
            std::thread::sleep(Duration::from_millis(10));
        }
        _ => _ = send(&socket, b"garbage"),
    }
    // The server ends its side.
    wait_for(&socket, PollFlags::empty());
    socket
}

#[test]
fn a_connection_keeps_its_place_until_the_descriptor_that_was_sent_is_taken() {
    let test = plays!(program());
    let Some(mut served) = Served::start(test) else { return };
    for way in ["it sends garbage", "it shuts down", "its process ends"] {
        let end = || end_without_closing(way, &served.name);
        let held: Vec<OwnedFd> = as_user(GUESTS[0], || (0..FILES_MAX + 10).map(|_| end()).collect());
        served.tell("pass");
        assert_eq!(served.talk.hear(), "Ok(1)", "{way}");
        let start = Instant::now();
        let process = served.connect().unwrap();
        process.import(&process.files().unwrap()[0]).unwrap();
        assert!(start.elapsed() < Duration::from_secs(20), "{way}: {:?}", start.elapsed());
        // Such a connection has a place, and is no client.
        assert_eq!(process.other_clients(), 0, "{way}");
        let refused = as_user(GUESTS[0], || served.connect()).unwrap_err();
        assert_eq!(refused.kind(), ControlErrorKind::TooMany, "{way}: {refused}");
        let work = served.work();
        assert!(work < 0.1, "{way}: the server works {work} of the time");
        drop(held);
        as_user(GUESTS[0], || served.connect()).unwrap();
    }
}
