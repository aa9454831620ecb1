//! A receiver writes what a capture beside the program holds, and a broker that refuses is told from one that
//! is gone.

use crate::broker::place::{Place, lines, publish};
use crate::consumers;
use crate::every_kind;
use crate::fixtures::*;
use crate::orders::{order, orders_in};

#[test]
fn spans_and_typed_events_of_all_kinds_are_received_as_they_were_recorded() {
    let Some(place) = Place::new() else { return };
    let capture = every_kind::capture_everything(place.dir.path());
    let sent = place.forward(&[&place.path("shop"), &place.path("sink")]).json();
    assert_eq!(
        (&sent["lost"], &sent["resent"], &sent["rings"][1]["lost"]),
        (&0.into(), &0.into(), &0.into()),
        "{sent}"
    );
    let received = place.receive(&place.path("all.evc"), &[]).json();
    assert_eq!((&received["events"], &received["lost"]), (&sent["events"], &0.into()), "{received}");
    assert_eq!(received["have_all_ended"], true);
    crate::ask::schemas::check(&[("forward", sent), ("receive", received)]);
    assert_eq!(lines(&place.path("all.evc")), lines(&capture));
}

#[test]
fn a_real_block_is_received_as_it_is_and_events_still_name_their_block() {
    let Some(place) = Place::new() else { return };
    for (number, snapshot) in
        [Some(program::KEPT.into()), real_data::path("emn-1b-15m.snapshot")].into_iter().flatten().enumerate()
    {
        let snapshot: PathBuf = snapshot;
        let snapshot = snapshot.to_str().unwrap();
        place.forward_as(&format!("h{number}"), &[snapshot]).ends(0);
        let file = place.path(&format!("{number}.evc"));
        let received = place.receive(&file, &["--host", &format!("h{number}")]).json();
        assert!(received["events"].number() > 0 && received["rings"] == 1, "{received}");
        assert_eq!(lines(&file), lines(snapshot));
    }
}

#[test]
fn a_live_service_is_received_with_the_account_of_a_capture_beside_it() {
    let Some(place) = Place::new() else { return };
    let [ring, beside, file, live] = ["shop", "beside.evc", "all.evc", "live.evc"].map(|name| place.path(name));
    let address = place.broker.address();
    // The receiver waits for the stream, and the others for the ring.
    let receive = live!("receive", &address, "--stream", "S", "-o", &live, "--wait", "--until-end", "--json");
    let forward = live!("forward", &ring, "--wait", "--to", &address, "--stream", "S", "--json");
    let capture = live!("capture", &ring, "--wait", "-o", &beside, "--json");
    // The ring stays until both have read it.
    place.service_ring(3000);
    let [sent, captured, received_live] = [forward, capture, receive].map(|live| live.end().json());
    let received = place.receive(&file, &[]).json();
    assert_eq!(received["events"], sent["events"]);
    assert_eq!((&received_live["events"], &received_live["lost"]), (&received["events"], &received["lost"]));
    assert_eq!(lines(&live), lines(&file));
    let of_capture = |name: &str| captured["rings"].list().iter().map(|ring| ring[name].number()).sum::<u64>();
    assert_eq!(received["events"].number() + received["lost"].number(), of_capture("events") + of_capture("lost"));
    if received["lost"] == 0 && of_capture("lost") == 0 {
        assert_eq!(lines(&file), lines(&beside));
    } else {
        eventring_stress::skipped(format_args!(
            "the comparison of lines: this machine was too slow to read all events: {received}"
        ));
    }
}

