//! `eventring info`.

use crate::fixtures::*;
use eventring::internal::layout::header::{BUFFER_WINDOW_START, LAST_SEQNO, NEXT_PAYLOAD_BYTE};
use eventring::schema::test::{TestCounter, TestEvent};
use eventring_stress::market;
use eventring_stress::mounted;

#[test]
fn json_has_every_field_that_was_promised() {
    let mut info = run!("info", "--json", program::KEPT).json();
    info["file"] = json!("FILE");
    insta::assert_snapshot!(serde_json::to_string_pretty(&info).unwrap());
}

#[test]
fn people_get_a_table() {
    let info = run!("info", program::KEPT).ends(0).quiet();
    insta::assert_snapshot!(info.out.replace(program::KEPT, "FILE"));
}

#[test]
fn the_published_recordings_have_the_events_that_were_counted_in_them() {
    let Some(path) = real_data::path("emn-30b-15m.snapshot.zst") else { return };
    let info = run!("info", "--json", "--expect", "exec", &path).json();
    assert_eq!(info["magic"], "RING01");
    assert_eq!(info["content_type"], json!({ "code": 2, "name": "EXEC" }));
    assert_eq!(info["schema_hash"], "8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3");
    assert_eq!(info["descriptor_capacity"], 262_144);
    assert_eq!(info["payload_buf_size"], 128 << 20);
    assert_eq!(info["context_area_size"], 0);
    assert_eq!((&info["last_seqno"], &info["next_payload_byte"]), (&json!(136_891), &json!(22_698_352)));
    assert_eq!((&info["buffer_window_start"], &info["writer"]), (&json!(0), &json!(null)));
    let events = &info["events"];
    assert_eq!((&events["oldest_seqno"], &events["newest_seqno"]), (&json!(1), &json!(136_891)));
    assert_eq!((&events["count"], &events["lost"]), (&json!(136_891), &json!(0)));
    let expected = [
        (2, "BLOCK_START", 30),
        (4, "BLOCK_PERF_EVM_ENTER", 30),
        (5, "BLOCK_PERF_EVM_EXIT", 30),
        (6, "BLOCK_END", 30),
        (7, "BLOCK_QC", 30),
        (8, "BLOCK_FINALIZED", 30),
        (9, "BLOCK_VERIFIED", 29),
        (10, "TXN_HEADER_START", 6187),
        (11, "TXN_ACCESS_LIST_ENTRY", 121),
        (13, "TXN_HEADER_END", 6187),
        (15, "TXN_PERF_EVM_ENTER", 6187),
        (16, "TXN_PERF_EVM_EXIT", 6187),
        (17, "TXN_EVM_OUTPUT", 6187),
        (18, "TXN_LOG", 8299),
        (19, "TXN_CALL_FRAME", 21_077),
        (20, "TXN_END", 6187),
        (21, "ACCOUNT_ACCESS_LIST_HEADER", 6247),
        (22, "ACCOUNT_ACCESS", 25_530),
        (23, "STORAGE_ACCESS", 38_286),
    ];
    let by_type = events["by_type"].as_object().unwrap();
    assert_eq!(by_type.len(), expected.len());
    for (code, name, count) in expected {
        let of_type = &by_type[&code.to_string()];
        assert_eq!((&of_type["name"], &of_type["count"]), (&json!(name), &json!(count)), "{code}");
    }
}

#[test]
fn a_live_ring_names_its_writer_and_an_ended_one_says_so() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    recorder.keep(true);
    recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"");
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["state"], "live");
    assert_eq!(info["writer"]["pid"], std::process::id());
    assert_eq!(info["writer"]["alive"], true);
    run!("info", &path).shows("live, written by it-");
    drop(recorder);
    let info = run!("info", "--json", &path).json();
    assert_eq!((&info["state"], &info["writer"]["alive"]), (&json!("ended"), &json!(false)));
    assert_eq!(info["events"]["by_type"], json!({ "20": { "name": "TXN_END", "count": 1, "payload_bytes": 0 } }));
}

