//! The places of servers: paths that are taken by something else, that other users cannot reach, or where a process is
//! stopped, or never answers.

use crate::fixtures::*;
use eventring::control::{ControlErrorKind, Process, Server, ServerAddress, environment_error};
use eventring_stress::users;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;

/// Plays the program: it makes a ring, and says why it has no server.
fn program() {
    let _ring = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).build().unwrap();
    child::say(environment_error().map_or_else(|| "served".to_owned(), |error| format!("{:?}: {error}", error.kind())));
    child::wait_for_parent();
}

/// Starts the program with a server at this address. Returns it, and what it says.
fn start(test: &str, address: &str, directory: &Path) -> (Talk, String) {
    let mut command = child::play(test, "program", directory);
    command.env("EVENTRING_SERVER", address).env("EVENTRING_DIR", directory);
    let mut talk = Talk::with(command);
    let said = talk.hear();
    (talk, said)
}

#[test]
fn a_server_leaves_everything_at_its_address_that_is_no_socket_and_the_program_can_say_why() {
    let test = plays!(program());
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "precious").unwrap();
    symlink(at("file"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    let dead = UnixListener::bind(at("dead")).unwrap();
    drop(dead);
    symlink(at("dead"), at("link_to_a_socket")).unwrap();
    for name in ["file", "link", "dangling", "directory", "link_to_a_socket"] {
        let (mut talk, said) = start(test, at(name).to_str().unwrap(), directory.path());
        assert!(said.starts_with("Exists: "), "{name}: {said}");
        assert!(said.contains("that is no socket; name another path"), "{said}");
        assert!(talk.end().success());
    }
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    assert_eq!(fs::read_link(at("link")).unwrap(), at("file"));
    assert!(at("dangling").is_symlink() && at("directory").is_dir() && at("link_to_a_socket").is_symlink());
    assert!(fs::symlink_metadata(at("dead")).unwrap().file_type().is_socket());
    // A served recording is refused in the same way, with the exit code of files that exist.
    run!("serve", program::KEPT, "--socket", at("file").to_str().unwrap()).ends(14);
    // A server that has a place says nothing.
    let (mut talk, said) = start(test, at("free").to_str().unwrap(), directory.path());
    assert_eq!(said, "served");
    assert!(talk.end().success());
    assert!(!at("free").exists());
}

#[test]
fn a_socket_that_somebody_else_has_put_in_the_place_stays() {
    alone!();
    let test = plays!(program());
    let directory = tempfile::tempdir().unwrap();
    let socket = place(&directory, "control");
    // Somebody else was there before, and lives.
    let theirs = UnixListener::bind(&socket).unwrap();
    let (mut talk, said) = start(test, socket.to_str().unwrap(), directory.path());
    assert!(said.starts_with("Io: ") && said.contains("make the socket"), "{said}");
    assert!(talk.end().success());
    assert!(socket.exists());
    drop(theirs);
    fs::remove_file(&socket).unwrap();
    // Somebody else comes while the server lives.
    let (mut talk, said) = start(test, socket.to_str().unwrap(), directory.path());
    assert_eq!(said, "served");
    fs::remove_file(&socket).unwrap();
    let _theirs = UnixListener::bind(&socket).unwrap();
    assert!(talk.end().success());
    assert!(socket.exists());
    let server = Server::builder().address(ServerAddress::Path(place(&directory, "other"))).start().unwrap();
    fs::rename(&socket, place(&directory, "other")).unwrap();
    drop(server);
    assert!(place(&directory, "other").exists());
}

#[test]
fn another_user_who_cannot_reach_the_socket_is_told_so() {
    alone!();
    if !users::can_be_played() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rings = place(&directory, "rings");
    fs::create_dir(&rings).unwrap();
    let socket = rings.join("1-00000000.sock");
    let _server = Server::builder().address(ServerAddress::Path(socket.clone())).allow_import(4711).start().unwrap();
    let set_mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set_mode(directory.path(), 0o755);
    set_mode(&rings, 0o750);
    let path = socket.to_str().unwrap().to_owned();
    let found = thread::spawn(move || {
        users::become_user(4711, 4711)
            .then(|| [Process::connect(&ServerAddress::new(&path)).map(|_| ()), Process::find(&path).map(|_| ())])
    });
    let Some(found) = found.join().unwrap() else {
        return eventring_stress::missing("this system does not let root become another user");
    };
    for refused in found {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ControlErrorKind::PermissionDenied, "{error}");
        assert!(error.to_string().contains("an address that this user can reach"), "{error}");
        assert!(!error.to_string().contains("EVENTRING_SERVER=1"), "{error}");
    }
    // The program is copied, because the user may not be able to go to the place where it was built.
    let copy = place(&directory, "eventring");
    fs::copy(program::PROGRAM, &copy).unwrap();
    set_mode(&copy, 0o755);
    let as_user = |arguments: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(arguments).env("EVENTRING_DIR", &rings).env("NO_COLOR", "1").uid(4711).gid(4711);
        program::finish(command)
    };
    as_user(&["levels", "my-app"]).fails(11, "permission denied").warns("@NAME");
    as_user(&["list"]).fails(11, "as far as this user may look");
}