#[test]
fn a_receiver_goes_on_with_its_file_and_adds_only_what_is_new() {
    let Some(place) = Place::new() else { return };
    let (ring, file) = (place.path("orders"), place.path("all.evc"));
    let orders = orders_in(&ring);
    let forward_now = || {
        let forward = live!("forward", &ring, "--to", &place.broker.address(), "--stream", "S", "--json");
        thread::sleep(Duration::from_millis(700));
        forward.interrupt();
        forward.end().said()
    };
    order(&orders, 100);
    assert_eq!(forward_now()["events"], 100);
    assert_eq!(place.receive(&file, &[]).json()["events"], 100);
    order(&orders, 50);
    let sent = forward_now();
    assert_eq!(sent["events"], 50);
    let second = place.receive(&file, &[]).json();
    assert_eq!((&second["events"], &second["lost"], &second["batches"]), (&150.into(), &0.into(), &sent["batches"]));
    let expected: Vec<u64> = (1..=150).collect();
    let exported = run!("export", &file, "--format", "jsonl").json_lines();
    let seqnos: Vec<u64> = exported.iter().filter_map(|line| line["seqno"].as_u64()).collect();
    assert_eq!(seqnos, expected);
    // What is not a receiver's file is not touched.
    let other = place.path("other.evc");
    run!("capture", &ring, "--now", "-o", &other, "--json").json();
    place.receive(&other, &[]).fails(14, "no receiver has written it");
}

#[test]
fn receivers_that_share_a_stream_have_everything_once_together() {
    let Some(place) = Place::new() else { return };
    let ring = place.orders("orders", 100);
    for host in 0..8 {
        place.forward_as(&format!("h{host}"), &[&ring]).ends(0);
    }
    let events =
        |share: &str, file: &str| place.receive(&place.path(file), &["--share", share]).json()["events"].clone();
    let shares = [events("1/2", "a.evc"), events("2/2", "b.evc")].map(|events| events.number());
    assert!(shares[0] + shares[1] == 800 && shares[0] > 0 && shares[1] > 0, "{shares:?}");
    place.receive(&place.path("c.evc"), &["--share", "3/2"]).fails(2, "like 2/3");
}

