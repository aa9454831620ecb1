//! A forwarder says at once what is wrong, and loses no event that is still in a ring.

use crate::broker::place::{Place, publish};
use crate::fixtures::*;
use crate::orders::{ended_orders, order, orders_in};

/// Starts a forwarder of these rings to the broker of the place.
fn start(place: &Place, rings: &[&str], more: &[&str]) -> Live {
    let address = place.broker.address();
    live!("forward", rings, "--to", &address, "--stream", "S", "--host", "web-1", "--every", "20ms", "--json", more)
}

fn signal(forwarder: &Live, signal: Signal) {
    kill_process(Pid::from_child(&forwarder.child), signal).unwrap();
}

/// Makes a ring `orders` with events, and starts a forwarder, which has sent them when this function returns.
fn forwarded(place: &Place, events: u64, more: &[&str]) -> (Recorder, Live) {
    let ring = place.path("orders");
    let orders = orders_in(&ring);
    order(&orders, events);
    let forwarder = start(place, &[&ring], more);
    wait_for_events(place, events);
    (orders, forwarder)
}

/// Waits until the stream has this many events at least. Receives them into a file.
fn wait_for_events(place: &Place, count: u64) {
    let (file, address) = (place.path("so-far.evc"), place.broker.address());
    let mut received = Value::Null;
    let begin = Instant::now();
    while received["events"].as_u64().is_none_or(|events| events < count) {
        assert!(begin.elapsed() < Duration::from_secs(120), "{count}: {received}");
        received =
            run!("receive", &address, "--stream", "S", "-o", &file, "--wait", "--until-idle", "50ms", "--json").json();
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    wait_while(|| !is_so());
}

#[test]
fn the_end_arrives_although_the_stream_has_forgotten_all_that_came_before() {
    let Some(place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 10, &[]);
    publish(&place, "$JS.API.STREAM.PURGE.S", &[b""]);
    drop(orders);
    assert_eq!(forwarder.end().json()["events"], 10);
    let received = place.receive(&place.path("all.evc"), &[]).json();
    assert_eq!((&received["have_all_ended"], &received["lost"]), (&true.into(), &10.into()), "{received}");
}

#[test]
fn a_stream_that_is_gone_is_made_again_with_all_events_that_are_still_in_the_ring() {
    let Some(mut place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 10, &[]);
    place.broker.kill();
    place.broker.forget_all();
    place.broker.start_again();
    order(&orders, 5);
    drop(orders);
    forwarder.end();
    place.receives("all.evc", &[], 15, 0);
}

#[test]
fn a_receiver_says_that_the_connection_is_lost() {
    let Some(mut place) = Place::new() else { return };
    let (_orders, forwarder) = forwarded(&place, 10_000, &[]);
    let (file, address) = (place.path("all.evc"), place.broker.address());
    let mut receiver = live!("receive", &address, "--stream", "S", "-o", &file);
    wait_until(|| fs::metadata(&file).is_ok_and(|file| file.len() > 1000));
    place.broker.kill();
    // It does not wait until the time for an answer is over.
    receiver.notice("the connection is lost");
    for child in [receiver, forwarder] {
        signal(&child, Signal::TERM);
        child.end();
    }
}

/// Records log records on several threads that live at the same time. Each of them has a shard of its own, if there are
/// enough.
fn log_on_threads(recorder: &PerfRecorder, threads: usize, events: u64) {
    let all_have_logged = std::sync::Barrier::new(threads);
    thread::scope(|scope| {
        let mut joined = Vec::new();
        for _ in 0..threads {
            let (has_logged, logged) = std::sync::mpsc::channel::<()>();
            let all_have_logged = &all_have_logged;
            joined.push(scope.spawn(move || {
                in_recorder(recorder.clone(), || {
                    (0..events).for_each(|number| info!(number, "something"));
                });
                drop(has_logged);
                all_have_logged.wait();
            }));
            // The next thread starts only now, so no thread makes a shard while another one does.
            let _ = logged.recv();
        }
        // A thread records its end when it has left the closure; only a join waits for that.
        joined.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

const SHARDS: usize = 4;

fn perf_recorder(ring: &str) -> PerfRecorder {
    spans_in(ring).shifts(15, 21).tables_shift(16).shards(SHARDS).build().unwrap()
}

fn seqnos_of(recorder: &PerfRecorder) -> u64 {
    recorder.stats().shards.iter().map(|shard| shard.last_seqno).sum()
}

/// Returns true if the forwarder has all shards of a recorder open.
fn has_all_shards(forwarder: &Live, ring: &str) -> bool {
    let maps = fs::read_to_string(format!("/proc/{}/maps", forwarder.child.id())).unwrap();
    (1..SHARDS).all(|shard| maps.contains(&format!("{ring}.{shard}")))
}

#[test]
fn shards_whose_files_are_gone_are_sent_again_after_a_loss_of_the_broker() {
    let Some(mut place) = Place::new() else { return };
    let (ring, js, older) = (place.path("shop"), place.path("js"), place.path("older"));
    let recorder = perf_recorder(&ring);
    log_on_threads(&recorder, 1, 100);
    let forwarder = start(&place, &[&ring], &[]);
    wait_for_events(&place, seqnos_of(&recorder));
    place.broker.kill();
    assert!(Command::new("cp").args(["-r", &js, &older]).status().unwrap().success());
    place.broker.start_again();
    log_on_threads(&recorder, SHARDS, 100);
    wait_for_events(&place, seqnos_of(&recorder));
    assert!(recorder.shard_count() == SHARDS && has_all_shards(&forwarder, &ring));
    // The broker loses what it has acknowledged since then, and the program ends and removes its files.
    signal(&forwarder, Signal::STOP);
    place.broker.kill();
    fs::remove_dir_all(&js).unwrap();
    fs::rename(&older, &js).unwrap();
    place.broker.start_again();
    let seqnos = seqnos_of(&recorder);
    drop(recorder);
    signal(&forwarder, Signal::CONT);
    let sent = forwarder.end().json();
    assert_eq!((&sent["lost"], &sent["restarts"]), (&0.into(), &1.into()), "{sent}");
    let received = place.receives("all.evc", &[], seqnos, 0);
    assert_eq!((&received["rings"], &received["have_all_ended"]), (&SHARDS.into(), &true.into()), "{received}");
}

#[test]
fn shards_whose_files_are_gone_and_that_another_forwarder_has_sent_are_no_loss() {
    // Batches are so small that the second forwarder has only a part of what the first has sent in its next one.
    let Some(place) = Place::configured("max_payload: 32768\n") else { return };
    let ring = place.path("shop");
    let recorder = perf_recorder(&ring);
    log_on_threads(&recorder, SHARDS, 100);
    assert_eq!(recorder.shard_count(), SHARDS);
    let both = [(); 2].map(|()| start(&place, &[&ring], &[]));
    wait_until(|| both.iter().all(|forwarder| has_all_shards(forwarder, &ring)));
    // While one of them does not run, the other sends everything, and the program ends and removes its files.
    let [first, second] = both;
    signal(&second, Signal::STOP);
    log_on_threads(&recorder, SHARDS, 10_000);
    let seqnos = seqnos_of(&recorder);
    drop(recorder);
    assert!(!Path::new(&ring).exists());
    let sent = [first.end(), {
        signal(&second, Signal::CONT);
        second.end()
    }];
    let sent = sent.map(|run| run.json());
    let of_both = |name: &str| sent[0][name].number() + sent[1][name].number();
    assert_eq!((of_both("events"), of_both("lost")), (seqnos, 0), "{sent:?}");
    assert!(sent[1]["restarts"].number() > 0, "{sent:?}");
    let received = place.receives("all.evc", &[], seqnos, 0);
    assert_eq!((&received["rings"], &received["have_all_ended"]), (&SHARDS.into(), &true.into()), "{received}");
}

#[test]
fn what_is_wrong_with_one_ring_is_said_while_the_others_go_on() {
    let Some(place) = Place::new() else { return };
    let rings = ["bad", "good"].map(|name| place.path(name));
    let [bad, good] = rings.each_ref().map(orders_in);
    order(&bad, 5);
    // This makes the stream.
    place.forward_as("web-2", &[program::KEPT]);
    publish(&place, "S.web-1.bad.events", &[b"no batch"]);
    let mut forwarder = start(&place, &[&rings[0], &rings[1]], &[]);
    let line = forwarder.notice("S.web-1.bad.events");
    assert!(line.contains("error:") && line.contains("is no batch"), "{line}");
    order(&good, 7);
    drop((bad, good));
    let run = forwarder.end().ends(7);
    assert_eq!(run.said()["events"], 7, "{run:?}");
}

#[test]
fn a_next_ring_that_cannot_be_read_ends_the_forwarding_with_its_error() {
    let Some(place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 5, &["--reopen"]);
    let ring = place.path("orders");
    drop(orders);
    let other = place.path("other");
    fs::write(&other, [7; 8192]).unwrap();
    fs::rename(&other, &ring).unwrap();
    let run = forwarder.end().ends(4);
    assert_eq!(run.said()["events"], 5, "{run:?}");
    assert!(run.err.contains("orders"), "{run:?}");
}

#[test]
fn a_batch_that_somebody_has_removed_does_not_keep_the_forwarder_from_ending() {
    let Some(place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 10, &[]);
    let ring = place.path("orders");
    signal(&forwarder, Signal::TERM);
    assert_eq!(forwarder.end().json()["events"], 10);
    publish(&place, "$JS.API.STREAM.PURGE.S", &[b""]);
    // The broker remembers the id of the batch for two minutes.
    let mut forwarder = start(&place, &[&ring], &[]);
    forwarder.notice("the broker knows the id of the batch");
    signal(&forwarder, Signal::TERM);
    forwarder.end().fails(1, "a batch was not sent");
    drop(orders);
}

#[test]
fn a_forwarder_that_is_asked_to_end_sends_everything_first() {
    let Some(place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 10, &[]);
    order(&orders, 300);
    signal(&forwarder, Signal::TERM);
    assert_eq!(forwarder.end().json()["events"], 310);
    let received = place.receives("all.evc", &[], 310, 0);
    assert_eq!(received["have_all_ended"], false, "{received}");
}

#[test]
fn a_forwarder_ends_although_the_broker_is_gone() {
    let Some(mut place) = Place::new() else { return };
    let (orders, mut forwarder) = forwarded(&place, 10, &[]);
    let ring = place.path("orders");
    place.broker.kill();
    order(&orders, 10);
    forwarder.notice("nothing goes to or from the broker now");
    signal(&forwarder, Signal::TERM);
    let run = forwarder.end().fails(1, "a batch was not sent");
    // What was sent before is in the account.
    let sent = run.said();
    assert_eq!((&sent["events"], &sent["rings"][0]["events"]), (&10.into(), &10.into()), "{sent}");
    assert!(sent["rings"][0]["failed"].text().ends_with("orders"), "{sent}");
    // The next one sends what is still in the ring.
    place.broker.start_again();
    drop(orders);
    assert_eq!(start(&place, &[&ring], &[]).end().json()["events"], 10);
}

#[test]
fn the_end_of_a_ring_that_was_truncated_is_sent_and_has_its_exit_code() {
    let Some(place) = Place::new() else { return };
    let (orders, forwarder) = forwarded(&place, 10, &[]);
    let ring = place.path("orders");
    File::options().write(true).open(&ring).unwrap().set_len(0).unwrap();
    let run = forwarder.end();
    // The second batch says that nothing follows.
    let sent = run.said();
    assert_eq!(run.code, Some(6), "{run:?}");
    assert_eq!((&sent["events"], &sent["batches"]), (&10.into(), &2.into()), "{run:?}");
    std::mem::forget(orders);
}

#[test]
fn names_that_no_message_can_have_are_refused() {
    let Some(place) = Place::new() else { return };
    let [ring, odd] = ["orders", "or\nders"].map(|name| place.path(name));
    for path in [&ring, &odd] {
        ended_orders(path, 1);
    }
    for (host, ring, needed) in [
        ("", &ring, "the name of the host is \"\", expected"),
        ("web\n1", &ring, "the name of the host is \"web\\n1\", expected"),
        ("web-1", &odd, "the name of the ring is \"or\\nders\", expected"),
    ] {
        place.forward_as(host, &[ring]).fails(2, needed);
    }
}

#[test]
fn an_older_copy_of_a_ring_is_refused() {
    let Some(place) = Place::new() else { return };
    let (ring, older) = (place.path("orders"), place.path("older"));
    let orders = orders_in(&ring);
    order(&orders, 10);
    fs::create_dir(&older).unwrap();
    let older = format!("{older}/orders");
    fs::copy(&ring, &older).unwrap();
    order(&orders, 10);
    drop(orders);
    assert_eq!(place.forward(&[&ring]).json()["events"], 20);
    place.forward(&[&older]).fails(2, "up to seqno 20").warns("has handed out 10 only");
}

#[test]
fn options_that_a_destination_does_not_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ring = dir.path().join("orders").to_str().unwrap().to_owned();
    ended_orders(&ring, 1);
    let (broker, collector) = ("nats://127.0.0.1:9", "otlp://127.0.0.1:9");
    for (to, option, value) in [
        (broker, "--header", "a=b"),
        (broker, "--timeout", "1"),
        (collector, "--every", "1s"),
        (collector, "--creds", "x"),
        (collector, "--compression", "1"),
    ] {
        let refused = run!("forward", &ring, "--to", to, option, value);
        let is_said = refused.err.contains(&format!("has no {option}"));
        assert!(refused.code == Some(2) && is_said, "{to} {option}: {refused:?}");
    }
}

#[test]
fn limits_of_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [ring, out] = ["orders", "out"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    ended_orders(&ring, 1);
    let to = ["forward", &ring, "--to", "nats://127.0.0.1:9", "--stream", "S"];
    let captured = ["capture", &ring, "-o", &out];
    let from = ["receive", "nats://127.0.0.1:9", "--stream", "S", "-o", &out];
    for (words, option, value, what) in [
        (&captured[..], "--rotate-every", "0s", "a time"),
        (&captured, "--rotate-size", "0", "a size"),
        (&captured, "--keep-age", "0", "a time"),
        (&captured, "--keep-size", "0", "a size"),
        (&to, "--max-age", "0", "a time"),
        (&to, "--max-bytes", "0", "a size"),
        (&from, "--rotate-every", "0", "a time"),
        (&from, "--rotate-size", "0", "a size"),
    ] {
        let refused = run!(words, option, value);
        let is_said = refused.err.contains(&format!("expected {what} greater than 0"));
        assert!(refused.code == Some(2) && is_said, "{words:?} {option}: {refused:?}");
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn what_an_existing_stream_keeps_and_what_a_filter_leaves_out_is_said() {
    let Some(place) = Place::new() else { return };
    let (ring, address) = (place.orders("orders", 10), place.broker.address());
    let forward = |more: &[&str]| run!("forward", &ring, "--to", &address, "--stream", "S", "--host", "web-1", more);
    // A warning about limits would be wrong: this command makes the stream.
    let made = forward(&["--max-age", "1h"]);
    assert!(made.code == Some(0) && !made.err.contains("warning"), "{made:?}");
    forward(&["--max-age", "2h", "--max-bytes", "1M"]).warns("keeps batches of the last 3600s and any number of bytes");
    assert_eq!((forward(&[]).code, forward(&["--max-age", "1h"]).err.contains("warning")), (Some(0), false));
    let shop = place.service_ring(50);
    let file = place.path("out.evc");
    for words in [&["capture", "-o", &file][..], &["forward", "--to", &address, "--stream", "S"]] {
        run!(words, &shop, "--span", "nosuch").warns(" events more were left out by the filter");
    }
}

#[test]
fn a_receiver_to_which_nothing_comes_says_what_it_waits_for() {
    let Some(place) = Place::new() else { return };
    place.forward(&[&place.orders("orders", 10)]).json();
    let (address, file) = (place.broker.address(), place.path("other.evc"));
    let mut receiver = live!("receive", &address, "--stream", "S", "-o", &file, "--host", "nosuch");
    let said = receiver.notice("waiting for");
    assert!(said.contains("waiting for batches of the host nosuch in the stream S"), "{said}");
    signal(&receiver, Signal::TERM);
    assert!(receiver.child.wait().unwrap().success());
}

#[test]
fn a_signal_ends_the_wait_for_a_broker_that_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let [ring, file] = ["orders", "all.evc"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    ended_orders(&ring, 1);
    // Nobody answers who connects.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("nats://{}", silent.local_addr().unwrap());
    for verb in [&["forward", &ring, "--to", &address][..], &["receive", &address, "-o", &file]] {
        let mut command = live!(verb, "--stream", "S");
        let _connected = silent.accept().unwrap();
        let begin = Instant::now();
        signal(&command, Signal::INT);
        let said = command.notice("interrupted");
        assert!(said.contains("before the broker has answered"), "{said}");
        assert_eq!(command.child.wait().unwrap().code(), Some(1));
        // Without an answer, the command would wait for 10 seconds.
        assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    }
}