#[test]
fn the_past_in_a_live_ring_is_told_with_a_size_that_holds_more() {
    let (directory, [path]) = places(["ring"]);
    let recorder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(&path).memory(6 << 20).build();
    let recorder = recorder.unwrap();
    let past = || {
        let out = run!("info", &path).out;
        out.lines().find_map(|line| line.strip_prefix("past        ")).map(str::to_owned)
    };
    assert_eq!(past(), None);
    let record = |events| (0..events).for_each(|_| assert!(recorder.record(2, [0; 4], b"") > 0));
    // The ring has 32,768 slots.
    record(8_192);
    let quarter = past().unwrap();
    assert!(quarter.contains(", with 25 % of the ring; a full ring holds about "), "{quarter}");
    assert!(
        quarter.ends_with(", and twice that if the program's configuration gives it the size `:10MiB`"),
        "{quarter}"
    );
    let json = run!("info", "--json", &path).json();
    assert_eq!(json["fill"], 0.25);
    assert_eq!(json["history_seconds_when_full"], json["history_seconds"].as_f64().unwrap() * 4.0);
    let listed = run!("list", "--json", directory.path()).json();
    assert!(listed["rings"][0]["history_seconds_when_full"].as_f64() > listed["rings"][0]["history_seconds"].as_f64());
    record(32_768);
    let full = past().unwrap();
    assert!(
        full.ends_with("events/s; about twice that if the program's configuration gives it the size `:10MiB`"),
        "{full}"
    );
    recorder.keep(true);
    drop(recorder);
    // The ring has ended: what another size would hold does not matter any more.
    let ended = past().unwrap();
    assert!(ended.ends_with("events/s"), "{ended}");
    let perf = spans_in(&path).shifts(15, 21).shards(3).build().unwrap();
    let subscriber = RecorderSubscriber::new(perf.clone());
    subscriber::with_default(subscriber, || (0..100_000).for_each(|n| info!(n)));
    let shards = past().unwrap();
    assert!(
        shards.ends_with("; about twice that if the program's configuration gives its rings the size `:16:22`"),
        "{shards}"
    );
}

#[test]
fn a_shard_that_has_lost_nothing_does_not_shorten_the_past() {
    let (directory, [path]) = places(["ring"]);
    let perf = spans_in(&path).shifts(15, 21).shards(2).build().unwrap();
    let record = || {
        let subscriber = RecorderSubscriber::new(perf.clone());
        subscriber::with_default(subscriber, || info!("one"));
    };
    record();
    thread::sleep(Duration::from_millis(300));
    thread::scope(|scope| scope.spawn(record).join()).unwrap();
    let listed = run!("list", "--json", directory.path()).json();
    let seconds = listed["rings"][0]["history_seconds"].as_f64().unwrap();
    assert!(seconds >= 0.3, "{seconds} in {listed}");
}

#[test]
fn the_domains_of_a_ring_are_listed() {
    let (_directory, [path]) = places(["ring"]);
    let _recorder = market::builder().config(&path).build().unwrap();
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["domains"], json!(["orderbook", "trades", "prices"]));
    let out = run!("info", &path).out;
    assert!(out.lines().any(|line| line == "domains     orderbook, trades, prices"), "{out}");
}

#[test]
fn events_that_were_refused_for_their_schema_are_reported() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    let counter = TestCounter { writer_id: 1, counter: 2 };
    assert_eq!(record!(recorder => TestEvent::TestCounter, &counter), 0);
    run!("info", &path).shows("1 event of another schema refused");
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["extension"]["counters"]["foreign_events"], 1);
}

