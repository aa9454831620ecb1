//! A program that has a server, and forks: nothing of the server stays in the children.

use super::{anonymous, wait_until};
use crate::fixtures::*;
use eventring::control::{ControlErrorKind, Process, Server, ServerAddress};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Much less than the five seconds that a client waits for an answer. On an idle machine a client learns of a death
/// within 5 milliseconds.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Forks. The child runs `body`, which does not return. Returns the child's process id.
fn fork(body: impl FnOnce() -> std::convert::Infallible) -> i32 {
    // SAFETY: the child uses nothing that another thread of this process could hold at the moment of the fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        body();
    }
    pid
}

/// Waits for ever, in a forked child.
fn stay() -> std::convert::Infallible {
    loop {
        // SAFETY: the call has no preconditions.
        unsafe { libc::pause() };
    }
}

/// Becomes the program `sleep`.
fn become_another_program() -> std::convert::Infallible {
    let (name, seconds) = (c"sleep", c"600");
    // SAFETY: all texts end with a NUL, and so does the list.
    unsafe { libc::execlp(name.as_ptr(), name.as_ptr(), seconds.as_ptr(), std::ptr::null::<libc::c_char>()) };
    std::process::abort()
}

/// Plays the program. It forks when the test says so: a child that stays, one that becomes another program, and one
/// that ends as programs end, after it has dropped its copies of the server and of the ring.
fn program() {
    let server = Server::builder().address(ServerAddress::new(child::place())).start().unwrap();
    let ring = anonymous("SHOP");
    ring.record(2, [0; 4], b"before the fork");
    child::say("begun");
    child::wait_for_parent();
    let (mut server, mut ring) = (Some(server), Some(ring));
    let stays = fork(stay);
    let executes = fork(become_another_program);
    let code = forked::in_child(|| {
        drop(server.take());
        drop(ring.take());
        // SAFETY: this is the call that `std::process::exit` makes, and this process has no other thread.
        unsafe { libc::exit(0) }
    });
    assert_eq!(code, 0);
    child::say(format_args!("{stays} {executes}"));
    child::wait_for_parent();
}

/// The program, and the children that outlive it until this value is dropped.
struct Family {
    talk: Talk,
    children: Vec<Pid>,
}

impl Family {
    fn start(test: &str, address: &str) -> Self {
        let talk = Talk::told(test, "program", Path::new(address), "begun");
        Self { talk, children: Vec::new() }
    }

    fn tell(&mut self) {
        self.talk.child.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    }

    fn fork(&mut self) {
        self.tell();
        let pids = self.talk.hear();
        self.children = pids.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
        // The second child has become the other program.
        let name = format!("/proc/{}/comm", self.children[1].as_raw_pid());
        wait_until(|| std::fs::read_to_string(&name).unwrap().trim() == "sleep");
    }

    fn pid(&self) -> u32 {
        self.talk.child.id()
    }

    fn assert_that_the_children_live(&self) {
        for child in &self.children {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.as_raw_pid())).unwrap();
            // It may run or sleep, but has not ended.
            assert!(["State:\tS", "State:\tR", "State:\tD"].iter().any(|state| status.contains(state)), "{status}");
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        for child in &self.children {
            let _ = kill_process(*child, Signal::KILL);
        }
    }
}

/// Returns what the descriptors of a process lead to, except those of input and output.
fn descriptors(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let others = entries.filter(|entry| entry.file_name().to_str().unwrap().parse::<u32>().unwrap() > 2);
    others.filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned())).collect()
}

/// A connection without any process id: as a client has it that does not see the program's processes.
fn connection(address: &ServerAddress) -> OwnedFd {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let address = match address {
        ServerAddress::Path(path) => SocketAddrUnix::new(path).unwrap(),
        ServerAddress::Abstract(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap(),
    };
    rustix::net::connect(&socket, &address).unwrap();
    let hello = b"EVRC\x01\0\x01\0\x01\0\0\0\x04\0\0\0\0\0\0\0";
    assert_eq!(rustix::net::send(&socket, hello, SendFlags::NOSIGNAL).unwrap(), hello.len());
    let mut welcome = [0; 1000];
    assert!(rustix::net::recv(&socket, &mut welcome[..], RecvFlags::empty()).unwrap().1 > 16);
    socket
}

fn has_ended(connection: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(connection, PollFlags::IN)];
    poll(&mut polled, Some(&rustix::event::Timespec::default())).unwrap();
    polled[0].revents().contains(PollFlags::HUP)
}

