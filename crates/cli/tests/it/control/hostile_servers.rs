//! Servers that lie to their clients: lists and answers without an end, names that are paths, process ids of others,
//! descriptors that are no rings. Each client ends within a bounded time, with a message, and with bounded memory.

use crate::fixtures::*;
use eventring::control::{Process, Server, ServerAddress};
use eventring_stress::users;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use std::io::IoSlice;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;

/// The kinds of messages, as docs/CONTROL.md names them.
mod kind {
    pub const LIST: u16 = 2;
    pub const IMPORT: u16 = 3;
    pub const FOLLOW: u16 = 4;
    pub const STATE: u16 = 7;
    pub const WELCOME: u16 = 0x8001;
    pub const FILE: u16 = 0x8002;
    pub const END: u16 = 0x8003;
    pub const IMPORTED: u16 = 0x8004;
    pub const STATE_ANSWER: u16 = 0x8006;
    pub const OVERRIDE: u16 = 0x8007;
    pub const ADDED: u16 = 0x8009;
}

/// The memory that a client may address.
const MEMORY_MAX: u64 = 2 << 30;
/// The time after which each client has ended, on a busy machine.
const TIME_MAX: Duration = Duration::from_secs(40);

/// A message of a server, with its descriptors.
fn message(kind: u16, number: u32, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let numbers = [1_u16, kind].map(u16::to_le_bytes).concat();
    [b"EVRC", &numbers[..], &number.to_le_bytes(), &(body.len() as u32).to_le_bytes(), &body].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Returns the body of FILE and ADDED.
fn file(id: u64, name: &str, path: &str) -> Vec<u8> {
    let numbers = [&id.to_le_bytes()[..], &u64::MAX.to_le_bytes(), &[0; 12], &300_u16.to_le_bytes(), &[7; 32]].concat();
    [numbers, text(name), text("LIES"), text(path)].concat()
}

/// One client of a hostile server.
struct Client {
    socket: OwnedFd,
}

impl Client {
    /// Sends a message. Waits while the client reads slowly. Returns false if the client has gone.
    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        rustix::net::sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).is_ok()
    }

    fn answer(&self, kind: u16, number: u32, parts: &[&[u8]]) -> bool {
        self.send(&message(kind, number, parts), &[])
    }

    fn end(&self, number: u32) -> bool {
        self.answer(kind::END, number, &[&[0; 8]])
    }

    fn list(&self, number: u32, files: &[Vec<u8>]) -> bool {
        files.iter().all(|file| self.answer(kind::FILE, number, &[file])) && self.end(number)
    }

    fn state(&self, number: u32) -> bool {
        self.answer(kind::STATE_ANSWER, number, &[&text(""), &text("")]) && self.end(number)
    }
}

/// A hostile server. It greets as every server does, with the id of another process. The rest is what `lie` does with
/// each request: its kind and its number.
struct Hostile {
    address: String,
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Hostile {
    fn serve(name: &str, lie: impl Fn(&Client, u16, u32) -> bool + Sync + Send + 'static) -> Self {
        let name = format!("hostile-{}-{name}", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        Self::with_address(format!("@{name}"), &address, lie)
    }

    fn with_address(
        name: String,
        address: &SocketAddrUnix,
        lie: impl Fn(&Client, u16, u32) -> bool + Sync + Send + 'static,
    ) -> Self {
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let listener = listener.unwrap();
        rustix::net::bind(&listener, address).unwrap();
        rustix::net::listen(&listener, 16).unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let wait = Timespec::try_from(Duration::from_millis(20)).unwrap();
            let lie = &lie;
            std::thread::scope(|scope| {
                while !stopped.load(Ordering::Relaxed) {
                    let mut polled = [PollFd::new(&listener, PollFlags::IN)];
                    if poll(&mut polled, Some(&wait)).is_ok_and(|ready| ready > 0) {
                        let socket = rustix::net::accept(&listener).unwrap();
                        scope.spawn(move || converse(&Client { socket }, lie));
                    }
                }
            });
        });
        Self { address: name, stop, thread: Some(thread) }
    }
}