#[test]
fn names_of_processes_and_of_their_rings_mean_what_messages_say() {
    let test = plays!({
        let _with_a_file = program::exec_ring(&child::place().join("orders"));
        let _another = Recorder::builder(ContentDescription::new(301, "OTHER")).anonymous().shifts(16, 27).build();
        program();
    });
    let directory = program::directory();
    let (talk, said) = start(test, "1", directory.path());
    assert_eq!(said, "served");
    let pid = talk.child.id();
    let path = place(&directory, "orders");
    for name in ["SHOP", "orders", path.to_str().unwrap(), &format!("pid:{pid}"), &format!("pid:{pid}/SHOP")] {
        let levels = run_in!(directory.path(), "levels", name, "--json");
        assert_eq!(levels.json()["pid"], pid, "{name}");
    }
    run_in!(directory.path(), "levels", "pid:").warns("has no number of a process after `pid:`");
    run_in!(directory.path(), "levels", &format!("pid:{}", std::process::id()))
        .warns("has no server in the ring directories");
    let info = run_in!(directory.path(), "info", &format!("pid:{pid}")).fails(13, "several such rings");
    assert!(!info.err.contains("a ring is removed when"), "{info:?}");
    let mut snapshot = program!("snapshot", &format!("pid:{pid}/SHOP"));
    snapshot.env("EVENTRING_DIR", directory.path()).current_dir(directory.path());
    finish(snapshot).ends(0);
    assert!(place(&directory, "SHOP.snapshot.zst").exists());
}

#[test]
fn a_stopped_process_does_not_answer_and_delays_the_list_only_shortly() {
    let test = plays!(program());
    let directory = tempfile::tempdir().unwrap();
    let programs = [(); 3].map(|()| start(test, "1", directory.path()));
    let signal = |signal| {
        for (talk, said) in &programs {
            assert_eq!(said, "served");
            kill_process(Pid::from_child(&talk.child), signal).unwrap();
        }
    };
    signal(Signal::STOP);
    // A process is stopped when each of its threads is.
    let is_stopped = |task: fs::DirEntry| fs::read_to_string(task.path().join("stat")).unwrap().contains(") T ");
    for (talk, _) in &programs {
        let tasks = || fs::read_dir(format!("/proc/{}/task", talk.child.id())).unwrap().map(Result::unwrap);
        wait_while(|| !tasks().all(is_stopped));
    }
    let pid = programs[0].0.child.id();
    let begin = Instant::now();
    let list = run_in!(directory.path(), "list");
    // Each server has 300 milliseconds. Without this limit it takes 15 seconds.
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
    assert_eq!(list.code, Some(0), "{list:?}");
    assert_eq!(list.err.matches("does not answer").count(), 3, "{list:?}");
    run_in!(directory.path(), "levels", "SHOP").warns("does not answer").ends(1);
    run_in!(directory.path(), "levels", &format!("pid:{pid}")).warns(format!("process {pid} does not answer"));
    signal(Signal::CONT);
    let list = run_in!(directory.path(), "list");
    assert_eq!(list.out.matches("0 clients").count(), 3, "{list:?}");
}

#[test]
fn a_socket_is_made_only_where_a_ring_would_be_made() {
    let test = plays!(program());
    let base = program::directory();
    let said_in = |directory: &Path| start(test, "1", directory).1;
    let rings = base.path().join("deep/rings");
    assert_eq!(said_in(&rings), "served");
    assert_eq!(rings.metadata().unwrap().permissions().mode() & 0o777, 0o750);
    for (mode, says) in [(0o777, "everybody may replace files in it"), (0o770, "its group may replace files in it")] {
        fs::set_permissions(&rings, PermissionsExt::from_mode(mode)).unwrap();
        let said = said_in(&rings);
        assert!(said.starts_with("PermissionDenied") && said.contains(says), "{said}");
    }
    fs::set_permissions(&rings, PermissionsExt::from_mode(0o1777)).unwrap();
    assert_eq!(said_in(&rings), "served");
    let link = base.path().join("link");
    std::os::unix::fs::symlink(&rings, &link).unwrap();
    assert!(said_in(&link).contains("it is a link or a file, not a directory"));
    if std::os::unix::fs::chown(&rings, Some(4711), None).is_ok() {
        assert!(said_in(&rings).contains("it belongs to user 4711"));
    }
    let kind = Process::connect(&ServerAddress::Path(rings.join("none"))).unwrap_err().kind();
    assert_eq!(kind, ControlErrorKind::NoServer);
}

/// Makes sockets at which nobody answers, as those of programs that are stopped.
fn silent_sockets(directory: &Path, count: u32) -> Vec<OwnedFd> {
    let socket = |number| {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let path = directory.join(format!("{}-{number:08}.sock", 100_000 + number));
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&socket, 8).unwrap();
        socket
    };
    (0..count).map(socket).collect()
}

