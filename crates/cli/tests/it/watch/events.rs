//! `eventring watch` on rings without a live writer: which events it selects, how it prints them, how it reports
//! losses, and its exit codes.

use crate::fixtures::*;
use eventring::schema::perf::ThreadView;

fn watch(arguments: &[&str]) -> Run {
    run!("watch", program::KEPT, "--json", "--quiet", arguments)
}

fn seqnos(run: &Run) -> Vec<u64> {
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    seqnos_of(run)
}

fn seqnos_of(run: &Run) -> Vec<u64> {
    run.json_lines().iter().map(|line| line["seqno"].number()).collect()
}

/// Makes a ring that has ended and is kept.
fn kept_ring(path: &Path, description: ContentDescription, record: impl FnOnce(&Recorder)) {
    let recorder = Recorder::builder(description).config(path).compact(true).shifts(15, 21).keep(true).build().unwrap();
    record(&recorder);
}

#[test]
fn json_lines_have_the_fields_that_were_promised() {
    insta::assert_snapshot!(watch(&[]).out);
}

#[test]
fn people_get_columns_and_a_summary() {
    let run = run!("watch", program::KEPT).ends(0);
    insta::assert_snapshot!(run.out);
    assert!(run.err.starts_with("── 36 events shown, none lost, "), "{}", run.err);
    assert!(run.err.ends_with(" · end of the snapshot\n"), "{}", run.err);
}

#[test]
fn full_lines_hold_every_byte() {
    run!("watch", program::KEPT, "--full", "--quiet", "--type", "TXN_HEADER_START", "--count", "1").shows(format!(
        " data=0x{} blob_hashes=[0x{}]\n",
        "da".repeat(37),
        "b1".repeat(32)
    ));
}

#[test]
fn options_narrow_what_is_shown() {
    assert_eq!(seqnos(&watch(&[])), (1..=36).collect::<Vec<_>>());
    assert_eq!(seqnos(&watch(&["--from", "33"])), [33, 34, 35, 36]);
    assert_eq!(seqnos(&watch(&["--from", "block"])), [32, 33, 34, 35, 36]);
    assert_eq!(seqnos(&watch(&["--from", "newest"])), [0; 0]);
    assert_eq!(seqnos(&watch(&["--last", "2"])), [35, 36]);
    assert_eq!(seqnos(&watch(&["--last", "1000", "--count", "1"])), [1]);
    assert_eq!(seqnos(&watch(&["--from", "oldest", "--count", "2"])), [1, 2]);
    assert_eq!(seqnos(&watch(&["--count", "0"])), [0; 0]);
    assert_eq!(seqnos(&watch(&["--type", "TXN_LOG"])), [10, 20]);
    assert_eq!(seqnos(&watch(&["--type", "txn_log,2", "--type", "20"])), [1, 10, 12, 20, 22, 32]);
    assert_eq!(seqnos(&watch(&["--type", "20000"])), [0; 0]);
    assert_eq!(seqnos(&watch(&["--block", "32"])), [32, 33, 34, 35, 36]);
    assert_eq!(seqnos(&watch(&["--block-number", "101"])), [32, 33, 34, 35, 36]);
    assert_eq!(seqnos(&watch(&["--block", "1", "--txn", "1", "--type", "TXN_END"])), [22]);
    assert_eq!(seqnos(&watch(&["--block-number", "100", "--txn", "0", "--count", "3"])), [3, 4, 5]);
    assert_eq!(seqnos(&watch(&["--txn", "7"])), [0; 0]);
}

#[test]
fn the_summary_counts_what_was_not_selected() {
    let run = run!("watch", program::KEPT, "--json", "--type", "TXN_LOG", "--count", "2");
    assert_eq!(run.json_lines().len(), 2);
    assert!(run.err.starts_with("── 2 events shown, 18 not selected, none lost, "), "{}", run.err);
    assert!(run.err.ends_with(" · as many as asked for\n"), "{}", run.err);
}

#[test]
fn a_type_that_does_not_exist_is_an_error_that_names_those_that_do() {
    let run = watch(&["--type", "TXN_LOGS"]).ends(2).shows_nothing();
    insta::assert_snapshot!(run.err);
}

