//! `eventring watch --reopen` goes on with the rings of a program that is started again, also with those in anonymous
//! memory, which only the server of the program has.

use crate::fixtures::*;
use eventring::control::Server;

/// Plays the program. It has two rings. When the test says so, it makes the first of them again, starts a server, or
/// ends this server.
fn shop() {
    let ring = |name: &str| {
        let description = ContentDescription::new(300, name);
        Recorder::builder(description).anonymous().shifts(16, 27).prefault(false).build().unwrap()
    };
    let (mut shop, till) = (ring("SHOP"), ring("TILL"));
    let mut server = None;
    child::say("begun");
    let mut lines = std::io::stdin().lines();
    while let Some(Ok(line)) = lines.next() {
        match line.as_str() {
            "again" => {
                drop(shop);
                shop = ring("SHOP");
            }
            "end the server" => drop(server.take()),
            name if name.starts_with('@') => {
                server = Some(Server::builder().abstract_name(&name[1..]).start().unwrap());
            }
            mark => {
                shop.record(2, [0, 0, 0, mark.parse().unwrap()], b"");
                till.record(3, [0, 0, 0, mark.parse().unwrap()], b"");
            }
        }
        child::say("done");
    }
}

fn start(test: &str, server: &str) -> Talk {
    let mut command = child::play(test, "shop", Path::new(""));
    command.env("EVENTRING_SERVER", server);
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "begun");
    talk
}

fn tell(talk: &mut Talk, what: &str) {
    writeln!(talk.child.stdin.as_mut().unwrap(), "{what}").unwrap();
    assert_eq!(talk.hear(), "done");
}

/// Returns the mark of each event of the next lines, until `count` events came. Rings that were made anew are lines of
/// their own, and each has this process id.
fn marks(live: &mut Live, count: usize, anew: usize, pid: u32) -> Vec<u64> {
    let (mut marks, mut found) = (Vec::new(), 0);
    while marks.len() < count || found < anew {
        let line = live.json_line();
        match line["made_anew"]["pid"].as_u64() {
            Some(new) => {
                assert_eq!(new, u64::from(pid), "{line}");
                found += 1;
            }
            None => marks.push(line["ext"][3].as_u64().unwrap_or_else(|| panic!("{line}"))),
        }
    }
    assert_eq!(found, anew);
    marks
}

#[test]
fn a_watch_of_a_socket_goes_on_with_the_restarted_program() {
    let test = plays!(shop());
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory, "control").to_str().unwrap().to_owned();
    for server in [path, format!("@eventring-restarted-{}", std::process::id())] {
        let mut talk = start(test, &server);
        let mut live = live!("watch", &server, "--reopen", "--from", "oldest", "--json");
        tell(&mut talk, "1");
        assert_eq!(marks(&mut live, 2, 0, 0), [1, 1]);
        for round in 2..5_u64 {
            // One end in two is normal, and removes the socket file.
            if round % 2 == 0 {
                talk.kill();
            } else {
                assert!(talk.end().success());
            }
            live.notice("to be made anew");
            talk = start(test, &server);
            tell(&mut talk, &round.to_string());
            tell(&mut talk, &(round + 10).to_string());
            let mut came = marks(&mut live, 4, 2, talk.child.id());
            came.sort();
            assert_eq!(came, [round, round, round + 10, round + 10]);
        }
        live.interrupt();
        live.end().ends(0).warns("none lost in the rings that were seen").warns("14 events");
    }
}

#[test]
fn a_watch_goes_on_with_the_ring_that_a_program_makes_next_also_beside_a_live_ring() {
    let test = plays!(shop());
    let server = format!("@eventring-next-{}", std::process::id());
    let mut talk = start(test, &server);
    for (name, rings) in [(format!("{server}/SHOP"), 1), (server.clone(), 2)] {
        let mut live = live!("watch", &name, "--reopen", "--json");
        live.notice("waiting for");
        for round in 2..5 {
            tell(&mut talk, "again");
            tell(&mut talk, &round.to_string());
            assert_eq!(marks(&mut live, rings, 1, talk.child.id()), vec![round; rings]);
        }
        live.interrupt();
        live.end().ends(0);
    }
}

