//! A receiver reads any stream, also one that never had a message.

use crate::broker::forged;
use crate::broker::place::{Place, publish};
use crate::fixtures::*;
use crate::orders::orders_in;
use eventring_capture::CapturedRecord;
use eventring_stress::mounted;

#[test]
fn a_stream_without_messages_is_received_and_is_idle() {
    let Some(place) = Place::new() else { return };
    let mut raw = TcpStream::connect(place.broker.address().trim_start_matches("nats://")).unwrap();
    let config = r#"{"name":"S","subjects":["S.>"]}"#;
    let made = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB made 1\r\nPUB $JS.API.STREAM.CREATE.S made {}\r\n{config}\r\n",
        config.len()
    );
    raw.write_all(made.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("MSG made") {
        let mut byte = [0];
        raw.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let (address, file) = (place.broker.address(), place.path("all.evc"));
    let receive = program!("receive", &address, "--stream", "S", "-o", &file, "--until-idle", "300ms");
    let ended = child::ends_within(receive, Duration::from_secs(30));
    assert!(ended.status.success(), "{ended:?}");
}

/// Runs the HTTP service, and forwards it while it runs: into many batches. Each call is another program under the same
/// name.
fn forward_service(place: &Place, host: &str) {
    let (ring, address) = (place.path("shop"), place.broker.address());
    let shards = (1..10).map(|shard| format!("{ring}.{shard}"));
    shards.chain([ring.clone()]).for_each(|ring| drop(fs::remove_file(ring)));
    let forward =
        live!("forward", &ring, "--wait", "--to", &address, "--stream", "S", "--host", host, "--every", "20ms");
    place.service_ring(4000);
    forward.end().ends(0);
}

/// A batch ends at another time for each shard, so the close of a span may come before what was recorded in it.
#[test]
fn rings_of_receivers_have_each_span_once_and_none_that_only_looks_open() {
    let Some(place) = Place::new() else { return };
    forward_service(&place, "h");
    let (file, rings) = (place.path("all.evc"), place.path("live"));
    let received = place.receive(&file, &["--rings", &rings]).json();
    assert!(received["batches"].number() > 5, "{received}");
    let spans = |what: &str| {
        let lines = exported(what);
        let spans = lines.iter().filter(|line| line["type"] == "span");
        let mut spans: Vec<_> = spans.map(|span| (span["id"].as_u64(), span["open"] == true)).collect();
        spans.sort_unstable();
        spans
    };
    let (of_file, of_ring) = (spans(&file), spans(&format!("{rings}/h.shop")));
    assert!(of_file.len() > 10_000 && of_file.iter().all(|(_, is_open)| !is_open), "{}", of_file.len());
    assert_eq!(of_file.len(), of_ring.len());
    assert!(of_file == of_ring);
}

#[test]
fn rings_of_which_hosts_and_names_look_alike_have_paths_of_their_own() {
    let Some(place) = Place::new() else { return };
    let rings = place.path("live");
    for (host, name) in [("a.b", "c"), ("a", "b.c")] {
        let ring = place.path(name);
        assert_ne!(orders_in(&ring).record(7, [0; 4], host.as_bytes()), 0);
        place.forward_as(host, &[&ring]).json();
    }
    place.receive(&place.path("all.evc"), &["--rings", &rings]).json();
    let mut payloads: Vec<String> = ["a.b.c", "a.b.c~2"]
        .map(|name| run!("export", &format!("{rings}/{name}"), "--format", "jsonl").out)
        .into_iter()
        .collect();
    payloads.sort();
    let hex = |host: &str| host.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(payloads.iter().any(|lines| lines.contains(&format!("0x{}\"", hex("a.b")))), "{payloads:?}");
    assert!(payloads.iter().any(|lines| lines.contains(&format!("0x{}\"", hex("a")))), "{payloads:?}");
}

#[test]
fn what_is_wrong_with_rings_is_said_at_once_and_the_capture_goes_on() {
    let Some(place) = Place::new() else { return };
    forward_service(&place, "h");
    let (file, rings) = (place.path("all.evc"), place.path("live"));
    // Something that is no ring has its name.
    fs::create_dir_all(format!("{rings}/h.shop")).unwrap();
    let received = place.receive(&file, &["--rings", &rings]);
    assert!(received.code != Some(0) && received.err.contains("the capture goes on"), "{received:?}");
    assert_eq!(received.err.matches("error").count(), 1, "{received:?}");
    assert!(received.json_lines()[0]["events"].number() > 10_000);
}

#[test]
fn a_row_of_files_is_one_capture_and_goes_on_with_its_newest_file() {
    let Some(place) = Place::new() else { return };
    forward_service(&place, "h");
    let (row, whole, tables) = (place.path("row.evc"), place.path("whole.evc"), place.path("tables"));
    let all = place.receive(&whole, &[]).json();
    let files = |received: &Value| -> Vec<String> {
        serde_json::from_value(received["files"].clone()).unwrap_or_else(|error| panic!("{error}: {received}"))
    };
    assert_eq!(files(&all), std::slice::from_ref(&whole));
    let first = place.receive(&row, &["--rotate-size", "30k", "--parquet", &tables]).json();
    let written = files(&first);
    assert!(written.len() > 2 && written[0].ends_with("row.0001.evc"), "{first}");
    assert_eq!((&first["events"], &first["removed"]), (&all["events"], &0.into()), "{first}");
    // The rows of the tables, and the lines of the files, are those of the one file.
    let export = |captures: &[&str], format: &str, output: &str| {
        run!("export", captures, "--format", format, "-o", output, "--json").json()
    };
    let captures: Vec<&str> = written.iter().map(String::as_str).collect();
    let rows = |format: &str, captures: &[&str]| {
        let output = place.path(&format!("{format}-{}", captures.len()));
        let report = export(captures, format, &output);
        (report["spans"].clone(), report["lost"].clone(), report["problems"].clone())
    };
    assert_eq!(rows("jsonl", &captures), rows("jsonl", &[&whole]));
    let in_tables = export(&captures, "parquet", &place.path("of-captures"));
    let sizes = |directory: &str| {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
        let mut sizes: Vec<_> = entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().len())).collect();
        sizes.sort();
        sizes
    };
    assert_eq!(sizes(&tables), sizes(&place.path("of-captures")), "{in_tables}");
    // What is sent later goes into the next files, and only two are kept.
    forward_service(&place, "h");
    let later = place.receive(&row, &["--rotate-size", "30k", "--keep", "2"]).json();
    let kept = files(&later);
    assert!(kept.len() == 2 && !written.contains(&kept[0]), "{later}");
    let both = place.receive(&whole, &[]).json();
    let count = |received: &Value, name: &str| received[name].number();
    assert!(count(&later, "removed") > 0, "{later}");
    assert_eq!(count(&later, "events") + count(&later, "removed"), count(&both, "events"), "{later}");
    assert_eq!(later["rings"], both["rings"], "{later}");
    let summary = run!("summary", "--json", kept[0].as_str(), &kept[1]).json();
    assert_eq!(summary["removed"], later["removed"], "{summary}");
    place.receive(&row, &["--keep", "2"]).ends(2);
}

