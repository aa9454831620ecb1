//! `eventring capture`, `export` and `summary`: how a capture ends, how it rotates its files, and which message each
//! bad input gets.

use crate::fixtures::*;
use eventring::schema::perf::PerfExt;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn ring(&self, name: &str, description: ContentDescription) -> Recorder {
        let builder = Recorder::builder(description).config(self.path(name)).shifts(16, 27);
        builder.prefault(false).keep(true).build().unwrap()
    }

    fn perf(&self, spans: u64) -> Recorder {
        let recorder = self.ring("perf", ContentDescription::from_event_type::<PerfEvent>());
        record_spans(&recorder, 1, spans);
        recorder
    }

    /// Records 10,000 spans, and one span that begins in the first file of a rotated capture and ends in the last.
    fn perf_of_many_files(&self) -> Recorder {
        let recorder = self.ring("perf", ContentDescription::from_event_type::<PerfEvent>());
        let record = |event: PerfEvent| {
            let ext = PerfExt { span_id: 1 << 40, thread_id: 1, ..PerfExt::default() };
            recorder.record(event.code(), ext.to_words(), &[]);
        };
        record(PerfEvent::SpanNew);
        record_spans(&recorder, 1, 10_000);
        record(PerfEvent::SpanClose);
        recorder
    }
}

fn record_spans(recorder: &Recorder, first: u64, count: u64) {
    for span_id in first..first + count {
        for event in [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose] {
            let ext = PerfExt { span_id, thread_id: 1, ..PerfExt::default() };
            recorder.record(event.code(), ext.to_words(), &[]);
        }
    }
}

fn shown(place: &Place, run: &Run) -> String {
    assert_eq!(run.err.lines().count(), 1, "{run:?}");
    let hash: String = PerfEvent::schema_hash().iter().map(|byte| format!("{byte:02x}")).collect();
    let err = run.err.trim_end().replace(&place.path(""), "DIR/").replace(&hash, "HASH");
    format!("{:?}: {}", run.code, without_byte_counts(&err))
}