/// Answers the requests of a client until it goes, or until `lie` returns false.
fn converse(client: &Client, lie: &(impl Fn(&Client, u16, u32) -> bool + Sync)) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let received = rustix::net::recv(&client.socket, &mut buffer[..], RecvFlags::empty());
        if received.is_ok_and(|(_, bytes)| bytes < 16) || received.is_err() {
            return;
        }
        let kind = u16::from_le_bytes([buffer[6], buffer[7]]);
        let number = u32::from_le_bytes(buffer[8..12].try_into().unwrap());
        let goes_on = match kind {
            // Process 1 is not the one that serves.
            1 => client.answer(kind::WELCOME, number, &[&1_u32.to_le_bytes(), &[1, 0], &[0; 4], &text("honest")]),
            kind => lie(client, kind, number),
        };
        if !goes_on {
            return;
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Runs the program with bounded memory. It must end within a bounded time, by itself.
fn run_in(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = program::program(arguments);
    command.current_dir(directory).env("EVENTRING_DIR", directory).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let limit = Rlimit { current: Some(MEMORY_MAX), ..getrlimit(Resource::As) };
    prlimit(Some(Pid::from_child(&child)), Resource::As, limit).unwrap();
    let start = Instant::now();
    let streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |mut stream: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
    };
    let (out, err) = (read(Box::new(streams.0)), read(Box::new(streams.1)));
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if start.elapsed() > TIME_MAX {
            child.kill().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Run { command: String::new(), code, out: out.join().unwrap(), err: err.join().unwrap() }
}

fn assert_ends_with(run: &Run, message: &str) {
    assert!(run.code.is_some_and(|code| code != 0 && code != 101), "{run:?}");
    assert!(run.err.contains(message), "{run:?}");
}

#[test]
fn answers_without_an_end_are_given_up() {
    let directory = program::directory();
    let server = Hostile::serve("endless", |client, kind, number| {
        let id = AtomicU64::new(0);
        let name = "x".repeat(10_000);
        let filter_override = [&[0; 16][..], &text(&name)].concat();
        match kind {
            kind::STATE => {
                client.answer(kind::STATE_ANSWER, number, &[&text(""), &text("")]);
                while client.answer(kind::OVERRIDE, number, &[&filter_override]) {}
            }
            _ => while client.answer(kind::FILE, number, &[&file(id.fetch_add(1, Ordering::Relaxed), &name, "")]) {},
        }
        false
    });
    for arguments in [
        &["levels", &server.address][..],
        &["watch", &server.address],
        &["info", &server.address],
        &["capture", &server.address, "-d", "1s"],
        &["disable", &server.address, "info"],
    ] {
        let run = run_in(directory.path(), arguments);
        // On a busy machine the client's timeout may end before so much has come that it is too much.
        let is_late = run.err.contains("the server has not ended its answer within");
        assert_ends_with(&run, if is_late { "" } else { "the server's answer has no end" });
        assert_eq!(run.code, Some(1), "this is no other version: {run:?}");
    }
}

#[test]
fn answers_that_drip_and_messages_that_nobody_has_asked_for_give_a_server_no_more_time() {
    let directory = program::directory();
    let dripping = Hostile::serve("drip", |client, _, number| {
        wait_while(|| client.answer(kind::FILE, number, &[&file(1, "x", "")]));
        false
    });
    let telling = Hostile::serve("tell", |client, kind, number| match kind {
        kind::LIST | kind::FOLLOW => {
            while client.answer(kind::ADDED, 0, &[&file(1, "x", "")]) {}
            false
        }
        _ => client.state(number),
    });
    for server in [&dripping, &telling] {
        let start = Instant::now();
        assert_ends_with(&run_in(directory.path(), &["capture", &server.address, "-d", "1s"]), "answer");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    }
    // A client that looks only for changes, or for the end, is not held up either.
    let flooding = Hostile::serve("flood", |client, _, number| {
        client.end(number);
        while client.answer(kind::ADDED, 0, &[&file(1, &"x".repeat(16_000), "")]) {}
        false
    });
    let process = Process::connect(&ServerAddress::new(&flooding.address)).unwrap();
    process.follow().unwrap();
    for _ in 0..3 {
        assert!(process.changes().len() <= 4096 && !process.is_gone());
    }
}

#[test]
fn no_name_of_a_server_leads_to_a_file_or_to_another_ring() {
    alone!();
    let (directory, [outside]) = places(["outside"]);
    let mine = program::exec_ring(&outside);
    drop(std::fs::create_dir(program::place(&directory, "in")));
    let ring = Recorder::builder(ContentDescription::new(300, "LIES")).anonymous().shifts(16, 27).prefault(false);
    let ring = ring.build().unwrap();
    ring.record(2, [0; 4], b"payload");
    let reader = std::sync::Arc::new(Reader::options().open_fd(ring_descriptor(&ring)).unwrap());
    let path = outside.to_str().unwrap().to_owned();
    let server = Hostile::serve("names", move |client, kind, number| match kind {
        kind::LIST | kind::FOLLOW => client.list(
            number,
            &[
                file(1, "../outside", ""),
                file(2, "/etc/passwd", "/etc/passwd"),
                file(3, "\u{1b}[31mred\n", &path),
                file(4, "#1", "relative"),
                file(5, "..", "/proc/self/fd/0"),
            ],
        ),
        kind::IMPORT => {
            let descriptor = reader.open_read_only().unwrap();
            client.send(&message(kind::IMPORTED, number, &[&[0; 16]]), &[descriptor.as_fd()])
        }
        _ => client.state(number),
    });
    let place = program::place(&directory, "in");
    let capture = run_in(&place, &["capture", &server.address, "-d", "1s", "-o", "all.evc"]);
    assert_eq!(capture.code, Some(0), "{capture:?}");
    let captured = CaptureFile::open(&place.join("all.evc")).unwrap();
    let rings = captured.rings().iter().map(|ring| (ring.content_type, ring.content_name.as_str()));
    // They are all the same ring.
    assert_eq!(rings.collect::<Vec<_>>(), [(300, "LIES")]);
    let info = run_in(&place, &["info", &format!("{}/.._outside", server.address), "--json"]);
    assert_eq!(info.json()["content_type"]["code"], 300, "{info:?}");
    let snapshot = run_in(&place, &["snapshot", &format!("{}/_etc_passwd", server.address)]);
    assert_eq!(snapshot.code, Some(0), "{snapshot:?}");
    let capture = run_in(&place, &["capture", &server.address, "-d", "1s"]);
    assert_eq!(capture.code, Some(0), "{capture:?}");
    let watch = run_in(&place, &["info", &server.address]);
    assert!(watch.err.contains("several such rings") && !watch.err.contains('\u{1b}'), "{watch:?}");
    let mut made: Vec<String> = std::fs::read_dir(&place).unwrap().map(|entry| name_of(&entry.unwrap())).collect();
    made.sort();
    assert_eq!(made, [".._outside.evc", "_etc_passwd.snapshot.zst", "all.evc"]);
    drop(mine);
}

#[test]
fn rings_without_end_and_slow_imports_hold_up_neither_a_list_nor_a_capture() {
    alone!();
    let directory = program::directory();
    let ring = Recorder::builder(ContentDescription::new(300, "LIES")).anonymous().compact(true).shifts(15, 21);
    let ring = ring.build().unwrap();
    let reader = Reader::options().open_fd(ring_descriptor(&ring)).unwrap();
    let (last_id, is_slow) = (AtomicU64::new(0), std::sync::Arc::new(AtomicBool::new(true)));
    let slow = is_slow.clone();
    let path = program::place(&directory, "7-00000000.sock");
    let address = SocketAddrUnix::new(&path).unwrap();
    let server =
        Hostile::with_address(path.to_str().unwrap().into(), &address, move |client, kind, number| match kind {
            kind::LIST | kind::FOLLOW => {
                let ids = 0..last_id.fetch_add(20, Ordering::Relaxed) + 100;
                let files: Vec<_> = ids.map(|id| file(id, &format!("\u{1b}[2J{id}"), "/etc/hostname")).collect();
                client.list(number, &files) && client.answer(kind::ADDED, 0, &[&files[0]])
            }
            kind::IMPORT => {
                if slow.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_secs(1));
                }
                let descriptor = reader.open_read_only().unwrap();
                client.send(&message(kind::IMPORTED, number, &[&[0; 16]]), &[descriptor.as_fd()])
            }
            _ => client.state(number),
        });
    let start = Instant::now();
    let list = run_in(directory.path(), &["list"]);
    // All imports would take 100 seconds.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(list.code == Some(0) && !list.out.contains('\u{1b}') && !list.err.contains('\u{1b}'), "{list:?}");
    // A server may hand out more rings than the address space has room for. The first of those is then an error.
    let has_no_room = |capture: &Run| capture.code == Some(12) && capture.err.contains("address space");
    // Those that are not opened in time are made, and others are captured.
    let capture = run_in(directory.path(), &["capture", &server.address, "--wait", "-d", "1s", "-o", "waits.evc"]);
    let told = capture.err.lines().find(|line| line.contains("not opened in time")).unwrap_or_default();
    assert!((capture.code == Some(0) || has_no_room(&capture)) && told.contains(" more"), "{capture:?}");
    assert_eq!(told.matches(".sock/").count(), 20, "{told}");
    for slowness in [true, false] {
        is_slow.store(slowness, Ordering::Relaxed);
        let start = Instant::now();
        let output = format!("{slowness}.evc");
        let capture = run_in(directory.path(), &["capture", &server.address, "-d", "1s", "-o", &output]);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        let is_over = capture.code == Some(0) && capture.err.contains("the time was over");
        assert!(is_over || has_no_room(&capture), "{capture:?}");
    }
}

