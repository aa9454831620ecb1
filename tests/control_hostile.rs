//! Clients that send garbage, half messages and floods, that never read, or that come a thousand at a time; and what
//! clients can hold: places, descriptors, and time of the server's thread. Those without a right hold nothing, those of
//! other users a part, and none keeps the program's user and root out.
#![cfg(feature = "server")]

mod child;
mod users;

use child::Talk;
use eventring::control::{ControlError, ControlErrorKind, Process, Server, ServerAddress};
use eventring::recorder::{ContentDescription, Recorder};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{IoSlice, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

fn server(name: &str) -> Server {
    Server::builder().abstract_name(format!("{name}-{}", std::process::id())).clients_max(32).start().unwrap()
}

fn connect(server: &Server) -> OwnedFd {
    let ServerAddress::Abstract(name) = server.address() else { panic!("an abstract name") };
    connect_to(name)
}

fn connect_to(name: &str) -> OwnedFd {
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

/// The user of the program that serves.
const OWNER: u32 = 4713;
/// A user without any right.
const STRANGER: u32 = 4711;
/// Users who may import and switch.
const GUESTS: [u32; 2] = [4712, 4714];
/// The largest number of files that the program may have open, and of descriptors that its user may have on their way.
const FILES_MAX: u64 = 64;
/// The number of clients that the program lets in.
const CLIENTS_MAX: usize = 16;

/// Plays the program: it serves one ring, as a user without privileges. Then it does what it is told.
fn program() {
    let limit = Rlimit { current: Some(FILES_MAX), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    if !users::become_user(OWNER, OWNER) {
        return child::say("SKIPPED");
    }
    let name = child::place().into_os_string().into_string().unwrap();
    let server = Server::builder().abstract_name(name).clients_max(CLIENTS_MAX);
    let _server = GUESTS.into_iter().fold(server, |server, guest| server.allow_switch(guest)).start().unwrap();
    let description = ContentDescription::new(300, "HELD");
    let _ring = Recorder::builder(description).anonymous().shifts(16, 27).prefault(false).build().unwrap();
    child::say("serving");
    let mut line = String::new();
    let mut filler: Vec<OwnedFd> = Vec::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        match std::mem::take(&mut line).trim() {
            "pass" => child::say(passed()),
            "fill" => {
                filler.extend(std::iter::from_fn(|| std::io::stdin().as_fd().try_clone_to_owned().ok()));
                child::say(filler.len());
            }
            _ => filler.clear(),
        }
    }
}

/// Passes a descriptor from one end of a connection to the other, as any program of the user may want to.
fn passed() -> String {
    let (ours, _theirs) = pair();
    let (stdin, mut space) = (std::io::stdin(), [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [stdin.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    format!("{:?}", rustix::net::sendmsg(&ours, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()))
}

fn pair() -> (OwnedFd, OwnedFd) {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// The program that serves, as the test sees it.
struct Served {
    talk: Talk,
    name: String,
}

impl Served {
    /// Starts the program. Returns `None` if this system lets nobody play other users.
    fn start(test: &str) -> Option<Self> {
        let name = format!("held-{}-{}", std::process::id(), &test[..20]);
        let mut talk = Talk::with(child::play(test, "program", Path::new(&name)));
        let is_serving = rustix::process::geteuid().is_root() && talk.hear() == "serving";
        if !is_serving {
            eprintln!("SKIPPED: only root can play other users");
        }
        is_serving.then_some(Self { talk, name })
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.talk.child.stdin.as_ref().unwrap(), "{what}").unwrap();
    }

    fn connect(&self) -> Result<Process, ControlError> {
        Process::connect(&ServerAddress::Abstract(self.name.clone()))
    }

    fn raw(&self) -> OwnedFd {
        connect_to(&self.name)
    }

    /// Connects as a client that greets and then asks for the ring, or for the list, without ever reading an answer.
    fn greedy(&self, kind: u16, body: &[u8]) -> OwnedFd {
        let socket = self.raw();
        assert!(send(&socket, &message(1, &[0; 4])));
        while send(&socket, &message(kind, body)) {}
        socket
    }

    fn importing(&self) -> OwnedFd {
        self.greedy(3, &[&1_u64.to_le_bytes()[..], &[0; 34]].concat())
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.talk.child.id())).unwrap().count()
    }

    /// Returns the part of a second for which the server's thread works.
    fn work(&self) -> f64 {
        let before = self.ticks();
        std::thread::sleep(Duration::from_secs(1));
        (self.ticks() - before) as f64 / 100.0
    }

    /// Lets a user do something for some seconds, without a pause.
    fn assert_flood_is_bounded(&self, user: u32, act: impl Fn() + Sync) {
        let until = Instant::now() + Duration::from_secs(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(users::become_user(user, user));
                while Instant::now() < until {
                    act();
                }
            });
            // Some work is free.
            std::thread::sleep(Duration::from_secs(1));
            let work = self.work();
            assert!(work < 0.3, "user {user} makes the server work {work} of the time");
            self.connect().unwrap().files().unwrap();
        });
    }

    /// Returns the processor time of the server's thread in hundredths of a second.
    fn ticks(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.talk.child.id())).unwrap();
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
        let of_server = |stat: String| {
            let (name, fields) = stat.rsplit_once(") ")?;
            let ticks = |field: usize| fields.split(' ').nth(field)?.parse::<u64>().ok();
            name.ends_with("(eventring-serve").then(|| Some(ticks(11)? + ticks(12)?))?
        };
        stats.filter_map(of_server).sum()
    }
}

/// Runs something on a thread of another user.
fn as_user<T: Send>(user: u32, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            assert!(users::become_user(user, user));
            run()
        });
        thread.join().unwrap()
    })
}

#[test]
fn a_client_that_imports_and_never_reads_costs_no_time_and_no_descriptors_of_others() {
    const NAME: &str = "a_client_that_imports_and_never_reads_costs_no_time_and_no_descriptors_of_others";
    if child::part().is_some() {
        return program();
    }
    let Some(mut served) = Served::start(NAME) else { return };
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
    const NAME: &str = "users_without_a_right_hold_no_place_and_no_descriptor_and_are_told_why";
    if child::part().is_some() {
        return program();
    }
    let Some(served) = Served::start(NAME) else { return };
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
    const NAME: &str = "users_who_were_let_in_have_a_part_of_the_places";
    if child::part().is_some() {
        return program();
    }
    let Some(served) = Served::start(NAME) else { return };
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
    const NAME: &str = "no_client_keeps_the_thread_of_the_server_busy";
    if child::part().is_some() {
        return program();
    }
    let Some(mut served) = Served::start(NAME) else { return };
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
