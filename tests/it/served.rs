//! A program that serves, as a user without privileges, and clients of several users that speak to it byte by byte.

use crate::fixtures::*;
use eventring::control::{ControlError, Process, Server, ServerAddress};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::IoSlice;

pub fn socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

pub fn connect_to(name: &str) -> OwnedFd {
    let socket = socket();
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

/// Sends bytes as one packet. Returns false if the server has closed the connection, or takes no more.
pub fn send(socket: &OwnedFd, bytes: &[u8]) -> bool {
    try_send(socket, bytes).is_ok()
}

pub fn try_send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

pub fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"EVRC".to_vec();
    bytes.extend_from_slice(&1_u16.to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&7_u32.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The user of the program that serves.
pub const OWNER: u32 = 4713;
/// A user without any right.
pub const STRANGER: u32 = 4711;
/// Users who may import and switch.
pub const GUESTS: [u32; 2] = [4712, 4714];
/// The largest number of files that the program may have open, and of descriptors that its user may have on their way.
pub const FILES_MAX: u64 = 64;
/// The body of a message that asks for the ring.
pub const IMPORT: &[u8] = &{
    let mut body = [0; 42];
    body[0] = 1;
    body
};
/// The number of clients that the program lets in.
pub const CLIENTS_MAX: usize = 16;

/// Plays the program: it serves one ring, as a user without privileges. Then it does what it is told.
pub fn program() {
    program_with(|| ());
}

/// Plays the program. `begin` makes what it has beside its ring.
pub fn program_with<T>(begin: impl FnOnce() -> T) {
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
    let _more = begin();
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
pub struct Served {
    pub talk: Talk,
    pub name: String,
}

impl Served {
    /// Starts the program. Returns `None` if this system lets nobody play other users.
    pub fn start(test: &str) -> Option<Self> {
        let name = format!("held-{}-{}", std::process::id(), &test.rsplit("::").next().unwrap()[..20]);
        let mut talk = Talk::start(test, "program", Path::new(&name));
        let is_serving = rustix::process::geteuid().is_root() && talk.hear() == "serving";
        if !is_serving {
            eventring_stress::missing("only root can play other users");
        }
        is_serving.then_some(Self { talk, name })
    }

    pub fn tell(&mut self, what: &str) {
        writeln!(self.talk.child.stdin.as_ref().unwrap(), "{what}").unwrap();
    }

    pub fn connect(&self) -> Result<Process, ControlError> {
        Process::connect(&ServerAddress::Abstract(self.name.clone()))
    }

    pub fn raw(&self) -> OwnedFd {
        connect_to(&self.name)
    }

    /// Connects as a client that greets.
    pub fn greeting(&self) -> OwnedFd {
        let socket = self.raw();
        // A server that lets this user do nothing may have closed the connection already.
        let _ = send(&socket, &message(1, &[0; 4]));
        socket
    }

    /// Connects as a client that greets and then asks for the ring, or for the list, without ever reading an answer.
    pub fn greedy(&self, kind: u16, body: &[u8]) -> OwnedFd {
        let socket = self.greeting();
        while send(&socket, &message(kind, body)) {}
        socket
    }

    pub fn importing(&self) -> OwnedFd {
        self.greedy(3, IMPORT)
    }

    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.talk.child.id())).unwrap().count()
    }

    /// Returns the part of the next seconds for which the server's thread works.
    pub fn work_for(&self, seconds: u32) -> f64 {
        let (before, begin) = (self.ticks(), Instant::now());
        std::thread::sleep(Duration::from_secs(seconds.into()));
        // On a busy machine this thread may come late.
        (self.ticks() - before) as f64 / (100.0 * begin.elapsed().as_secs_f64())
    }

    /// Returns the part of a second for which the server's thread works.
    pub fn work(&self) -> f64 {
        self.work_for(1)
    }

    /// Lets a user do something for some seconds, without a pause.
    pub fn assert_flood_is_bounded(&self, user: u32, act: impl Fn() + Sync) {
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
pub fn as_user<T: Send>(user: u32, run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            assert!(users::become_user(user, user));
            run()
        });
        thread.join().unwrap()
    })
}