#[test]
fn a_receiver_of_other_hosts_refuses_a_file_that_would_lack_what_came_earlier() {
    let Some(place) = Place::new() else { return };
    let ring = place.orders("orders", 10);
    for host in ["a", "b", "c", "d"] {
        assert_eq!(place.forward_as(host, &[&ring]).json()["events"], 10);
    }
    let (file, row) = (place.path("some.evc"), place.path("row.evc"));
    assert_eq!(place.receive(&file, &["--host", "d"]).json()["events"], 10);
    // With the same selection, it goes on where it was.
    let again = place.receive(&file, &["--host", "d"]).json();
    assert_eq!((&again["events"], &again["batches"]), (&10.into(), &0.into()));
    let share = |share| place.receive(&row, &["--rotate-size", "1M", "--share", share]);
    assert!((1..40).contains(&share("1/2").json()["events"].number()));
    for refused in [place.receive(&file, &["--host", "b"]), place.receive(&file, &[]), share("2/2")] {
        assert!(refused.code == Some(14) && refused.err.contains("would lack what came earlier"), "{refused:?}");
    }
    assert_eq!(place.receive(&file, &["--force"]).json()["events"], 40);
}

#[test]
fn a_file_that_was_removed_while_it_was_written_is_a_failure() {
    let Some(place) = Place::new() else { return };
    forward_service(&place, "h");
    let (file, address) = (place.path("all.evc"), place.broker.address());
    let receive = live!("receive", &address, "--stream", "S", "-o", &file);
    wait_while(|| fs::metadata(&file).map_or(0, |metadata| metadata.len()) < 1000);
    fs::remove_file(&file).unwrap();
    receive.interrupt();
    let ended = receive.end().warns("all.evc: it was removed");
    assert_ne!(ended.code, Some(0), "{ended:?}");
}