#[test]
fn the_ring_of_a_killed_writer_is_left_behind_with_its_events() {
    if child::part().as_deref() == Some("writer") {
        let recorder = exec_ring(&child::place());
        recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"");
        child::say("recorded");
        child::wait_for_parent();
        unreachable!("it is killed");
    }
    let (_directory, [path]) = places(["ring"]);
    let test = test_name!("the_ring_of_a_killed_writer_is_left_behind_with_its_events");
    let mut writer = child::Talk::with(child::play(test, "writer", &path));
    assert_eq!(writer.hear(), "recorded");
    let pid = writer.child.id();
    writer.kill();
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["state"], "writer_died");
    assert_eq!((&info["writer"]["pid"], &info["writer"]["alive"]), (&json!(pid), &json!(false)));
    assert_eq!(info["events"]["count"], 1);
}

#[test]
fn empty_and_overrun_rings_are_described() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    let events = run!("info", "--json", &path).json()["events"].take();
    assert_eq!(
        events,
        json!({
            "oldest_seqno": 0, "newest_seqno": 0, "count": 0, "lost": 0, "overwritten_before": 0, "being_written": 0, "expired_payloads": 0,
            "malformed_payloads": 0, "first_ts_ns": null, "last_ts_ns": null, "by_type": {},
        })
    );
    run!("info", &path).shows("none; last sequence number 0");
    let capacity = recorder.geometry().descriptor_capacity();
    for _ in 0..capacity + 10 {
        recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"");
    }
    drop(recorder.reserve(7000, [0; 4], 0));
    let events = run!("info", "--json", &path).json()["events"].take();
    assert_eq!((&events["oldest_seqno"], &events["newest_seqno"]), (&json!(12), &json!(capacity + 11)));
    assert_eq!((&events["count"], &events["lost"]), (&json!(capacity), &json!(11)));
    assert_eq!(events["overwritten_before"], 11);
    let shown = run!("info", &path).out;
    assert!(shown.contains("11 before them overwritten") && !shown.contains("missing between"), "{shown}");
    assert_eq!(events["by_type"]["1"]["name"], "RECORD_ERROR");
}

#[test]
fn events_of_an_unknown_schema_have_no_names_and_own_schema_text_gives_them() {
    let (_directory, [path]) = places(["ring"]);
    let build =
        |description| Recorder::builder(description).config(&path).compact(true).shifts(15, 21).build().unwrap();
    let recorder = build(ContentDescription::new(777, "SHOP"));
    recorder.record(5, [0; 4], b"");
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["content_type"], json!({ "code": 777, "name": "SHOP" }));
    assert_eq!(info["events"]["by_type"]["5"]["name"], json!(null));
    run!("info", &path).shows("the ring carries no description of it");
    drop(recorder);
    let text = "schema-text 1\ncontent 777 SHOP 1\nevent 5 SALE\n";
    eventring::schema::SchemaModel::parse(text).unwrap();
    let recorder = build(ContentDescription::new(777, "SHOP").schema_text(text));
    recorder.record(5, [0; 4], b"");
    let info = run!("info", "--json", &path).json();
    assert_eq!(info["events"]["by_type"]["5"]["name"], "SALE");
}

#[test]
fn a_bare_name_is_found_in_the_ring_directory() {
    let directory = directory();
    let recorder = exec_ring(&place(&directory, "orders"));
    assert_eq!(run_in!(directory.path(), "info", "--json", "orders").json()["state"], "live");
    drop(recorder);
}

#[test]
fn payloads_that_were_overwritten_are_counted_as_watch_counts_them() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    // These five payloads are larger than the payload buffer, so the last ones overwrite the first ones.
    (0..5).for_each(|_| assert_ne!(recorder.record(900, [0; 4], &[7; 700_000]), 0));
    let watched = run!("watch", "--from", "oldest", "--count", "5", "--json", "--strict", &path);
    let gone = watched.json_lines().iter().filter(|line| line["expired"] == true).count();
    assert!(gone > 0 && gone < 5, "{watched:?}");
    // Events without their payload count as losses, too.
    assert_eq!(watched.code, Some(16));
    let events = run!("info", "--json", &path).json()["events"].take();
    assert_eq!((&events["count"], &events["expired_payloads"]), (&json!(5), &json!(gone)));
    run!("info", &path).shows(format!(", {gone} without payload, which was overwritten\n"));
}