/// Replaces the numbers of `123 of 456 bytes` by `N of M bytes`, because they vary with process ids, paths and time
/// stamps.
fn without_byte_counts(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_count = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let shown = words.iter().enumerate().map(|(at, word)| match (is_count(word), words.get(at + 1)) {
        (true, Some(&"of")) if words.get(at + 3) == Some(&"bytes") => "N",
        (true, Some(&"bytes")) if at >= 2 && words[at - 1] == "of" => "M",
        _ => word,
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_live_ring_is_summarized_by_name() {
    let place = Place::new();
    let recorder = place.perf(10);
    let summary = run!("summary", &place.path("perf"), "--json").json();
    let counts: Vec<u64> = summary["spans"].list().iter().map(|span| span["count"].number()).collect();
    assert_eq!((counts, &summary["lost"]), (vec![10], &0.into()));
    let keys: Vec<&str> = summary["spans"][0].as_object().unwrap().keys().map(String::as_str).collect();
    let promised =
        ["name", "target", "count", "total_ns", "self_ns", "busy_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"];
    assert_eq!(keys[..promised.len()], promised);
    assert_eq!(keys[promised.len()..], ["kind", "ended_with_parent", "open", "end_lost", "incomplete"]);
    drop(recorder);
}

#[test]
fn the_report_names_the_reason_for_a_captures_end() {
    let place = Place::new();
    let recorder = place.perf(10);
    let ends = |options: &[&str]| {
        let (ring, output) = (place.path("perf"), place.path("t.evc"));
        let run = run!("capture", &ring, "--force", "-o", &output, options);
        assert_eq!((run.code, run.err.lines().count()), (Some(0), 1), "{run:?}");
        let (_, how) = run.err.trim_end().rsplit_once(" (").unwrap();
        format!("{}: {}", options.join(" "), how.trim_end_matches(')'))
    };
    let mut reported = vec![ends(&["--now"]), ends(&["--duration", "10ms"])];
    drop(recorder);
    reported.push(ends(&[]));
    insta::assert_snapshot!(reported.join("\n"), @r"
    --now: what was recorded until now
    --duration 10ms: the time was over
    : the ring has ended
    ");
}

#[test]
fn missing_events_of_an_overrun_ring_are_counted_exactly() {
    let place = Place::new();
    let recorder = place.perf(20_000);
    let captured = run!("capture", &place.path("perf"), "-o", &place.path("t.evc"), "--now", "--json").json();
    assert_eq!(captured["reason"], "now");
    assert_eq!(number(&captured["events"]) + number(&captured["lost"]), 80_000);
    assert_eq!(captured["lost_by_cause"]["overwritten_before"], captured["lost"]);
    assert!(number(&captured["lost"]) >= 80_000 - (1 << 16));
    drop(recorder);
}

#[test]
fn skipped_seqnos_are_counted_apart_from_losses() {
    let place = Place::new();
    let recorder = place.ring("perf", ContentDescription::from_event_type::<PerfEvent>());
    // This reservation stays open in the first slot while the ring goes round. In the next lap, a seqno comes to the
    // same slot, finds it taken, and is skipped.
    let stalled = recorder.reserve(PerfEvent::Marker.code(), [0; 4], 0).unwrap();
    let capacity = recorder.geometry().descriptor_capacity();
    record_spans(&recorder, 1, capacity / 4);
    let handed_out = recorder.stats().last_seqno;
    assert_eq!(handed_out, capacity + 2);
    stalled.commit();
    let captured = run!("capture", &place.path("perf"), "-o", &place.path("t.evc"), "--now", "--json").json();
    assert_eq!(number(&captured["given_up"]), 1, "{captured}");
    assert_eq!(number(&captured["events"]) + number(&captured["lost"]) + 1, handed_out);
    assert_eq!(
        (&captured["lost_by_cause"]["never_committed"], &captured["lost_by_cause"]["given_up"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let lines = run!("export", &place.path("t.evc"), "--format", "jsonl").json_lines();
    let lost: u64 = lines.iter().filter(|line| line["type"] == "loss").map(|line| number(&line["count"])).sum();
    assert_eq!(lost, number(&captured["lost"]));
    drop(recorder);
}

#[test]
fn rotated_files_can_each_be_read_and_hold_everything_together() {
    let place = Place::new();
    let recorder = place.perf(1);
    let output = place.path("t.evc");
    let mut live = live!("capture", &place.path("perf"), "-o", &output, "--rotate-every", "200ms", "--json");
    for round in 1..=8 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        record_spans(&recorder, round * 100, 100);
    }
    drop(recorder);
    let captured = live.json_line();
    live.child.wait().unwrap();
    assert_eq!((&captured["events"], &captured["lost"]), (&(4 + 3200).into(), &0.into()));
    let files = captured["files"].list();
    assert!(files.len() >= 3, "{captured}");
    let mut events = 0;
    for file in files {
        let capture = eventring_capture::CaptureFile::open(Path::new(file.text())).unwrap();
        assert_eq!(capture.rings().len(), 1);
        let account = &capture.end().unwrap().stats;
        assert_eq!(account.events(), capture.events().count() as u64);
        events += account.events();
    }
    assert_eq!(events, 3204);
}

#[test]
fn an_interrupted_capture_of_a_live_ring_is_whole() {
    let place = Place::new();
    let recorder = place.perf(50);
    let mut live = live!("capture", &place.path("perf"), "-o", &place.path("t.evc"), "--json");
    wait_while(|| std::fs::metadata(place.path("t.evc")).is_err());
    let pid = live.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let captured = live.json_line();
    assert_eq!(live.child.wait().unwrap().code(), Some(0));
    assert_eq!((&captured["reason"], &captured["events"]), (&"interrupted".into(), &200.into()));
    drop(recorder);
}

#[test]
fn every_bad_input_has_its_line_and_its_code() {
    let place = Place::new();
    drop(place.perf(500));
    let exec = place.ring("exec", ContentDescription::from_event_type::<ExecEvent>());
    exec.record(ExecEvent::TxnEnd.code(), [0; 4], &[]);
    drop(exec);
    drop(place.ring("older", ContentDescription::new(3, "PERF").schema_hash([7; 32])));
    let capture = place.path("t.evc");
    run!("capture", &place.path("perf"), "-o", &capture).ends(0);
    let bytes = std::fs::read(&capture).unwrap();
    std::fs::write(place.path("cut.evc"), &bytes[..bytes.len() - 100]).unwrap();
    std::fs::write(place.path("text"), "no ring").unwrap();
    let mut full = program!("export", &capture, "--format", "jsonl");
    full.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let lines: Vec<String> = [
        run!("diff", &place.path("exec"), &place.path("perf")),
        run!("export", &place.path("exec"), "--format", "folded"),
        run!("capture", &place.path("older"), "-o", &place.path("o.evc")),
        run!("summary", &place.path("nothing")),
        run!("summary", &place.path("text")),
        run!("capture", &place.path("nothing"), "-o", &place.path("o.evc")),
        run!("capture", &place.path("perf"), "-o", &place.path("o.evc"), "--keep", "2"),
        run!("capture", &place.path("perf"), "-o", &place.path("o.evc"), "--", &place.path("perf")),
        run!("capture", &place.path("perf"), "-o", &capture),
        run!("capture", &place.path("perf"), "-o", &place.path("no/such/folder.evc")),
        run!("export", &capture, "-o", &place.path("no/such/folder.json")),
        run!("capture", &place.path("perf"), "-o", "/dev/full", "--force"),
        finish(full),
        run!("summary", &place.path("cut.evc"), "--json"),
    ]
    .iter()
    .map(|run| shown(&place, run))
    .collect();
    insta::assert_snapshot!(lines.join("\n"));
    // The capture file was cut off in the middle. The summary still counts the spans before the cut.
    let cut = run!("summary", &place.path("cut.evc"), "--json");
    let summary: serde_json::Value = serde_json::from_str(&cut.out).unwrap();
    assert_eq!((cut.code, &summary["spans"][0]["count"]), (Some(6), &500.into()));
}

#[test]
fn a_capture_that_is_cut_off_before_its_rings_is_truncated_for_every_verb() {
    let place = Place::new();
    drop(place.perf(500));
    let (capture, cut) = (place.path("t.evc"), place.path("cut.evc"));
    run!("capture", &place.path("perf"), "-o", &capture).ends(0);
    let bytes = std::fs::read(&capture).unwrap();
    std::fs::write(&cut, &bytes[..100]).unwrap();
    let folded = ["export", &cut, "--format", "folded"];
    for verb in [&["summary", &cut][..], &["summary", &cut, "--json"], &["export", &cut, "--format", "chrome"], &folded]
    {
        let run = run(verb);
        assert_eq!(run.code, Some(6), "{verb:?} {run:?}");
        let error = format!("error: {cut}: truncated: ");
        assert!(run.err.lines().any(|line| line.starts_with(&error)), "{verb:?} {run:?}");
    }
}

#[test]
fn damage_is_reported_before_a_span_that_is_not_found_because_of_it() {
    let place = Place::new();
    let recorder = spans_in(place.path("shop")).shifts(15, 21).tables_shift(16).keep(true);
    let dispatch = tracing::Dispatch::new(RecorderSubscriber::new(recorder.prefault(false).build().unwrap()));
    tracing::dispatcher::with_default(&dispatch, || drop(tracing::info_span!("query").entered()));
    let capture = place.path("t.evc");
    run!("capture", &place.path("shop"), "--now", "-o", &capture).ends(0);
    run!("summary", &capture, "--span", "query").ends(0);
    let mut bytes = std::fs::read(&capture).unwrap();
    // A block of the kind 3 holds the tables of call sites.
    let blocks = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"EVRB"));
    let tables = blocks.into_iter().find(|at| bytes[at + 4] == 3).unwrap();
    bytes[tables + 120 + 3] ^= 0x55;
    std::fs::write(&capture, &bytes).unwrap();
    for options in [&[][..], &["--span", "query"]] {
        for verb in ["summary", "watch"] {
            run!(verb, &capture, options).fails(7, "is damaged");
        }
    }
}

/// Damages the content of the first block of events in a file.
fn damage_events(path: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let blocks = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"EVRB"));
    let events = blocks.into_iter().find(|at| bytes[at + 4] == 2).unwrap();
    bytes[events + 1000..][..16].fill(b'X');
    std::fs::write(path, &bytes).unwrap();
}

#[test]
fn events_in_a_damaged_block_are_lost_for_every_verb() {
    let place = Place::new();
    let _recorder = place.perf_of_many_files();
    let (whole, damaged) = (place.path("whole.evc"), place.path("damaged.evc"));
    let captured = run!("capture", &place.path("perf"), "-o", &whole, "--now", "--json").json();
    std::fs::copy(&whole, &damaged).unwrap();
    damage_events(&damaged);
    assert_eq!(run!("summary", &whole, "--json").json()["lost"], 0);

    let watched = run!("watch", &damaged, "--json");
    let lines = watched.json_lines();
    let gaps: Vec<_> = lines.iter().filter(|line| line["gap"].is_object()).map(|line| &line["gap"]).collect();
    let [gap] = gaps[..] else { panic!("{gaps:?}") };
    let lost = gap["count"].number();
    assert_eq!((&gap["cause"], &gap["first_seqno"]), (&"damaged".into(), &1.into()));
    let shown = lines.iter().filter(|line| line["seqno"].is_u64()).count() as u64;
    assert_eq!(shown + lost, captured["events"].number());
    assert_eq!(watched.code, Some(7), "{:?}", watched.err);

    let text = run!("watch", &damaged, "--full");
    assert!(text.out.contains("in a damaged part of the file"), "{}", &text.out[..500.min(text.out.len())]);
    for verb in [&["summary", "--json"][..], &["export", "--json", "-o", &place.path("t.trace")]] {
        let run = run!(&verb[..1], &damaged, &verb[1..]);
        assert_eq!(run.code, Some(7), "{verb:?} {run:?}");
        let counted: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(counted["lost"], lost, "{verb:?}");
    }
    let page = run!("report", &damaged, "-o", "-");
    assert!(page.code == Some(7) && page.out.contains("is damaged: its checksum is "), "{page:?}");
    assert!(page.out.contains(" damaged.</p>"), "{page:?}");
    for sides in [[&whole, &damaged], [&damaged, &whole]] {
        run!("diff", sides[0], sides[1], "--strict").fails(7, "lost");
    }
    run!("budget", "update", &place.path("budgets.json"), &damaged).ends(7);
}

#[test]
fn the_files_of_a_rotated_capture_are_counted_and_exported_as_one() {
    let place = Place::new();
    let recorder = place.perf_of_many_files();
    let capture = |output: &str, more: &[&str]| {
        let (ring, output) = (place.path("perf"), place.path(output));
        let captured = run!("capture", &ring, "-o", &output, "--now", "--json", more).json();
        let files = captured["files"].list().iter();
        files.map(|file| file.text().to_owned()).collect::<Vec<String>>()
    };
    let whole = capture("whole.evc", &[]);
    let mut parts = capture("parts.evc", &["--rotate-size", "6k"]);
    assert!(parts.len() >= 3, "{parts:?}");
    let summary = |files: &[String]| {
        let mut arguments = vec!["summary", "--json"];
        arguments.extend(files.iter().map(String::as_str));
        run(&arguments)
    };
    // The files of a rotated capture may be named in any order.
    parts.reverse();
    let expected = summary(&whole).json();
    assert_eq!(expected["spans"][0]["count"], 10_001);
    assert_eq!(summary(&parts).json(), expected);
    let lines = |files: &[String]| {
        let mut arguments = vec!["export", "--format", "jsonl"];
        arguments.extend(files.iter().map(String::as_str));
        let of_spans = |line: &serde_json::Value| line["type"] == "span" || line["type"] == "end";
        let mut lines = run(&arguments).json_lines().into_iter().filter(of_spans).collect::<Vec<_>>();
        // The two captures have looked at different times.
        let end = lines.last_mut().unwrap()["processes"][0].take();
        assert_eq!(end["state"], "live", "{end}");
        lines
    };
    assert!(lines(&parts) == lines(&whole));

    let first = run!("summary", parts.last().unwrap());
    assert!(first.out.contains(" open, or closed after the end of this file"), "{}", first.out);
    let last = parts.remove(0);
    let refused = [
        summary(&[parts[0].clone(), parts[0].clone()]),
        summary(&[parts.last().unwrap().clone(), last]),
        summary(&[parts[0].clone(), whole[0].clone()]),
        summary(&[parts[0].clone(), place.path("perf")]),
    ];
    let mut lines = Vec::new();
    for run in &refused {
        assert_eq!(run.code, Some(2), "{run:?}");
        lines.push(run.err.replace(&place.path(""), "DIR/"));
    }
    let number = |part: &str| part.rsplit('.').nth(1).unwrap().parse::<u32>().unwrap();
    let second_last = number(&parts[0]);
    assert!(lines[0].contains(&format!("it is file {second_last} of its capture, and so is DIR/")), "{lines:?}");
    assert!(lines[1].contains("name those in between, too"), "{lines:?}");
    assert!(lines[2].contains("it has the ring perf of process ") && lines[2].contains("and so has DIR/"), "{lines:?}");
    assert!(lines[3].contains("is a capture, and DIR/perf is not: "), "{lines:?}");
    drop(recorder);
}

#[test]
fn rings_are_counted_and_exported_together() {
    let place = Place::new();
    let perf = place.perf(10);
    let exec = place.ring("exec", ContentDescription::from_event_type::<ExecEvent>());
    // The last extension word says that this event was recorded inside span 7. That span is in the other ring,
    // `perf`.
    exec.record(ExecEvent::TxnEnd.code(), [0, 0, 0, 7], &[]);
    let both = [place.path("exec"), place.path("perf")];
    let lines = run!("export", &both[0], &both[1], "--format", "jsonl").json_lines();
    let of_type = |what: &str| lines.iter().filter(|line| line["type"] == what).collect::<Vec<_>>();
    assert_eq!(of_type("span").len(), 10);
    assert_eq!(of_type("typed_event")[0]["span"], 7);
    assert_eq!(run!("summary", &both[0], &both[1], "--json").json()["spans"][0]["count"], 10);
    assert_eq!(run!("summary", &both[0], &both[0], "--json").json()["events"][0]["name"], "TXN_END");
    // None of these rings has spans.
    run!("export", "--format", "folded", &both[0], &both[0])
        .fails(8, "holds EXEC events (content type 2) and no spans");
    drop((perf, exec));
}

#[test]
fn events_removed_by_keep_are_reported_and_are_not_losses() {
    let place = Place::new();
    let recorder = place.perf_of_many_files();
    let handed_out = recorder.stats().last_seqno;
    let ring = place.path("perf");
    let arguments = ["capture", &ring, "-o", &place.path("t.evc"), "--now", "--rotate-size", "6k", "--keep", "2"];
    let printed = run(&arguments).ends(0);
    let captured = run!(&arguments, "--json", "--force").json();
    let removed = number(&captured["removed"]);
    assert!(removed > 0 && captured["lost"] == 0, "{captured}");
    assert_eq!(number(&captured["events"]) + removed, handed_out);
    assert_eq!(
        (&captured["rings"][0]["removed"], &captured["rings"][0]["last_seqno"]),
        (&removed.into(), &handed_out.into())
    );
    let removed_files = number(&captured["removed_files"]);
    assert!(printed.err.contains(&format!(" more were in {removed_files} files that were removed\n")), "{printed:?}");
    let files: Vec<&str> = captured["files"].list().iter().map(|file| file.text()).collect();
    let summary = [&["summary", "--strict"], &files[..]].concat();
    let table = run(&summary).ends(0);
    assert!(table.out.contains(" more were captured in files that were removed\n"), "{}", table.out);
    let before = format!("what is in the files before number {} of this capture is not counted\n", removed_files + 1);
    assert!(table.out.contains(&before), "{}", table.out);
    assert!(table.out.contains("1 whose beginning is in an earlier file"), "{}", table.out);
    let summary = run!(&summary, "--json").json();
    assert_eq!((&summary["removed"], &summary["lost"]), (&removed.into(), &0.into()));
    // A search says that the removed files may have had what was not found.
    let found = run!("find", "span=nope", "--json", &files);
    let end = found.json_lines().pop().unwrap();
    let gap = &end["gaps"].list()[..];
    assert!(found.code == Some(19) && gap.len() == 1 && gap[0]["cause"] == "removed", "{end}");
    assert_eq!((&gap[0]["events"], gap[0]["to_ns"].is_u64()), (&removed.into(), true), "{end}");
    drop(recorder);
}

#[test]
fn spans_that_were_never_closed_have_no_times_in_the_table() {
    let place = Place::new();
    let recorder = place.perf(0);
    let ext = PerfExt { span_id: 7, thread_id: 1, ..PerfExt::default() };
    recorder.record(PerfEvent::SpanNew.code(), ext.to_words(), &[]);
    let table = run!("summary", &place.path("perf"));
    let row = table.out.lines().nth(1).unwrap();
    assert!(row.matches("open").count() >= 8 && !row.contains("0 ns") && row.contains("+ 1 open"), "{}", table.out);
    drop(recorder);
}

#[test]
fn a_full_stdout_is_named() {
    let place = Place::new();
    drop(place.perf(5));
    let ring = place.path("perf");
    let of_rings = [["summary", &ring], ["info", &ring], ["watch", &ring], ["list", &place.path("")]];
    let no_rings = [&["--help"][..], &["--version"], &["capture", "--help"], &["completions", "bash"]];
    for arguments in of_rings.iter().map(|of_ring| &of_ring[..]).chain(no_rings) {
        let mut full = program(arguments);
        full.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let run = finish(full);
        let error = "error: cannot write to stdout: No space left on device (os error 28)\n";
        assert!(run.code == Some(12) && run.err.ends_with(error), "{arguments:?} {run:?}");
    }
}

#[test]
fn full_tables_are_reported_by_capture_summary_and_export() {
    let place = Place::new();
    let recorder = spans_in(place.path("small")).tables_shift(13).shifts(15, 21).shards(1).build().unwrap();
    let dispatch = tracing::Dispatch::new(eventring::tracing::RecorderSubscriber::new(recorder));
    for n in 0..300 {
        let log = || tracing::dispatcher::with_default(&dispatch, || tracing::info!(n));
        std::thread::scope(|scope| {
            let name = format!("a thread with a long name {n}");
            std::thread::Builder::new().name(name).spawn_scoped(scope, log).unwrap().join().unwrap();
        });
    }
    let capture = place.path("small.evc");
    let captured = run!("capture", &place.path("small"), "--now", "-o", &capture);
    let reported = |run: &Run| run.err.lines().find(|line| line.contains("threads found no room")).map(str::to_owned);
    let line = reported(&captured).unwrap_or_else(|| panic!("{captured:?}"));
    for verb in ["summary", "export"] {
        assert_eq!(reported(&run!(verb, &capture)).as_ref(), Some(&line), "{verb}");
    }
}
