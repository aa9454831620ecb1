//! Filters count what they leave out, and do not change what they keep.

use crate::broker::place::{Place, lines};
use crate::every_kind;
use crate::fixtures::*;
use std::sync::atomic::Ordering::Relaxed;
use tracing::{Span, dispatcher};

/// Returns the spans of a capture with their ids, and the root of each.
fn spans_and_roots(capture: &str) -> (Vec<Value>, BTreeMap<u64, u64>) {
    let exported = run!("export", capture, "--format", "jsonl").json_lines();
    let spans: Vec<Value> = exported.into_iter().filter(|line| line["type"] == "span").collect();
    let parents: BTreeMap<u64, Option<u64>> =
        spans.iter().map(|span| (span["id"].number(), span["parent"].as_u64())).collect();
    let root_of = |span: &u64| {
        let mut root = *span;
        while let Some(Some(parent)) = parents.get(&root) {
            root = *parent;
        }
        (*span, root)
    };
    let roots = parents.keys().map(root_of).collect();
    (spans, roots)
}

/// Returns the spans in the order of their ids, without what their threads did.
fn without_times(spans: &[&Value]) -> Vec<Value> {
    let without = |span: &&Value| {
        let members = span.as_object().unwrap().iter();
        let is_time = |name: &str| ["cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"].contains(&name);
        members.filter(|(name, _)| !is_time(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut spans: Vec<Value> = spans.iter().map(without).collect();
    spans.sort_by_key(|span| span["id"].as_u64());
    spans
}

#[test]
fn a_sample_has_whole_trees_and_says_how_many_events_it_leaves_out() {
    let Some(place) = Place::new() else { return };
    let ring = place.service_ring(1500);
    let (beside, file) = (place.path("beside.evc"), place.path("all.evc"));
    let whole = run!("capture", &ring, "-o", &beside, "--json").json();
    let to = ["--to", &place.broker.address(), "--stream", "S", "--host", "h", "--json"].map(str::to_owned);
    let to: Vec<&str> = to.iter().map(String::as_str).collect();
    let sent = run!("forward", &ring, "--sample", "1/4", &to).json();
    let received = place.receive(&file, &[]).json();
    assert_eq!(
        (&received["events"], &received["filtered"], &received["lost"]),
        (&sent["events"], &sent["filtered"], &sent["lost"])
    );
    let all: u64 = whole["rings"].list().iter().map(|ring| ring["events"].number()).sum();
    assert_eq!(received["events"].number() + received["filtered"].number(), all);

    let (spans, roots) = spans_and_roots(&beside);
    let (kept, kept_roots) = spans_and_roots(&file);
    let trees: BTreeSet<u64> = kept_roots.values().copied().collect();
    let all_trees: BTreeSet<u64> = roots.values().copied().collect();
    let share = trees.len() as f64 / all_trees.len() as f64;
    assert!((0.2..0.3).contains(&share), "{} of {}", trees.len(), all_trees.len());
    // What is kept is exactly what the whole capture has of these trees.
    let expected: Vec<&Value> = spans.iter().filter(|span| trees.contains(&roots[&span["id"].number()])).collect();
    // Where several moments without a processor were measured together, their shares depend on the other spans.
    let [expected, kept] = [expected, kept.iter().collect()].map(|spans: Vec<&Value>| without_times(&spans));
    let missing: Vec<&Value> = expected.iter().filter(|span| !kept.contains(span)).collect();
    let added: Vec<&Value> = kept.iter().filter(|span| !expected.contains(span)).collect();
    assert!(missing.is_empty() && added.is_empty(), "missing: {missing:#?}\nadded: {added:#?}");
    assert_eq!(kept.len(), expected.len());
    let about = run!("export", &file, "--format", "jsonl").json_lines().swap_remove(0);
    assert_eq!((&about["rings"][0]["sampled_per_million"], &about["rings"][0]["host"]), (&250_000.into(), &"h".into()));
}

#[test]
fn levels_and_names_of_spans_are_chosen_before_anything_is_sent() {
    let Some(place) = Place::new() else { return };
    let capture = every_kind::capture_everything(place.dir.path());
    let address = place.broker.address();
    let kept = |ring: &str, host: &str, filter: &[&str]| {
        let ring = place.path(ring);
        run!("forward", &ring, "--to", &address, "--stream", "S", "--host", host, filter).ends(0);
        let file = place.path(&format!("{host}.evc"));
        let received = place.receive(&file, &["--host", host]).json();
        assert_eq!(received["lost"], 0);
        let kept = lines(&file);
        // What is kept is as it was.
        let all = lines(&capture);
        let changed: Vec<&String> =
            kept.iter().filter(|line| !line.contains(r#""type":"end""#) && !all.contains(line)).collect();
        assert!(changed.is_empty(), "{changed:#?}");
        kept
    };
    let count = |lines: &[String], what: &str| lines.iter().filter(|line| line.contains(what)).count();
    let after = kept("shop", "a", &["--span", "after"]);
    assert_eq!((count(&after, r#""type":"span""#), count(&after, r#""name":"after""#)), (2, 2), "{after:#?}");
    let warnings = kept("shop", "b", &["--max-level", "warn"]);
    assert_eq!((count(&warnings, r#""type":"span""#), count(&warnings, r#""level":"WARN""#)), (0, 2), "{warnings:#?}");
    let parts = kept("sink", "c", &["--type", "PART"]);
    assert_eq!((count(&parts, r#""type":"typed_event""#), count(&parts, "PART")), (24, 24), "{parts:#?}");
    run!("forward", "x", "--to", &address, "--stream", "S", "--sample", "2").fails(2, "like 0.01 or 1/100");
}

/// Captures rings into a new directory, and returns the lines of all files.
fn captured(dir: &Path, rings: &[&str], filter: &[&str]) -> Vec<String> {
    let to = tempfile::tempdir_in(dir).unwrap();
    let output = to.path().join("all.evc");
    run!("capture", rings, "-o", output.to_str().unwrap(), filter).ends(0);
    let files = fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut lines: Vec<String> = files.flat_map(|file| lines(file.to_str().unwrap())).collect();
    lines.retain(|line| !line.contains(r#""type":"end""#));
    // The number of a process depends on the order of the rings.
    for process in 0..rings.len() {
        let (number, any) = (format!(r#""process":{process},"#), r#""process":_,"#);
        lines.iter_mut().for_each(|line| *line = line.replace(&number, any));
    }
    lines.sort();
    lines
}

#[test]
fn each_recorder_is_filtered_by_itself_in_whatever_order_the_rings_are_named() {
    let dir = tempfile::tempdir().unwrap();
    every_kind::capture_everything(dir.path());
    let [shop, sink, service_ring] =
        ["shop", "sink", "service"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let service = Path::new(PROGRAM).with_file_name("examples").join("http_service");
    let mut service = Command::new(service);
    service.args(["--requests", "300", "--ring", &service_ring, "--keep"]).stdout(Stdio::null());
    assert!(service.status().unwrap().success());
    let rings = [&shop, &sink, &service_ring].map(String::as_str);
    let check = |filter: &[&str], mut expected: Vec<String>| {
        expected.sort();
        let [shop, sink, service_ring] = rings;
        for rings in [[sink, shop, service_ring], [service_ring, sink, shop], [shop, service_ring, sink]] {
            let kept = captured(dir.path(), &rings, filter);
            let missing: Vec<_> = expected.iter().filter(|line| !kept.contains(line)).take(3).collect();
            let added: Vec<_> = kept.iter().filter(|line| !expected.contains(line)).take(3).collect();
            assert!(missing.is_empty() && added.is_empty(), "{filter:?} {rings:?}\n{missing:#?}\n{added:#?}");
            assert_eq!(kept.len(), expected.len());
        }
    };
    for filter in [["--sample", "1/3"], ["--max-level", "info"], ["--span", "after"]] {
        check(&filter, rings.map(|ring| captured(dir.path(), &[ring], &filter)).concat());
    }
    let mut expected = rings.map(|ring| captured(dir.path(), &[ring], &[])).concat();
    let others = ["span", "event", "counter", "marker", "typed_event"].map(|of| format!(r#""type":"{of}""#));
    expected.retain(|line| line.contains(r#""PART""#) || !others.iter().any(|of| line.contains(of)));
    check(&["--type", "PART"], expected);
}

#[test]
fn a_type_that_no_ring_has_is_refused_with_those_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    every_kind::capture_everything(dir.path());
    let [shop, sink, later, to] =
        ["shop", "sink", "later", "out.evc"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let capture = |rings: &[&str], more: &[&str]| run!("capture", rings, "-o", &to, more);
    let refused = capture(&[&shop, &sink], &["--type", "PART", "--type", "PARTS"]);
    let expected = "--type PARTS: there is no event of that name; there are RECORD_ERROR, EVERYTHING, NOTHING, ONLY_ARRAY, PART, \
                    THREAD_STARTED, THREAD_ENDED, CALL_SITE, SPAN_NEW, SPAN_RECORD, SPAN_ENTER, SPAN_EXIT and 8 more";
    assert!(refused.code == Some(2) && refused.err.contains(expected), "{refused:?}");
    capture(&[&shop], &["--type", "PART"]).fails(2, "there are RECORD_ERROR, THREAD_STARTED");
    assert!(!Path::new(&to).exists());
    // The events of spans are types, too.
    capture(&[&shop, &sink], &["--type", "EVENT"]).ends(0);
    let mut records = run!("watch", &to, "--json").json_lines();
    // Others say what was left out.
    records.retain(|line| line["name"].is_string());
    let is_wanted = |name: &str| name == "EVENT" || name == "CALL_SITE" || name.starts_with("THREAD_");
    assert!(records.iter().all(|line| is_wanted(line["name"].text())), "{records:?}");
    assert!(records.iter().any(|line| line["name"] == "EVENT"));
    fs::remove_file(&to).unwrap();
    capture(&[&shop, &sink], &["--type", "PART", "--type", "77"]).ends(0);
    // The type may be one of a ring that is not there yet.
    let mut waiting = program!("capture", &sink, &later, "-o", &to, "-f", "--wait", "--type", "LATER");
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut err = BufReader::new(waiting.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut err, &mut said).unwrap();
    assert!(said.contains("warning: --type LATER: there is no event of that name; there are"), "{said}");
    kill(&mut waiting);
}

/// Returns the ids of a capture's spans, and the lines of its log records, marks and typed events.
fn contents(capture: &str, options: &[&str]) -> (BTreeSet<u64>, Vec<String>) {
    let exported = run!("export", capture, "--format", "jsonl", options).ends(0);
    let of_type = |line: &&Value, types: &[&str]| types.iter().any(|ty| line["type"] == *ty);
    let lines = exported.json_lines();
    let spans = lines.iter().filter(|line| of_type(line, &["span"])).map(|span| span["id"].number()).collect();
    let happened = lines.iter().filter(|line| of_type(line, &["event", "marker", "typed_event"]));
    let mut happened: Vec<String> = happened.map(|line| format!("{} {}", line["type"], line["seqno"])).collect();
    happened.sort();
    (spans, happened)
}

/// Returns what a capture with these options has.
fn captured_contents(place: &Place, rings: &[&str], options: &[&str]) -> (BTreeSet<u64>, Vec<String>) {
    let file = place.path("alone.evc");
    let options = if options[0] == "--rotate-size" { &[] } else { options };
    run!("capture", "-o", &file, "-f", options, rings).ends(0);
    contents(&file, &[])
}

#[test]
fn what_fulfils_a_condition_is_taken_while_it_is_recorded_as_an_export_selects_it_later() {
    let Some(place) = Place::new() else { return };
    every_kind::capture_everything(place.dir.path());
    let [sink, all, taken] = ["sink", "all.evc", "taken.evc"].map(|name| place.path(name));
    let service = place.service_ring(400);
    let address = place.broker.address();
    let rings = [sink.as_str(), &service];
    run!("capture", &rings, "-o", &all, "-f").ends(0);
    let mut host = 0;
    for condition in [
        "span=request",
        "field.customer=1",
        "span=sqlite or level>=WARN or event=PART",
        "not span=customer",
        // An extension word has two names.
        "field.line=3 or span=request",
        "field.line_index=3 or span=request",
    ] {
        let expected = contents(&all, &["--where", condition]);
        let capture = ["capture", "-o", &taken, "-f", "--json", "--where", condition];
        let made = run!(&capture, &rings).ends(0).json();
        let sum = |key: &str| made["rings"].list().iter().map(|ring| ring[key].number()).sum::<u64>();
        assert!(sum("events") < sum("last_seqno"), "{condition}: {made:#}");
        assert_eq!(contents(&taken, &[]), expected, "{condition}");
        if condition.contains("field.line") {
            // Only the other ring has this field, and it is not forwarded.
            continue;
        }
        host += 1;
        let host = format!("host-{host}");
        run!("forward", &service, "--to", &address, "--stream", "S", "--host", &host, "--where", condition).ends(0);
        let received = place.path(&format!("{host}.evc"));
        place.receive(&received, &["--host", &host]);
        let only = contents(&all, &["--ring", "shop", "--where", condition]);
        assert_eq!(contents(&received, &[]), only, "{condition}, forwarded");
    }
    // The other options leave out more. A rotation set has what one file has.
    let row = place.path("row.evc");
    for options in [["--span", "request"], ["--type", "PART"], ["--rotate-size", "16k"]] {
        let condition = ["--where", "span=request or span=sqlite or event=PART"];
        run!("capture", "-o", &row, "-f", &condition, &options, &rings).ends(0);
        let files = fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_of_row = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with("row.");
        let files: Vec<PathBuf> = files.filter(is_of_row).collect();
        let mut found = (BTreeSet::new(), Vec::new());
        for file in &files {
            let (spans, happened) = contents(file.to_str().unwrap(), &[]);
            found.0.extend(spans);
            found.1.extend(happened);
            fs::remove_file(file).unwrap();
        }
        found.1.sort();
        let alone = captured_contents(&place, &rings, &options);
        let (spans, happened) = contents(&all, &condition);
        let both = (
            spans.intersection(&alone.0).copied().collect::<BTreeSet<u64>>(),
            happened.into_iter().filter(|line| alone.1.contains(line)).collect::<Vec<_>>(),
        );
        assert!(options[0] != "--rotate-size" || files.len() > 1, "{files:?}");
        assert!(!both.1.is_empty() || options[0] != "--type");
        assert_eq!(found, both, "{options:?}");
    }
    let refused = |condition: &str| {
        let refused = run!("capture", "-o", &taken, "-f", "--where", condition, &rings).ends(2);
        refused.err
    };
    assert!(
        refused("span=query dur>5ms")
            .contains("select with `export --where`, or watch for such spans with `capture --on`")
    );
    assert!(refused("rate(event=PART)>5/s").contains("not about a single event"));
    // The programs have ended, so no event will ever have the field.
    assert!(refused("field.custumer=1 or span=request").contains("no event has a field `custumer`; there are"));
    assert!(
        run!("forward", &service, "--to", &address, "--stream", "S", "--where", "field.custumer=1")
            .err
            .contains("no event has a field `custumer`; there are")
    );
    let collector = run!("forward", &service, "--to", "http://127.0.0.1:1", "--where", "span=request");
    assert!(collector.err.contains("an OpenTelemetry collector has no --where"), "{collector:?}");
    assert!(
        run!("capture", &service, "--on", "span=request", "-o", "{n}.evc", "--where", "span=request")
            .err
            .contains("select from the file with those of `export`")
    );
    run!("capture", "-o", &taken, "-f", "--where", "field.prize>100", &sink).fails(2, "no event has a field `prize`");
}

#[derive(eventring::EventType, Clone, Copy)]
#[event(content_type = 979, name = "INSIDE")]
#[repr(u16)]
enum Inside {
    Step = 2,
}

/// Records spans in the ring `spans`, and typed events in them in the ring `typed`.
fn record_jobs(spans: &str, typed: &str) {
    let perf = spans_in(spans).keep(true).build().unwrap();
    let events = typed_in::<Inside>(typed).keep(true).build().unwrap();
    let step = || _ = record!(&events => Inside::Step);
    in_recorder(perf, || {
        step();
        for number in 0..20_u64 {
            let job = info_span!("job", number).entered();
            step();
            info_span!(target: "inner", "part", number).in_scope(|| {
                step();
                info!(target: "inner", "said");
                info_span!("leaf").in_scope(step);
            });
            // A span that outlives the one in which it was created.
            let later = info_span!("later");
            drop(job);
            later.in_scope(|| {
                step();
                info!("after the job");
            });
        }
    });
}

#[test]
fn a_condition_is_about_a_span_itself_and_takes_typed_events_in_it_as_an_export_does() {
    let dir = directory();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (spans, typed, all, taken) = (path("spans"), path("typed"), path("all.evc"), path("taken.evc"));
    record_jobs(&spans, &typed);
    let rings = [spans.as_str(), typed.as_str()];
    run!("capture", &rings, "-o", &all).ends(0);
    for condition in [
        "span=job",
        "span=part",
        "not span=job",
        "span=leaf and not span=job",
        "span=job or target=inner",
        "span=part and not field.number=3",
        "field.number=3",
        "event=STEP",
        "not event=STEP",
    ] {
        run!("capture", "-o", &taken, "-f", "--where", condition, &rings).ends(0);
        assert_eq!(contents(&taken, &[]), contents(&all, &["--where", condition]), "{condition}");
    }
    let in_jobs = contents(&all, &["--where", "span=job"]).1;
    assert_eq!(in_jobs.iter().filter(|line| line.contains("typed_event")).count(), 80);
}

/// Each recorder has a forwarder of its own.
#[test]
fn typed_events_are_forwarded_with_the_spans_in_which_they_were_recorded() {
    let Some(place) = Place::new() else { return };
    let [spans, typed, taken] = ["spans", "typed", "taken.evc"].map(|name| place.path(name));
    record_jobs(&spans, &typed);
    let address = place.broker.address();
    let to = |host: &'static str| ["--to", &address, "--stream", "S", "--host", host];
    let check = |host: &'static str, filter: &[&str]| {
        let received = place.path(&format!("{host}.evc"));
        place.receive(&received, &["--host", host]);
        run!("capture", &spans, &typed, "-o", &taken, "-f", filter).ends(0);
        let expected = contents(&taken, &[]);
        assert!(expected.1.iter().any(|line| line.contains("typed_event")));
        assert_eq!(contents(&received, &[]), expected, "{filter:?}");
    };
    let filters = [
        ("a", ["--where", "span=job"]),
        ("b", ["--where", "span=part and not field.number=3"]),
        ("c", ["--where", "span=leaf"]),
        ("d", ["--span", "part"]),
    ];
    for (host, filter) in filters {
        for rings in [[&spans, &typed], [&typed, &spans]] {
            run!("forward", rings[0], rings[1], &to(host)[..], &filter).ends(0);
        }
        check(host, &filter);
    }
    // The forwarder is there before the rings are, and goes on with the next program of the same name.
    let filter = ["--where", "span=job"];
    let rings = [&spans, &typed];
    rings.into_iter().for_each(|ring| fs::remove_file(ring).unwrap());
    let forwarder = live!("forward", &typed, &spans, "--wait", "--reopen", "--json", &to("e")[..], &filter);
    for program in 1..3 {
        record_jobs(&spans, &typed);
        let begin = Instant::now();
        let mut found = (BTreeSet::new(), Vec::new());
        // Each has 80 spans, and 80 typed events and 40 log records in them.
        while (found.0.len(), found.1.len()) != (80 * program, 120 * program) {
            let counts = (found.0.len(), found.1.len());
            assert!(begin.elapsed() < Duration::from_secs(60), "program {program}: {counts:?}");
            place.receive(&taken, &["--host", "e", "-f"]);
            found = contents(&taken, &[]);
        }
    }
    forwarder.interrupt();
    forwarder.end().ends(0);
}

/// Records trees of spans on three threads until it is told to end. Some trees are open from the beginning to the end.
fn record_trees(recorder: &PerfRecorder, is_over: &AtomicBool) {
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let inside_long_tree = |_| {
        let root = info_span!("long root");
        info_span!(parent: &root, "long inner")
    };
    let long_trees: Vec<Span> = dispatcher::with_default(&dispatch, || (0..40).map(inside_long_tree).collect());
    thread::scope(|scope| {
        for thread in 0..3_usize {
            let (dispatch, long_trees) = (&dispatch, &long_trees);
            scope.spawn(move || {
                dispatcher::with_default(dispatch, || {
                    for number in thread.. {
                        let step = info_span!(parent: &long_trees[number % 40], "step");
                        info_span!("root").in_scope(|| info_span!("inner").in_scope(|| {}));
                        drop(step);
                        if number % 20 == 0 {
                            thread::sleep(Duration::from_millis(5));
                        }
                        if is_over.load(Relaxed) {
                            return;
                        }
                    }
                });
            });
        }
    });
}

#[test]
fn a_sample_has_whole_trees_after_its_forwarder_was_killed() {
    let Some(place) = Place::new() else { return };
    let (ring, beside, file) = (place.path("shop"), place.path("beside.evc"), place.path("all.evc"));
    let recorder = spans_in(&ring).shards(3).shifts(17, 24).keep(true).build().unwrap();
    let address = place.broker.address();
    let words = ["forward", &ring, "--to", &address, "--stream", "S", "--host", "h", "--sample", "1/4"];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let recording = scope.spawn(|| record_trees(&recorder, &is_over));
        for _ in 0..6 {
            let mut forwarder = program(&words).stdout(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_millis(400));
            kill(&mut forwarder);
        }
        is_over.store(true, Relaxed);
        recording.join().unwrap();
    });
    drop(recorder);
    run(&words).ends(0);
    run!("capture", &ring, "-o", &beside, "--json").json();
    assert_eq!(place.receive(&file, &[]).json()["lost"], 0);
    let (all, roots) = spans_and_roots(&beside);
    let (kept, _) = spans_and_roots(&file);
    let kept: BTreeSet<u64> = kept.iter().map(|span| span["id"].number()).collect();
    let trees: BTreeSet<u64> = kept.iter().map(|span| roots[span]).collect();
    let all_trees: BTreeSet<u64> = roots.values().copied().collect();
    let share = trees.len() as f64 / all_trees.len() as f64;
    assert!((0.15..0.35).contains(&share), "{} of {}", trees.len(), all_trees.len());
    let ids = all.iter().map(|span| span["id"].number());
    let expected: BTreeSet<u64> = ids.filter(|span| trees.contains(&roots[span])).collect();
    let missing = expected.difference(&kept).count();
    assert_eq!((missing, kept.len()), (0, expected.len()), "spans are missing");
}