#[test]
fn of_a_sharded_recorder_all_shards_are_shown_and_counted_together() {
    // Call sites of other tests in this process would be recorded, too.
    alone!();
    let (directory, [path]) = places(["shop"]);
    let recorder = spans_in(&path).shifts(15, 21).tables_shift(16).shards(3).build().unwrap();
    let log = |events: u64| {
        in_recorder(recorder.clone(), || {
            (0..events).for_each(|n| info!(n, "something"));
        });
    };
    log(10);
    // The main thread keeps its shard, so the new thread gets a second shard.
    thread::scope(|scope| scope.spawn(|| log(20)).join().unwrap());
    let handed_out: Vec<u64> = recorder.stats().shards.iter().map(|shard| shard.last_seqno).collect();
    assert_eq!(handed_out.len(), 2);

    let info = run!("info", "--json", &path).json();
    let shards = info["shards"].list();
    assert_eq!(shards.iter().map(|shard| shard["index"].number()).collect::<Vec<_>>(), [0, 1]);
    for (shard, last_seqno) in shards.iter().zip(&handed_out) {
        assert_eq!((&shard["last_seqno"], &shard["events"]["count"]), (&json!(last_seqno), &json!(last_seqno)));
        assert!(shard["shards"].is_null(), "{shard}");
    }
    // For a recorder with several shards, `info` reports the same fields as for a single ring. Fields of the header
    // are those of the named file, shard 0. The counts of events are sums over all shards.
    assert_eq!((&info["file"], &info["last_seqno"]), (&json!(path), &json!(handed_out[0])));
    assert_eq!(
        (&info["events"]["count"], &info["events"]["newest_seqno"]),
        (&json!(handed_out.iter().sum::<u64>()), &json!(handed_out[0]))
    );
    let events = info["events"]["by_type"].as_object().unwrap().values();
    let events: Vec<_> =
        events.filter(|of_type| of_type["name"] == "EVENT").map(|of_type| of_type["count"].clone()).collect();
    assert_eq!(events, [30]);
    let times = |of: &Value| ["first_ts_ns", "last_ts_ns"].map(|time| of["events"][time].number());
    let [first, second] = [&shards[0], &shards[1]].map(times);
    assert_eq!(times(&info), [first[0].min(second[0]), first[1].max(second[1])]);

    let text = run!("info", &path).shows("\nshards      2, at most 3\n").out;
    assert!(text.contains("\nSHARD ") || text.contains("\n SHARD "), "{text}");
    let row = |name: &str| {
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.into_iter().find(|row| row.first() == Some(&name) && row.len() < 10).unwrap()[1].to_owned()
    };
    assert_eq!(row("all"), handed_out.iter().sum::<u64>().to_string());

    // If the name is that of a shard, only this shard is shown.
    let shard_1 = place(&directory, "shop.1");
    let alone = run!("info", "--json", &shard_1);
    let warning = format!(
        "warning: {} is only shard 1 of a recorder; the names of spans, call sites and threads are in shard 0; \
         name {} to read all shards\n",
        shard_1.display(),
        path.display()
    );
    assert_eq!(alone.err, warning);
    let watch = ["watch", "--json", "--quiet", "--last", "1", "--count", "1", argument(&shard_1)];
    for warned in [&["summary", argument(&shard_1)][..], &watch] {
        assert!(run(warned).err.starts_with(&warning), "{warned:?}");
    }
    let alone = alone.json();
    assert_eq!((&alone["events"]["count"], alone.get("shards")), (&json!(handed_out[1]), None));
    // A ring that is not sharded has no list of shards either.
    assert_eq!(run!("info", "--json", program::KEPT).json().get("shards"), None);
    // A shard that is gone is reported as gone.
    fs::remove_file(place(&directory, "shop.1")).unwrap();
    let info = run!("info", "--json", &path).json();
    assert_eq!((&info["events"]["count"], &info["shards"][1]["index"]), (&json!(handed_out[0]), &json!(1)));
    assert!(info["shards"][1]["problem"].text().contains("shop.1"), "{info}");
}