#[test]
fn a_child_has_no_descriptor_of_the_server_and_does_not_end_it() {
    let test = plays!(program());
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let mut family = Family::start(test, socket.to_str().unwrap());
    let process = Process::connect(&ServerAddress::new(&socket)).unwrap();
    family.fork();
    let parent = descriptors(family.pid());
    let is_of_server = |path: &&String| ["socket:", "anon_inode:"].iter().any(|kind| path.starts_with(kind));
    // The socket, its client and the client's process, the two descriptors that wake the server, and its epoll.
    assert!(parent.iter().filter(is_of_server).count() >= 6, "{parent:?}");
    let [stays, executes] = [0, 1].map(|child| descriptors(family.children[child].as_raw_pid().unsigned_abs()));
    assert!(stays.iter().any(|path| path.starts_with("/memfd:")), "{stays:?}");
    assert!(!stays.iter().any(|path| is_of_server(&path)), "{stays:?}");
    // Neither the server's nor the ring's. (The program itself may have inherited files that everybody inherits.)
    assert!(!executes.iter().any(|path| is_of_server(&path) || path.starts_with("/memfd:")), "{executes:?}");
    // A third child has dropped everything, and has run the exit handlers. The server is still there.
    assert!(socket.exists() && !process.is_gone());
    assert_eq!(process.files().unwrap().len(), 1);
    let again = Process::connect(&ServerAddress::new(&socket)).unwrap();
    assert_eq!((again.pid(), again.files().unwrap().len()), (family.pid(), 1));
    family.assert_that_the_children_live();
}

#[test]
fn clients_learn_of_the_end_of_a_program_whose_children_live_and_the_next_program_takes_its_name() {
    let test = plays!(program());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control").to_str().unwrap().to_owned();
    let name = format!("@eventring-fork-{}", std::process::id());
    for (address, is_killed) in [(&path, true), (&path, false), (&name, true), (&name, false)] {
        let mut family = Family::start(test, address);
        let address = ServerAddress::new(address);
        let (process, connection) = (Process::connect(&address).unwrap(), connection(&address));
        assert_eq!(process.pid(), family.pid());
        family.fork();
        assert!(!process.is_gone() && !has_ended(&connection));
        if is_killed {
            family.talk.child.kill().unwrap();
        } else {
            family.tell();
        }
        let start = Instant::now();
        wait_until(|| process.is_gone());
        wait_until(|| has_ended(&connection));
        assert_eq!(process.files().unwrap_err().kind(), ControlErrorKind::Gone);
        wait_until(|| Process::connect(&address).is_err_and(|error| error.kind() == ControlErrorKind::NoServer));
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
        family.talk.child.wait().unwrap();
        family.assert_that_the_children_live();
        // The next program has the name, while the children of the last one live.
        let next = Family::start(test, &address.to_string());
        assert_eq!(Process::connect(&address).unwrap().pid(), next.pid());
        family.assert_that_the_children_live();
    }
}

#[test]
fn a_child_that_makes_a_ring_gets_a_server_of_its_own() {
    let test = plays!({
        let _ring = anonymous("PARENT");
        let child = fork(|| {
            let _ring = anonymous("CHILD");
            stay()
        });
        child::say(child);
        child::wait_for_parent();
    });
    let directory = tempfile::tempdir().unwrap();
    let mut command = child::play(test, "program", Path::new(""));
    command.env("EVENTRING_SERVER", "1").env("EVENTRING_DIR", directory.path());
    let mut talk = Talk::with(command);
    let child: u32 = talk.hear().parse().unwrap();
    let mut family = Family { talk, children: vec![Pid::from_raw(child.cast_signed()).unwrap()] };
    let served = || {
        let servers = ServerAddress::in_ring_directory(directory.path());
        let connected = servers.iter().filter_map(|address| Process::connect(address).ok());
        let names = |process: &Process| process.files().unwrap().iter().map(|file| file.name().to_owned()).collect();
        connected.map(|process| (process.pid(), names(&process))).collect::<BTreeMap<u32, Vec<String>>>()
    };
    let both = BTreeMap::from([(family.pid(), vec!["PARENT".to_owned()]), (child, vec!["CHILD".to_owned()])]);
    wait_until(|| served().len() == 2);
    assert_eq!(served(), both);
    assert!({
        family.tell();
        family.talk.child.wait().unwrap().success()
    });
    assert_eq!(served(), BTreeMap::from([(child, vec!["CHILD".to_owned()])]));
}