#[test]
fn two_forwarders_of_a_ring_repeat_nothing() {
    let Some(place) = Place::new() else { return };
    let ring = place.path("orders");
    let orders = orders_in(&ring);
    let address = place.broker.address();
    let forward =
        || live!("forward", &ring, "--to", &address, "--stream", "S", "--host", "h", "--every", "20ms", "--json");
    let both = [forward(), forward()];
    for number in 0..20_000_u64 {
        orders.record(7, [number; 4], b"an order");
        if number % 200 == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
    drop(orders);
    let sent = both.map(|forward| forward.end().json());
    let events = sent.each_ref().map(|sent| sent["events"].number());
    assert_eq!(events[0] + events[1], 20_000, "{sent:?}");
    assert!(sent[0]["restarts"].number() + sent[1]["restarts"].number() > 0, "{sent:?}");
    place.receives("all.evc", &[], 20_000, 0);
}

#[test]
fn batches_stay_below_what_the_broker_takes_and_larger_payloads_are_left_out() {
    let Some(place) = Place::configured("max_payload: 65536\n") else { return };
    let (ring, file) = (place.path("orders"), place.path("all.evc"));
    let orders = orders_in(&ring);
    (0..200).for_each(|seed| _ = orders.record(7, [0; 4], &noise(seed, 5_000)));
    orders.record(8, [0; 4], &noise(0, 50_000));
    drop(orders);
    let sent = place.forward(&[&ring]).json();
    assert!(sent["batches"].number() > 15, "{sent}");
    place.receives("all.evc", &[], 201, 0);
    let exported = run!("export", &file, "--format", "jsonl", "-o", &place.path("lines"), "--json");
    assert_eq!(exported.json()["lost_payloads"], 1, "{exported:?}");
}

#[test]
fn messages_that_are_no_batches_are_left_out_and_counted() {
    let Some(place) = Place::new() else { return };
    let file = place.path("all.evc");
    place.forward(&[&place.orders("orders", 1)]).ends(0);
    let forged = [b"EVRCAPT1\x05\0\0\0".to_vec(), vec![7; 500]].concat();
    publish(&place, "S.web-2.shop.events", &[b"hello", &forged]);
    let received = place.receive(&file, &[]).json();
    assert_eq!((&received["events"], &received["refused"]), (&1.into(), &2.into()), "{received}");
    // A forwarder does not go on after what it does not understand.
    place
        .forward_as("web-2", &[&place.orders("shop", 1)])
        .fails(7, "the last message of S.web-2.shop.events is no batch");
}

#[test]
fn a_receiver_until_the_end_has_all_that_is_pending_however_many_messages_that_are() {
    const HOSTS: u64 = 70;
    let Some(place) = Place::new() else { return };
    let (ring, file) = (place.orders("orders", 3), place.path("all.evc"));
    // More messages than a receiver asks for at once, and each is the end of a ring of its own.
    for host in 0..HOSTS {
        place.forward_as(&format!("h{host}"), &[&ring]).ends(0);
    }
    let address = place.broker.address();
    let words = ["receive", &address, "--stream", "S", "-o", &file, "--until-end", "--json"];
    let received = run(&words).json();
    assert_eq!((&received["rings"], &received["events"]), (&HOSTS.into(), &(3 * HOSTS).into()), "{received}");
    // A receiver that goes on with a file whose rings have ended takes what came since.
    for host in HOSTS..HOSTS + 2 {
        place.forward_as(&format!("h{host}"), &[&ring]).ends(0);
    }
    let received = run(&words).json();
    assert_eq!((&received["rings"], &received["have_all_ended"]), (&(HOSTS + 2).into(), &true.into()), "{received}");
}

/// Returns bytes that cannot be compressed, always the same for one seed.
fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn an_independent_reader_finds_the_same_account_and_notices_when_a_batch_is_missing() {
    let Some(place) = Place::new() else { return };
    let ring = place.service_ring(800);
    let sent = place.forward(&[&ring]).json();
    let orders = orders_in(place.path("orders"));
    (0..600).for_each(|seed| _ = orders.record(7, [seed; 4], &noise(seed, 5_000)));
    drop(orders);
    let of_orders = place.forward(&[&place.path("orders")]).json();
    assert!(of_orders["events"] == 600 && of_orders["batches"].number() > 2, "{of_orders}");
    // A forwarder that finds nothing new sends nothing.
    assert_eq!(place.forward(&[&ring]).json()["batches"], 0);
    let Some(found) = consumers::read_stream(&place.broker.address(), "S") else { return };
    let found = found.unwrap();
    let events: u64 = found["rings"].list().iter().map(|ring| ring["events"].number()).sum();
    assert_eq!((events - 600, &found["undescribed"]), (sent["events"].number(), &0.into()), "{found}");
    publish(&place, "$JS.API.STREAM.MSG.DELETE.S", &[br#"{"seq":3}"#]);
    let problem = consumers::read_stream(&place.broker.address(), "S").unwrap().unwrap_err();
    assert!(problem.contains("Nats-Expected-Last-Subject-Sequence is 3"), "{problem}");
    // A receiver states what the stream has no more.
    let received = place.receive(&place.path("all.evc"), &["--ring", "orders"]).json();
    let [events, lost] = ["events", "lost"].map(|name| received[name].number());
    assert!(events + lost == 600 && lost > 100, "{received}");
}

#[test]
fn what_is_wrong_with_an_address_or_a_stream_is_said() {
    let Some(place) = Place::with(&["--user", "me", "--pass", "secret"]) else { return };
    let ring = place.orders("orders", 1);
    let with_password = place.broker.address().replace("nats://", "nats://me:secret@");
    let forward = |to: &str, stream: &str| run!("forward", &ring, "--to", to, "--stream", stream);
    let receive = |from: &str, stream: &str| run!("receive", from, "--stream", stream, "-o", &place.path("x.evc"));
    for (run, code, needed) in [
        (forward(&with_password, "S"), 0, "1 event in 1 batch"),
        (forward(&with_password, "a.b"), 2, "without dots"),
        (forward("nats://127.0.0.1:9", "S"), 1, "cannot connect to nats://127.0.0.1:9"),
        (forward(&with_password.replace("secret", "wrong"), "S"), 1, "cannot connect to nats://…@127.0.0.1"),
        (forward("otlp://127.0.0.1", "S"), 2, "has no --stream"),
        (forward("ftp://127.0.0.1", "S"), 2, "expected nats://HOST:PORT"),
        (receive(&with_password, "NONE"), 3, "there is no stream NONE"),
        (run!("forward", &ring, "--to", &with_password), 2, "--stream"),
        (run!("receive", &with_password, "--stream", "S", "-o", "-"), 2, "stdout"),
    ] {
        assert_eq!(run.code, Some(code), "{needed}: {run:?}");
        assert!(run.err.contains(needed) && !run.err.contains("secret"), "{needed}: {run:?}");
    }
}

#[test]
fn the_next_programs_under_the_same_name_are_forwarded_to_the_same_stream() {
    let Some(place) = Place::new() else { return };
    let (ring, file) = (place.path("orders"), place.path("all.evc"));
    let address = place.broker.address();
    let words = ["forward", &ring, "--to", &address, "--stream", "S", "--wait", "--reopen", "--json"];
    let forward = live!(words);
    for program in 1..=3_u64 {
        place.orders("orders", program * 100);
        let expected = (1..=program).map(|program| program * 100).sum::<u64>();
        let begin = Instant::now();
        while run!("receive", &address, "--stream", "S", "-o", &file, "--wait", "--until-idle", "100ms", "--json")
            .json()["events"]
            != expected
        {
            assert!(begin.elapsed().as_secs() < 30, "program {program}");
        }
    }
    forward.interrupt();
    let summary = forward.end().json();
    let of_rings = summary["rings"].list().iter().map(|ring| ring["events"].number());
    assert_eq!(of_rings.collect::<Vec<_>>(), [100, 200, 300], "{summary}");
}

#[test]
fn received_events_are_live_in_rings_and_whole_in_tables() {
    let Some(place) = Place::new() else { return };
    let capture = every_kind::capture_everything(place.dir.path());
    place.forward(&[&place.path("shop"), &place.path("sink")]).ends(0);
    let (file, rings, tables) = (place.path("all.evc"), place.path("rings"), place.path("tables"));
    let address = place.broker.address();
    let receiver = live!("receive", &address, "--stream", "S", "-o", &file, "--rings", &rings, "--parquet", &tables);
    let [shop, sink] = ["web-1.shop", "web-1.sink"].map(|name| format!("{rings}/{name}"));
    let begin = Instant::now();
    let live = loop {
        let live = run!("export", &shop, &sink, "--format", "jsonl");
        let is_there = live.code == Some(0) && live.out.contains("a long value") && live.out.contains("event_77");
        if is_there || begin.elapsed() > Duration::from_secs(30) {
            break live;
        }
    };
    // The rings show the same spans and events, with the same times. Seqnos, processes and the shards are others, and
    // so are the ids of traces, which are made of the process.
    let shown = |lines: &str| {
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let kinds = ["span", "event", "typed_event", "counter", "marker"];
        let mut shown: Vec<String> = lines
            .filter(|line| kinds.contains(&line["type"].text()))
            .map(|mut line| {
                for name in ["seqno", "process", "ring", "shard", "trace_id"] {
                    line.as_object_mut().unwrap().remove(name);
                }
                line.to_string()
            })
            .collect();
        shown.sort();
        shown
    };
    let expected = run!("export", &capture, "--format", "jsonl");
    assert_eq!(shown(&live.out), shown(&expected.out));
    receiver.interrupt();
    receiver.end().ends(0);
    // They stay.
    assert_eq!(shown(&run!("export", &shop, &sink, "--format", "jsonl").out), shown(&expected.out));
    let lines = place.path("lines");
    run!("export", &file, "--format", "jsonl", "-o", &lines, "--json").json();
    let Some(found) = consumers::read_files("parquet_rows.py", &[tables.as_ref(), lines.as_ref()]) else { return };
    assert_eq!(found["differences"], json!([]));
}