#[test]
fn a_header_that_no_writer_can_have_written_is_called_damaged() {
    let (directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    recorder.keep(true);
    recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"payload");
    drop(recorder);
    let good = fs::read(&path).unwrap();
    let word = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap());
    assert_eq!((word(LAST_SEQNO), word(NEXT_PAYLOAD_BYTE) > 0, word(BUFFER_WINDOW_START)), (1, true, 0));
    let bad = place(&directory, "bad");
    for (offset, value, says) in [
        (LAST_SEQNO, u64::MAX, "last sequence number is 2^63 − 1 or more"),
        (LAST_SEQNO, 0, "last sequence number is 0, as in an empty ring, but its next payload byte is "),
        (BUFFER_WINDOW_START, 1 << 40, "window starts at payload byte 1099511627776, after "),
    ] {
        let mut bytes = good.clone();
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        fs::write(&bad, bytes).unwrap();
        let info = run!("info", "--json", &bad).ends(7);
        assert!(serde_json::from_str::<Value>(&info.out).is_ok(), "{info:?}");
        assert!(
            info.err.starts_with(&format!("warning: the header of the ring {} is damaged: its ", bad.display())),
            "{info:?}"
        );
        assert!(info.err.contains(says) && info.err.lines().count() == 1, "{info:?}");
    }
    fs::write(&bad, &good).unwrap();
    run!("info", &bad).ends(0).quiet();
}

#[test]
fn rings_that_are_smaller_than_by_default_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mounted) = mounted::mount_or_skip(directory.path(), "tmpfs", "size=64M") else { return };
    let spans = spans_in(place(&directory, "spans")).build().unwrap();
    let warning = spans.warning().unwrap();
    assert!(warning.starts_with("the rings are smaller than by default, because 64 MiB were free;"), "{warning}");
    let description = || ContentDescription::from_event_type::<TestEvent>();
    let events = Recorder::builder(description()).config(place(&directory, "events")).build().unwrap();
    assert!(events.reduced_free_bytes().is_some_and(|free| free < 64 << 20));
    let explicit = Recorder::builder(description()).config(place(&directory, "explicit:8MiB")).build().unwrap();
    assert_eq!(explicit.reduced_free_bytes(), None);

    let said = |name: &str| run!("info", &place(&directory, name)).out;
    assert!(said("spans").contains("smaller than by default, because 64 MiB were free\n"), "{}", said("spans"));
    assert!(said("events").contains("smaller than by default, because "), "{}", said("events"));
    assert!(!said("explicit").contains("smaller than by default"), "{}", said("explicit"));
    let json = run!("info", "--json", &place(&directory, "spans")).json();
    assert_eq!(json["extension"]["reduced_free_bytes"], 64 << 20);
}

#[test]
fn a_pattern_that_fits_one_ring_means_it_and_several_are_named() {
    let (_directory, [first, second, pattern]) = places(["shop", "shop~2", "s*"]);
    run!("info", &pattern).fails(3, "no ring fits");
    let _shop = exec_ring(&first);
    // A ring that is being made has such a name and mode.
    let unfinished = first.with_file_name("shop.~0000012345");
    fs::copy(&first, &unfinished).unwrap();
    fs::set_permissions(&unfinished, std::os::unix::fs::PermissionsExt::from_mode(0o1640)).unwrap();
    let one = run!("info", &pattern, "--json").json();
    assert_eq!(one["file"], argument(&first));
    let _other = exec_ring(&second);
    let two = run!("info", &pattern).ends(2);
    let (first, second) = (first.display(), second.display());
    let expected =
        format!("error: {} fits 2 rings, expected one: {first}, {second}; name one of them\n", pattern.display());
    assert_eq!(two.err, expected);
}