/// The wrong ones are: no batch, a perf ring of another version, an account that is not true, the batch of another
/// host, and a name that is too long. A good one has names that are too long together for a file.
#[test]
fn messages_that_cannot_be_received_are_left_out_by_name_and_the_others_come_as_without_them() {
    let Some(place) = Place::new() else { return };
    let good = place.orders("orders", 100);
    place.forward(&[&good]).json();
    let (alone, captured) = (place.path("alone.evc"), place.path("captured.evc"));
    place.receive(&alone, &[]).json();
    run!("capture", &good, "-o", &captured, "--now").json_lines();
    let captured = fs::read(captured).unwrap();
    let as_it_is = |_: &mut Vec<u8>| ();
    let of_other_version = |ring: &mut Vec<u8>| {
        ring[6..8].copy_from_slice(&3_u16.to_le_bytes());
        ring[16..48].fill(9);
    };
    let of_a_million = |account: &mut Vec<u8>| account[24..32].copy_from_slice(&1_000_000_u64.to_le_bytes());
    let (too_long, long) = ("h".repeat(300), "h".repeat(255));
    for (subject, body) in [
        ("S.web-1.orders.events", b"no batch".to_vec()),
        ("S.web-2.orders.spans", forged::batch(&captured, "web-2", of_other_version, as_it_is)),
        ("S.web-3.orders.events", forged::batch(&captured, "web-3", as_it_is, of_a_million)),
        ("S.web-4.orders.events", forged::batch(&captured, "web-1", as_it_is, as_it_is)),
        (&format!("S.{too_long}.orders.events"), forged::batch(&captured, &too_long, as_it_is, as_it_is)),
        // The control: so forged, a batch is received.
        ("S.web-5.orders.events", forged::batch(&captured, "web-5", as_it_is, as_it_is)),
    ] {
        publish(&place, subject, &[&body]);
    }
    place.forward_as(&long, &[&place.orders(&"r".repeat(200), 100)]).json();
    let (file, rings) = (place.path("all.evc"), place.path("live"));
    let received = place.receive(&file, &["--rings", &rings]);
    let said = received.json();
    assert_eq!(
        (&said["rings"], &said["events"], &said["refused"]),
        (&3.into(), &300.into(), &5.into()),
        "{received:?}"
    );
    for (subject, why) in [
        ("S.web-1.orders.events", "it is no batch"),
        ("S.web-2.orders.spans", "the perf ring orders of the host web-2 has the schema 0909"),
        ("S.web-3.orders.events", "it has no account"),
        ("S.web-4.orders.events", "of another ring or host: expected it under S.web-1.orders.events"),
        (&format!("S.{too_long}.orders.events"), "a name has 300 bytes, expected 1 to 255"),
    ] {
        let refusals = said["refusals"].list();
        let refusal = refusals.iter().find(|refusal| refusal["subject"] == subject);
        let refusal = refusal.unwrap_or_else(|| panic!("{subject}: {said}"));
        assert!(refusal["why"].text().contains(why) && refusal["messages"] == 1, "{refusal}");
        let shown: String = subject.chars().take(300).collect();
        assert!(received.err.contains(&format!("left out: a message with the subject {shown}: ")), "{received:?}");
    }
    // The file has of the good ring what it has without the others.
    let of_good = |file: &str| {
        let capture = CaptureFile::open(file.as_ref()).unwrap();
        let ring = capture.rings().iter().position(|ring| ring.host == "web-1").unwrap();
        let records = capture.events().filter(|record| record.ring as usize == ring);
        let records: Vec<_> = records.map(|record| CapturedRecord { ring: 0, ..record }).collect();
        (records, capture.end().unwrap().stats.rings[ring].clone())
    };
    assert!(of_good(&file).0.len() == 100 && of_good(&file) == of_good(&alone));
    assert_eq!(fs::read_dir(&rings).unwrap().count(), 3);
    place.receive(&place.path("anew.evc"), &["--strict"]).ends(16);
}

/// Three hosts are forged. The file system has room for five rings, and a receiver takes half of it: two. What an
/// earlier receiver has left is replaced: the second one has room for one more.
#[test]
fn rings_of_a_receiver_take_half_of_what_was_free_and_the_others_are_named_and_counted() {
    let Some(place) = Place::new() else { return };
    let rings = place.path("live");
    fs::create_dir(&rings).unwrap();
    let Some(_mounted) = mounted::mount_or_skip(rings.as_ref(), "tmpfs", "size=1000m") else { return };
    let ring = place.path("orders");
    let record = |count: u64| {
        let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(&ring).keep(true);
        let recorder = builder.compact(true).shifts(15, 21).prefault(false).build().unwrap();
        (0..count).for_each(|number| assert_ne!(recorder.record(7, [number; 4], b"an order"), 0));
        drop(recorder);
        place.forward(&[&ring]).json();
    };
    record(100);
    let captured = place.path("captured.evc");
    run!("capture", &ring, "-o", &captured, "--now").json_lines();
    let captured = fs::read(captured).unwrap();
    for host in ["web-2", "web-3", "web-4"] {
        let body = forged::batch(&captured, host, |_| (), |_| ());
        publish(&place, &format!("S.{host}.orders.events"), &[&body]);
    }
    // The next program of the good host: its ring replaces the first one, and needs no further room.
    record(70);
    let in_directory = || {
        let mut names: Vec<_> = fs::read_dir(&rings).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let received = place.receive(&place.path("all.evc"), &["--rings", &rings]);
    let said = received.json();
    assert_eq!((&said["events"], &said["rings_without_room"]), (&470.into(), &2.into()), "{received:?}");
    for host in ["web-3", "web-4"] {
        let named = format!("no ring is made for orders of the host {host}: ");
        assert_eq!(received.err.matches(&named).count(), 1, "{received:?}");
    }
    assert_eq!(in_directory(), ["web-1.orders", "web-2.orders"]);
    let live = run!("export", &format!("{rings}/web-1.orders"), "--format", "jsonl").out;
    assert_eq!(live.matches(r#""type":"typed_event""#).count(), 70, "{live}");
    place.receive(&place.path("anew.evc"), &["--rings", &rings, "--strict"]).ends(16);
    assert_eq!(in_directory(), ["web-1.orders", "web-2.orders", "web-3.orders"]);
}