#[test]
fn many_servers_that_do_not_answer_are_told_and_delay_no_command_for_long() {
    let directory = program::directory();
    let _silent = silent_sockets(directory.path(), 300);
    let run = |arguments: &[&str]| {
        let mut command = program::program(arguments);
        command.env("EVENTRING_DIR", directory.path()).current_dir(directory.path());
        let begin = Instant::now();
        let run = program::finish(command);
        // With the whole timeout for each of them, these commands take 90 to 310 seconds.
        assert!(begin.elapsed() < Duration::from_secs(60), "{arguments:?}: {:?}", begin.elapsed());
        run
    };
    let list = run(&["list"]);
    assert_eq!(list.err.matches("does not answer").count(), 300, "{list:?}");
    let watch = run(&["watch", "--process", "nothere"]).warns("does not answer").ends(1);
    let named = watch.err.matches(".sock").count();
    assert!(named == 21 && watch.err.contains("and 279 more"), "{named}: {watch:?}");
    run(&["clean", "--dry-run"]).ends(0);
    assert!(place(&directory, "100000-00000000.sock").exists());
}

#[test]
fn clean_removes_the_socket_of_a_dead_server_and_only_names_it_in_a_dry_run() {
    let directory = program::directory();
    let mut sockets = silent_sockets(directory.path(), 2);
    sockets.pop();
    let [silent, dead] = ["100000-00000000.sock", "100001-00000001.sock"].map(|name| place(&directory, name));
    for (options, stays) in [(&["--dry-run"][..], true), (&[], false)] {
        let cleaned =
            program::run(&[&["clean", "--json", directory.path().to_str().unwrap()], options].concat()).json();
        assert_eq!((&cleaned["dry_run"], dead.exists(), silent.exists()), (&stays.into(), stays, true), "{cleaned:#}");
        let removed = cleaned["removed"].list();
        assert_eq!((removed.len(), &removed[0]["why"]), (1, &"dead_server".into()), "{cleaned:#}");
        assert_eq!(removed[0]["file"], dead.to_str().unwrap());
    }
}

#[test]
fn a_capture_waits_for_the_first_answer_of_a_server_no_longer_than_its_duration() {
    let directory = program::directory();
    let _silent = silent_sockets(directory.path(), 1);
    let socket = place(&directory, "100000-00000000.sock");
    let socket = socket.to_str().unwrap();
    for options in [&["-d", "100ms"][..], &["-d", "100ms", "--on", "event=TRIGGER"], &["-d", "100ms", "--wait"]] {
        let begin = Instant::now();
        program::run(&[&["capture", socket, "-o", "/dev/null"][..], options].concat()).fails(1, "does not answer");
        assert!(begin.elapsed() < Duration::from_secs(3), "{options:?}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_server_of_a_stranger_that_answers_badly_or_not_at_all_is_called_that() {
    let address = |lie: &str| format!("lying-{}-{lie}", std::process::id());
    let lies: [(&str, Vec<u8>); 4] = [
        ("nothing", Vec::new()),
        ("garbage", b"garbage".to_vec()),
        // REFUSED with the number 0, and END, as docs/CONTROL.md has them.
        ("refusal", [b"EVRC\x01\x00\x0b\x80\0\0\0\0\x09\0\0\0", &b"\x01\0\x03\0\0\0bad"[..]].concat()),
        ("another", [b"EVRC\x01\x00\x03\x80\x01\0\0\0\x08\0\0\0", &[0; 8][..]].concat()),
    ];
    let serve = |lie: &str| {
        let address = rustix::net::SocketAddrUnix::new_abstract_name(address(lie).as_bytes()).unwrap();
        let kind = rustix::net::SocketType::SEQPACKET;
        let socket = rustix::net::socket(rustix::net::AddressFamily::UNIX, kind, None).unwrap();
        rustix::net::bind(&socket, &address).and_then(|()| rustix::net::listen(&socket, 1)).unwrap();
        socket
    };
    let serve = || users::become_user(4711, 4711).then(|| lies.iter().map(|(lie, _)| serve(lie)).collect::<Vec<_>>());
    let is_root = rustix::process::geteuid().is_root();
    let listeners = thread::scope(|scope| scope.spawn(|| if is_root { serve() } else { None }).join().unwrap());
    let Some(listeners) = listeners else {
        return eventring_stress::missing("only root can play another user");
    };
    for ((lie, answer), listener) in lies.iter().zip(&listeners) {
        let error = thread::scope(|scope| {
            scope.spawn(|| {
                let client = rustix::net::accept(listener).unwrap();
                rustix::net::recv(&client, &mut [0; 1000][..], rustix::net::RecvFlags::empty()).unwrap();
                if !answer.is_empty() {
                    rustix::net::send(&client, answer, rustix::net::SendFlags::empty()).unwrap();
                }
                // The client ends its side when it knows enough.
                let _ = rustix::net::recv(&client, &mut [0; 1000][..], rustix::net::RecvFlags::empty());
            });
            let address = ServerAddress::Abstract(address(lie));
            Process::connect_timeout(&address, Duration::from_millis(300)).unwrap_err().to_string()
        });
        let who = format!("process {} of user 4711", std::process::id());
        assert!(error.matches(&who).count() == 1, "{lie}: {error}");
    }
}