#[test]
fn a_watch_waits_for_the_first_ring_at_an_address() {
    let test = plays!(shop());
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory, "control").to_str().unwrap().to_owned();
    for server in [path, format!("@eventring-first-{}", std::process::id())] {
        let mut live = live!("watch", &format!("{server}/SHOP"), "--reopen", "--json");
        live.notice("waiting for the ring");
        let mut talk = start(test, &server);
        tell(&mut talk, "7");
        tell(&mut talk, "8");
        assert_eq!(marks(&mut live, 2, 0, 0), [7, 8]);
        live.interrupt();
        live.end().ends(0);
    }
}

#[test]
fn a_watch_goes_on_when_a_program_ends_only_its_server() {
    let test = plays!(shop());
    let server = format!("@eventring-ended-{}", std::process::id());
    let mut command = child::play(test, "shop", Path::new(""));
    command.env_remove("EVENTRING_SERVER");
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "begun");
    tell(&mut talk, &server);
    let mut live = live!("watch", &server, "--from", "oldest", "--json");
    tell(&mut talk, "1");
    assert_eq!(marks(&mut live, 2, 0, 0), [1, 1]);
    tell(&mut talk, "end the server");
    // A watch looks for the end of its rings ten times a second.
    thread::sleep(Duration::from_millis(500));
    tell(&mut talk, "2");
    assert_eq!(marks(&mut live, 2, 0, 0), [2, 2]);
    assert!(talk.end().success());
    live.end().ends(0);
}

#[test]
fn a_name_that_changes_with_each_start_is_refused() {
    let test = plays!(shop());
    let directory = tempfile::tempdir().unwrap();
    let mut command = child::play(test, "shop", Path::new(""));
    command.env("EVENTRING_SERVER", "1").env("EVENTRING_DIR", directory.path());
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "begun");
    let pid = format!("pid:{}", talk.child.id());
    for names in [&["--process", "SHOP"][..], &[pid.as_str()], &["--process", &pid]] {
        run_in!(directory.path(), "watch", "--reopen", names).fails(2, "--reopen cannot find this ring again");
    }
    // Without --reopen, the same names are watched.
    let mut command = program!("watch", "--process", "SHOP", "--from", "oldest", "--json", "--count", "2");
    command.env("EVENTRING_DIR", directory.path());
    tell(&mut talk, "7");
    let run = program::finish(command);
    assert_eq!((run.code, run.json_lines().len()), (Some(0), 2), "{run:?}");
}

/// Waits until a program listens for Ctrl-C, which it does before it looks for rings.
fn wait_until_it_listens(live: &Live) {
    let status = format!("/proc/{}/status", live.child.id());
    let caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap()
    };
    wait_while(|| caught() & 1 << (Signal::INT.as_raw() - 1) == 0);
    thread::sleep(Duration::from_millis(100));
}

#[test]
fn a_ring_that_fits_an_awaited_pattern_is_shown_from_its_first_event() {
    let (_dir, [ring, pattern]) = places(["shop", "s*"]);
    let mut live = live!("watch", &pattern, "--reopen", "--json", "--count", "500");
    wait_until_it_listens(&live);
    let recorder = exec_ring(&ring);
    (1..=500).for_each(|txn| _ = recorder.record(ExecEvent::TxnEnd as u16, [0, txn, 0, 0], b""));
    let seqnos: Vec<u64> = (0..500).map(|_| live.json_line()["seqno"].number()).collect();
    assert!(seqnos.into_iter().eq(1..=500));
    live.end().ends(0);
}

#[test]
fn a_line_of_a_shard_that_came_later_names_the_shard() {
    alone!();
    let (_dir, [ring]) = places(["shop"]);
    let mut live = live!("watch", &ring, "--reopen", "--json");
    live.notice("waiting for the ring");
    let dispatch = Dispatch::new(RecorderSubscriber::new(spans_in(&ring).shards(2).build().unwrap()));
    let log = || dispatcher::with_default(&dispatch, || info!("something"));
    log();
    let of_event = |live: &mut Live| loop {
        let line = live.json_line();
        if line["name"] == "EVENT" {
            break line;
        }
    };
    assert_eq!(of_event(&mut live)["ring"], Value::Null);
    thread::scope(|scope| scope.spawn(log).join().unwrap());
    assert_eq!(of_event(&mut live)["ring"], format!("{}.1", ring.display()));
    drop(dispatch);
    live.interrupt();
    live.end().ends(0);
}