#[test]
fn every_event_of_a_published_recording_is_decoded() {
    let Some(path) = real_data::path("emn-1b-15m.snapshot") else { return };
    let lines = run!("watch", &path, "--json", "--quiet").json_lines();
    assert_eq!(lines.len(), 6597);
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(line["seqno"], index + 1);
        assert!(line["name"].is_string() && line["payload"].is_object() && line["payload"]["$malformed"].is_null());
    }
    let of_block = |line: &&Value| line["name"] == "BLOCK_END";
    let end = lines.iter().find(of_block).unwrap();
    assert_eq!(end["payload"]["eth_block_hash"], "0x7a7d7c23bb8c5e340eead8537bb5e2f3e125bfa0b588cf07e4aa140ba374295e");
    assert_eq!(end["payload"]["gas_used"], 22_516_578);
}

#[test]
fn losses_are_lines_of_their_own_are_counted_and_strict_makes_them_an_error() {
    let (_directory, [path]) = places(["ring"]);
    let mut capacity = 0;
    kept_ring(&path, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
        capacity = recorder.geometry().descriptor_capacity();
        // These events are ten more than the ring has slots, so the oldest are overwritten. The three large payloads
        // after them are more than the payload buffer holds.
        for i in 0..capacity + 10 {
            recorder.record(ExecEvent::TxnEnd as u16, [0, i, 0, 0], b"");
        }
        (0..3).for_each(|_| assert_ne!(recorder.record(900, [0; 4], &[7; 700_000]), 0));
    });
    let last = capacity + 13;
    let run = run!("watch", &path, "--json", "--from", "5").ends(0);
    let lines = run.json_lines();
    assert_eq!(lines[0], json!({ "gap": { "first_seqno": 5, "count": 9, "cause": "overwritten" } }));
    assert_eq!(lines[1]["seqno"], 14);
    assert_eq!(lines.len() as u64, 1 + last - 13);
    let big = &lines[lines.len() - 3..];
    assert_eq!((&big[0]["name"], &big[0]["payload"], &big[0]["expired"]), (&json!(null), &json!(null), &json!(true)));
    assert_eq!(big[2]["payload"], format!("0x{}", "07".repeat(700_000)));
    let gone = big.iter().filter(|line| line["expired"] == true).count();
    assert!(run.err.contains(&format!("9 lost, {gone} without payload")), "{}", run.err);

    let text = run!("watch", &path, "--from", "5", "--count", "1", "--strict").ends(16);
    assert!(
        text.out.starts_with("── 9 events are missing, 5 to 13: overwritten before they were read ──\n"),
        "{text:?}"
    );
    run!("watch", &path, "--type", "900", "--strict").shows("the payload was overwritten before it was read").ends(16);
    run!("watch", &path, "--from", "14", "--count", "5", "--strict").ends(0);
}

#[test]
fn one_event_without_its_payload_is_a_loss_in_a_capture_too() {
    let (_directory, [path, file]) = places(["ring", "ring.evc"]);
    kept_ring(&path, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
        (0..2).for_each(|_| assert_ne!(recorder.record(900, [0; 4], &[7; 1_200_000]), 0));
    });
    run!("capture", &path, "-o", &file).ends(0);
    let expired = run!("watch", &file, "--json").json_lines().iter().filter(|line| line["expired"] == true).count();
    assert_eq!(expired, 1);
    run!("watch", &file).ends(0);
    run!("watch", &file, "--strict").warns("1 without payload").ends(16);
}

#[test]
fn events_overwritten_before_the_start_are_reported_and_are_not_losses() {
    let (directory, [path]) = places(["ring"]);
    let mut capacity = 0;
    kept_ring(&path, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
        capacity = recorder.geometry().descriptor_capacity();
        (0..capacity + 13).for_each(|_| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0));
    });
    let watch = |options: &[&str]| run!("watch", &path, "--strict", "--count", "3", options);
    for options in [&[][..], &["--from", "oldest"]] {
        let text = watch(options).ends(0);
        assert!(text.out.starts_with("── 13 events had been overwritten before the watch began ──\n"), "{text:?}");
        assert!(text.err.starts_with("── 3 events shown, 13 overwritten before, none lost since, "), "{text:?}");
        let json = watch(&[options, &["--json"]].concat()).ends(0);
        let lines = json.json_lines();
        assert_eq!(lines[0], json!({ "gap": { "first_seqno": 1, "count": 13, "cause": "overwritten_before" } }));
        assert_eq!((lines.len(), &lines[1]["seqno"]), (4, &json!(14)));
    }
    // `eventring capture` reports overwritten events in the same words as `eventring watch`.
    let capture = run!("capture", &path, "-o", &place(&directory, "ring.evc"));
    assert!(capture.err.contains("13 events had been overwritten before the capture began"), "{capture:?}");
    // The watch is asked for three more events than the ring still has.
    let wanted = (capacity + 3).to_string();
    let last = watch(&["--last", &wanted, "--json"]);
    assert_eq!(
        last.json_lines()[0],
        json!({ "gap": { "first_seqno": 11, "count": 3, "cause": "overwritten_before" } })
    );
    for options in [&["--last", "3"][..], &["--from", "newest"], &["--from", "14"]] {
        let other = watch(options);
        assert!(!(other.out + &other.err).contains("overwritten"), "{options:?}");
    }
}

