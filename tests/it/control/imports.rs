//! Rings that a server hands out: to processes that cannot open any file of them, and only to users who may have them.

use super::{anonymous, wait_until};
use crate::fixtures::*;
use crate::read_back::events;
use eventring::control::{ControlErrorKind, FileChange, Process, Server, ServerAddress};

/// Plays the program: it records `events` events into an anonymous ring, and then waits.
fn program(events: u64) {
    let ring = anonymous("SHOP");
    for number in 0..events {
        ring.record(2, [0; 4], &number.to_le_bytes());
    }
    child::say("recorded");
    child::wait_for_parent();
}

fn served(command: Command, address: &str) -> Talk {
    let mut command = command;
    command.env("EVENTRING_SERVER", address);
    Talk::with(command)
}

fn numbers(reader: &Reader) -> Vec<u64> {
    events(reader).into_iter().map(|(.., payload)| u64::from_le_bytes(payload.try_into().unwrap())).collect()
}

#[test]
fn an_anonymous_ring_is_read_by_another_process_also_after_its_writer_was_killed() {
    let test = plays!(program(1000));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let mut program = served(child::play(test, "program", Path::new("")), socket.to_str().unwrap());
    assert_eq!(program.hear(), "recorded");
    let process = Process::connect(&ServerAddress::Path(socket.clone())).unwrap();
    assert_eq!((process.pid(), process.may_switch(), process.is_gone()), (program.child.id(), true, false));
    let files = process.files().unwrap();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!((file.name(), file.content_type(), file.path(), file.shard()), ("SHOP", 300, None, None));
    let descriptor = process.import(file).unwrap();
    // The descriptor cannot write.
    assert!(rustix::io::write(&descriptor, b"x").is_err());
    let reader = Reader::options().open_fd(&descriptor).unwrap();
    assert_eq!(reader.state(), RingState::Live);
    program.child.kill().unwrap();
    let until_known = wait_until(|| process.is_gone());
    // On an idle machine it takes less than 5 milliseconds.
    assert!(until_known < Duration::from_secs(2), "{until_known:?}");
    program.child.wait().unwrap();
    assert_eq!(numbers(&reader), (0..1000).collect::<Vec<_>>());
    assert_eq!(reader.state(), RingState::WriterDied);
    assert_eq!(process.files().unwrap_err().kind(), ControlErrorKind::Gone);
}

#[test]
fn all_shards_of_a_recorder_without_files_are_found_and_its_death_ends_the_set() {
    use eventring::reader::{RingItem, RingSet};
    use eventring::tracing::{PerfRecorder, RecorderSubscriber};
    let test = plays!({
        let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).prefault(false).shards(3).build().unwrap();
        let record = |count: u64| {
            let recorder = &recorder;
            tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
                (0..count).for_each(|number| tracing::info!(number));
            });
        };
        record(10);
        child::say("begun");
        // These threads get shards of their own, which are made while the parent reads.
        let go = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    record(1);
                    go.wait();
                    record(99);
                });
            }
        });
        child::say("recorded");
        child::wait_for_parent();
    });
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let mut program = served(child::play(test, "program", Path::new("")), socket.to_str().unwrap());
    assert_eq!(program.hear(), "begun");
    let mut rings = RingSet::open([&socket]).unwrap();
    assert_eq!(program.hear(), "recorded");
    // The shards are found while they are read. A shard that nobody has imported ends with its program.
    let (mut log_records, start) = (0, Instant::now());
    let mut is_killed = false;
    while !rings.has_ended() {
        assert!(start.elapsed() < Duration::from_secs(60), "{log_records} log records came");
        match rings.next_timeout(Duration::from_millis(50)) {
            Some(RingItem::Event { event, .. }) => {
                log_records += u64::from(event.event_type == eventring::schema::perf::PerfEvent::Event as u16);
            }
            Some(RingItem::Gap { gap, .. }) => panic!("{gap:?}"),
            None => {}
        }
        if log_records == 210 && !is_killed {
            is_killed = true;
            program.kill();
        }
    }
    assert!(rings.shard_errors().is_empty(), "{:?}", rings.shard_errors());
    assert_eq!(log_records, 210);
    assert!(rings.rings().len() >= 2, "{:?}", rings.rings());
}

#[test]
fn a_program_that_starts_again_at_the_same_address_takes_the_place_of_the_dead_one() {
    let test = plays!(program(3));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let address = ServerAddress::Path(socket.clone());
    assert_eq!(Process::connect(&address).unwrap_err().kind(), ControlErrorKind::NoServer);
    for _ in 0..2 {
        let mut program = served(child::play(test, "program", Path::new("")), socket.to_str().unwrap());
        assert_eq!(program.hear(), "recorded");
        assert_eq!(Process::connect(&address).unwrap().pid(), program.child.id());
        program.kill();
        assert!(socket.exists());
        assert_eq!(Process::connect(&address).unwrap_err().kind(), ControlErrorKind::NoServer);
    }
    // A program that exits normally leaves nothing behind.
    let mut program = served(child::play(test, "program", Path::new("")), socket.to_str().unwrap());
    assert_eq!(program.hear(), "recorded");
    program.end();
    assert!(!socket.exists());
}