fn name_of(entry: &std::fs::DirEntry) -> String {
    entry.file_name().into_string().unwrap()
}

/// Returns a descriptor of the ring in anonymous memory, as an honest server hands it out.
fn ring_descriptor(ring: &Recorder) -> OwnedFd {
    let name = format!("honest-{}-{}", std::process::id(), ring.stats().last_seqno);
    let server = Server::builder().abstract_name(name).start().unwrap();
    let process = Process::connect(server.address()).unwrap();
    let files = process.files().unwrap();
    process.import(files.iter().find(|file| file.content_name() == "LIES").unwrap()).unwrap()
}

#[test]
fn descriptors_that_are_no_rings_are_errors_and_none_stays_open() {
    alone!();
    let directory = program::directory();
    let huge = rustix::fs::memfd_create("huge", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&huge, 1 << 50).unwrap();
    let (reading, writing) = std::io::pipe().unwrap();
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let folder = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
    let endless = OwnedFd::from(std::fs::File::open("/dev/zero").unwrap());
    let path_only = rustix::fs::open("/etc/passwd", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    let bad: Vec<OwnedFd> =
        vec![huge, reading.into(), writing.into(), one.into(), other.into(), folder, endless, path_only];
    let count = bad.len() as u64;
    let turn = AtomicU64::new(0);
    let server = Hostile::serve("descriptors", move |client, kind, number| match kind {
        kind::IMPORT => {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            let imported = message(kind::IMPORTED, number, &[&[0; 16]]);
            match turn.checked_sub(count) {
                None => client.send(&imported, &[bad[turn as usize].as_fd()]),
                // None at all, and more than one.
                Some(0) => client.send(&imported, &[]),
                Some(_) => client.send(&imported, &bad.iter().chain(&bad).map(|fd| fd.as_fd()).collect::<Vec<_>>()),
            }
        }
        kind::LIST | kind::FOLLOW => client.list(number, &[file(1, "LIES", "")]),
        _ => client.state(number),
    });
    for turn in 0..count + 2 {
        let run = run_in(directory.path(), &["info", &server.address]);
        assert!(run.code.is_some_and(|code| code != 0 && code != 101) && !run.err.is_empty(), "{turn}: {run:?}");
        assert_eq!(run.err.contains("came without its descriptor"), turn == count, "{turn}: {run:?}");
    }
    let process = Process::connect(&ServerAddress::new(&server.address)).unwrap();
    let file = process.files().unwrap().remove(0);
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for _ in 0..100 {
        drop(process.import(&file).unwrap());
    }
    // Other tests of this program open descriptors, too.
    assert!(open() < before + 50, "{before} {}", open());
}

#[test]
fn the_process_and_the_user_of_a_server_are_those_that_the_kernel_knows() {
    let directory = program::directory();
    let honest = |client: &Client, kind: u16, number: u32| match kind {
        kind::LIST | kind::FOLLOW => client.list(number, &[]),
        _ => client.state(number),
    };
    let own = Hostile::serve("own", honest);
    let process = Process::connect(&ServerAddress::new(&own.address)).unwrap();
    assert_eq!((process.pid(), process.user()), (std::process::id(), rustix::process::geteuid().as_raw()));
    let levels = run_in(directory.path(), &["levels", &own.address]);
    assert!(levels.out.contains(&format!("honest (process {})", std::process::id())), "{levels:?}");
    assert!(levels.err.is_empty(), "{levels:?}");
    // A socket with another id in its name does not make its process that one.
    let path = program::place(&directory, "1-00000000.sock");
    let _planted = Hostile::with_address(path.to_str().unwrap().into(), &SocketAddrUnix::new(&path).unwrap(), honest);
    assert_ends_with(&run_in(directory.path(), &["levels", "pid:1"]), "has no server in the ring directories");
    if !users::can_be_played() {
        return;
    }
    let strangers =
        std::thread::spawn(move || users::become_user(4711, 4711).then(|| Hostile::serve("stranger", honest)));
    let Some(strangers) = strangers.join().unwrap() else {
        return eventring_stress::missing("this system does not let root become another user");
    };
    let said = format!("is served by process {} of user 4711", std::process::id());
    let levels = run_in(directory.path(), &["levels", &strangers.address]);
    assert!(levels.code == Some(0) && levels.err.contains(&said), "{levels:?}");
    let levels = run_in(directory.path(), &["levels", &strangers.address, "--json"]);
    assert_eq!(levels.json()["user"], 4711);
    assert_ends_with(&run_in(directory.path(), &["capture", &strangers.address, "-d", "1s"]), &said);
}

#[test]
fn nothing_is_asked_of_the_file_systems_to_which_a_stranger_leads() {
    // It stands for a file system that the stranger serves (FUSE), and that never answers.
    let elsewhere = |client: &Client, kind: u16, number: u32| match kind {
        kind::LIST | kind::FOLLOW => client.list(number, &[file(1, "LIES", "/proc/version")]),
        kind::IMPORT => {
            let descriptor = std::fs::File::open("/proc/version").unwrap();
            client.send(&message(kind::IMPORTED, number, &[&[0; 16]]), &[descriptor.as_fd()])
        }
        _ => client.state(number),
    };
    let directory = program::directory();
    let refused = |address: &str| {
        let run = run_in(directory.path(), &["info", &format!("{address}/LIES")]);
        assert_ne!(run.code, Some(0), "{run:?}");
        run.err.contains("is not in memory, expected a file of /dev/shm or hugetlbfs")
    };
    // The user's own programs may serve rings of any file system.
    assert!(!refused(&Hostile::serve("own-elsewhere", elsewhere).address));
    let become_stranger = move || users::become_user(4711, 4711).then(|| Hostile::serve("elsewhere", elsewhere));
    match std::thread::spawn(become_stranger).join().unwrap() {
        Some(strangers) => assert!(refused(&strangers.address)),
        None => eventring_stress::missing("only root can play another user"),
    }
}