#[test]
fn holes_that_a_killed_writer_left_are_gaps() {
    let (_directory, [path]) = places(["ring"]);
    kept_ring(&path, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
        recorder.record(20, [0; 4], b"");
        // This reservation is neither committed nor dropped, like that of a thread that was killed.
        std::mem::forget(recorder.reserve(20, [0; 4], 0));
        recorder.record(20, [0; 4], b"");
    });
    let run = run!("watch", &path, "--json", "--quiet");
    let lines = run.json_lines();
    assert_eq!(lines[1], json!({ "gap": { "first_seqno": 2, "count": 1, "cause": "never_committed" } }));
    assert_eq!((lines.len(), &lines[2]["seqno"]), (3, &json!(3)));
    run!("watch", &path, "--quiet").shows("── event 2 is missing: reserved and never committed ──");
}

#[test]
fn payloads_are_decoded_by_the_text_that_the_ring_carries() {
    let (_directory, [path]) = places(["ring"]);
    let text = "schema-text 1\ncontent 777 SHOP 1\nstruct Sale 16\nfield id u64 0 8\nfield items u32 8 4\n\
                event 5 SALE Sale\ntrailing note utf8 *\n";
    kept_ring(&path, ContentDescription::new(777, "SHOP").schema_text(text), |recorder| {
        let mut sale = [0; 16];
        (sale[0], sale[8]) = (42, 3);
        recorder.recordv(5, [1, 0, 0, 9], &[&sale, b"thank \x1b[31myou"]);
        recorder.record(5, [0; 4], b"short");
        recorder.record(6, [0; 4], b"\xab\xcd");
    });
    let lines = run!("watch", &path, "--json", "--quiet").json_lines();
    assert_eq!(lines[0]["payload"], json!({ "id": 42, "items": 3, "note": "thank \u{1b}[31myou" }));
    assert_eq!(lines[0]["ext"], json!([1, 0, 0, 9]));
    assert!(lines[1]["payload"]["$malformed"].is_object());
    assert_eq!((&lines[2]["name"], &lines[2]["payload"]), (&json!(null), &json!("0xabcd")));
    let text = run!("watch", &path, "--quiet")
        .shows("SALE")
        .shows(r#"ext=[1, 0, 0, 9] id=42 items=3 note="thank \u{1b}[31myou""#)
        .shows("type 6")
        .out;
    assert!(!text.contains('\u{1b}'));
    assert_eq!(run!("watch", &path, "--type", "sale", "--quiet", "--json").json_lines().len(), 2);
}

#[test]
fn payloads_of_an_unknown_schema_are_hex_with_a_warning() {
    let (_directory, [path]) = places(["ring"]);
    kept_ring(&path, ContentDescription::new(2, "EXEC").schema_hash([1; 32]), |recorder| {
        recorder.record(5, [0; 4], b"\x01\x02");
        drop(recorder.reserve(7, [0; 4], 0));
    });
    let run = run!("watch", &path, "--json", "--quiet");
    assert!(run.err.starts_with("warning: payloads are shown as hex: schema 0101"), "{}", run.err);
    let lines = run.json_lines();
    assert_eq!((&lines[0]["name"], &lines[0]["payload"]), (&json!(null), &json!("0x0102")));
    // The payload is that of a RECORD_ERROR, but nobody knows what event 7 is called, nor event 1.
    let error = &lines[1]["payload"];
    assert_eq!((&error["error_type"], &error["dropped_event_type"]), (&json!("MISSING_EVENT"), &json!(7)));
    assert_eq!(lines[1]["name"], json!(null));
}

#[test]
fn several_rings_are_merged_by_time_and_lines_say_which_ring_they_are_of() {
    let (_directory, [first, second]) = places(["first", "second"]);
    let build = |path| {
        let description = ContentDescription::from_event_type::<ExecEvent>();
        Recorder::builder(description).config(path).compact(true).shifts(15, 21).keep(true).build().unwrap()
    };
    let recorders = [build(&first), build(&second)];
    let order = [0, 1, 1, 0, 1, 0, 0, 0, 1];
    order.iter().for_each(|index: &usize| assert_ne!(recorders[*index].record(20, [0; 4], b""), 0));
    drop(recorders);
    let arguments = ["watch", argument(&first), argument(&second), "--json", "--quiet"];
    let lines = run(&arguments).json_lines();
    let rings = [argument(&first), argument(&second)];
    let found: Vec<usize> =
        lines.iter().map(|line| rings.iter().position(|ring| line["ring"] == *ring).unwrap()).collect();
    assert_eq!(found, order);
    // `--last N` counts the events of both rings together. The watch must show the last N, whichever rings they are
    // in.
    for last in 0..=order.len() + 1 {
        let last_lines = run!(&arguments, "--last", &last.to_string()).json_lines();
        assert!(last_lines == lines[order.len().saturating_sub(last)..], "{last}: {last_lines:?}");
    }
    let text = run!("watch", &first, &second, "--from", "3").ends(2);
    assert_eq!(text.err, "error: --from SEQNO needs a single ring: each ring has its own numbers\n");
}

#[test]
fn the_heading_is_aligned_if_all_rings_have_short_names() {
    let (directory, [a, b]) = places(["a", "b"]);
    for path in [&a, &b] {
        kept_ring(path, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
            recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"");
        });
    }
    let run = run_in!(directory.path(), "watch", "a", "b");
    let lines: Vec<&str> = run.out.lines().filter(|line| !line.starts_with("──")).collect();
    assert_eq!(lines[0].find("EVENT"), lines[1].find("TXN_END"), "{}", run.out);
}