#[test]
fn rings_that_come_and_go_are_told_to_a_client_that_follows() {
    alone!();
    let server = Server::builder().abstract_name(format!("follow-{}", std::process::id())).start().unwrap();
    let process = Process::connect(server.address()).unwrap();
    let is_ours = |name: &str| name.starts_with("FOLLOWED");
    assert!(process.follow().unwrap().iter().all(|file| !is_ours(file.name())));
    let ring = anonymous("FOLLOWED1");
    let mut changes = Vec::new();
    wait_until(|| {
        changes.extend(process.changes());
        changes.iter().any(|change| matches!(change, FileChange::Added(file) if is_ours(file.name())))
    });
    drop(ring);
    wait_until(|| {
        changes.extend(process.changes());
        changes.iter().any(|change| matches!(change, FileChange::Removed(_)))
    });
    let added = changes.iter().find_map(|change| match change {
        FileChange::Added(file) if is_ours(file.name()) => Some(file.clone()),
        _ => None,
    });
    let error = process.import(&added.unwrap()).unwrap_err();
    assert_eq!(error.kind(), ControlErrorKind::NotFound, "{error}");
}

#[test]
fn another_user_gets_nothing_but_the_reason_unless_the_program_allows_it() {
    alone!();
    if !users::can_be_played() {
        return;
    }
    let (denied, allowed) = (4711, 4712);
    let name = format!("users-{}", std::process::id());
    let server = Server::builder().abstract_name(&name).allow_import(allowed).start().unwrap();
    let _ring = anonymous("PRIVATE");
    let address = server.address().clone();
    let as_user = |user: u32| {
        let address = address.clone();
        let thread = std::thread::spawn(move || {
            users::become_user(user, user).then(|| {
                let process = Process::connect(&address)?;
                let file = process.files()?.remove(0);
                process.import(&file)?;
                assert!(!process.may_switch());
                process.add_override("info", eventring::control::OverrideTime::Kept)
            })
        });
        thread.join().unwrap()
    };
    let (Some(denied), Some(allowed)) = (as_user(denied), as_user(allowed)) else {
        return eventring_stress::missing("this system does not let root become another user");
    };
    let (denied, allowed) = (denied.unwrap_err(), allowed.unwrap_err());
    assert_eq!(denied.kind(), ControlErrorKind::PermissionDenied);
    let text = denied.to_string();
    assert!(text.contains("user 4711 may not read the rings of process"), "{text}");
    assert!(text.contains("which runs as user 0; expected that user or root"), "{text}");
    assert!(allowed.to_string().contains("user 4712 may not switch what is recorded by"), "{allowed}");
}

#[test]
fn a_client_in_another_pid_and_mount_namespace_reads_the_ring_and_learns_of_the_death() {
    let name = test_name!();
    match child::part().as_deref() {
        Some("program") => return program(7),
        Some("client") => {
            let process = Process::connect(&ServerAddress::Path(child::place())).unwrap();
            let reader = Reader::options().open_fd(process.import(&process.files().unwrap()[0]).unwrap()).unwrap();
            child::say(format_args!("{:?} {}", numbers(&reader), std::process::id()));
            wait_until(|| process.is_gone());
            return child::say("gone");
        }
        _ => {}
    }
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let mut program = served(child::play(name, "program", Path::new("")), socket.to_str().unwrap());
    assert_eq!(program.hear(), "recorded");
    let Some(client) = in_namespaces(&child::play(name, "client", &socket)) else { return };
    let mut client = Talk::with(client);
    assert_eq!(client.hear(), "[0, 1, 2, 3, 4, 5, 6] 1");
    program.kill();
    assert_eq!(client.hear(), "gone");
}

#[test]
fn a_program_in_a_pid_namespace_serves_clients_that_it_does_not_see() {
    let test = plays!(program(7));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control");
    let Some(mut command) = in_namespaces(&child::play(test, "program", Path::new(""))) else { return };
    command.env("EVENTRING_SERVER", &socket);
    let mut program = Talk::with(command);
    assert_eq!(program.hear(), "recorded");
    let process = Process::connect(&ServerAddress::Path(socket)).unwrap();
    // In its own namespace it is process 1.
    assert!(process.pid() > 1);
    let reader = Reader::options().open_fd(process.import(&process.files().unwrap()[0]).unwrap()).unwrap();
    assert_eq!(numbers(&reader).len(), 7);
}

/// Returns the command in pid and mount namespaces of its own. Returns `None` if they cannot be made here.
fn in_namespaces(command: &Command) -> Option<Command> {
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--fork", "--kill-child"]).args(arguments);
        command
    };
    if !unshare(&["true"]).status().is_ok_and(|status| status.success()) {
        eventring_stress::missing("namespaces cannot be made here");
        return None;
    }
    let mut within = unshare(&[]);
    within.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        within.env(name, value.unwrap());
    }
    within.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    Some(within)
}