#[test]
fn a_ring_that_is_named_twice_is_watched_once() {
    let (directory, [ring]) = places(["ring"]);
    kept_ring(&ring, ContentDescription::from_event_type::<ExecEvent>(), |recorder| {
        (0..3).for_each(|_| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0));
    });
    let link = place(&directory, "link");
    std::os::unix::fs::symlink(&ring, &link).unwrap();
    let dotted = format!("{}/./ring", directory.path().display());
    for other in [argument(&ring), argument(&link), &dotted] {
        let run = run!("watch", &ring, other, "--json", "--last", "2");
        assert_eq!(seqnos_of(&run), [2, 3], "{other}: {run:?}");
        assert_eq!(run.json_lines()[0].get("ring"), None, "{other}");
    }
}

#[test]
fn output_into_a_closed_pipe_ends_quietly() {
    let mut live = live!("watch", program::KEPT, "--json");
    drop(live.out);
    let mut err = String::new();
    std::io::Read::read_to_string(&mut live.err, &mut err).unwrap();
    assert_eq!((live.child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn descriptions_of_call_sites_and_threads_are_shown_on_request() {
    let (_directory, [path]) = places(["ring"]);
    kept_ring(&path, ContentDescription::from_event_type::<PerfEvent>(), |recorder| {
        recorder.record(PerfEvent::ThreadStarted as u16, [0, 0, 1 << 32, 0], &ThreadView::encode(5, 77, "worker"));
        recorder.record(PerfEvent::SpanClose as u16, [9, 0, 1 << 32, 0], b"");
        recorder.record(PerfEvent::ThreadEnded as u16, [0, 0, 1 << 32, 0], b"");
    });
    let watch = |options: &[&str]| run!("watch", &path, options);
    let names = |run: &program::Run| {
        let names = ["THREAD_STARTED", "SPAN_CLOSE", "THREAD_ENDED"];
        names.into_iter().filter(|name| run.out.contains(name)).collect::<Vec<_>>()
    };
    let plain = watch(&[]);
    assert_eq!(names(&plain), ["SPAN_CLOSE"]);
    // The events that were left out are counted nevertheless.
    assert!(plain.out.contains(" worker "), "{plain:?}");
    assert!(plain.err.starts_with("── 1 event shown, 2 of call sites and threads left out, none lost, "), "{plain:?}");
    assert_eq!(watch(&["--count", "1", "--quiet"]).out, plain.out);
    for options in [&["--full"][..], &["--json"]] {
        assert_eq!(names(&watch(options)), ["THREAD_STARTED", "SPAN_CLOSE", "THREAD_ENDED"], "{options:?}");
    }
    assert_eq!(names(&watch(&["--type", "THREAD_STARTED,SPAN_CLOSE"])), ["THREAD_STARTED", "SPAN_CLOSE"]);
}
