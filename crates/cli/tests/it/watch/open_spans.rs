//! `eventring open` shows exactly the spans that the program says are open: those of deadlocked tasks, 100,000 at once,
//! those of a killed program, and those whose beginning is overwritten.

use crate::fixtures::*;
use crate::program::{memory_of, now_nanos};
use eventring::reader::RingSet;
use eventring_live::{Live, LiveOptions, LiveProgress, Observation};

fn record(place: &Path, shifts: (u32, u32)) -> PerfRecorder {
    let recorder = spans_in(place).shifts(shifts.0, shifts.1).keep(true).build().unwrap();
    subscriber::set_global_default(RecorderSubscriber::new(recorder.clone())).unwrap();
    recorder
}

/// Returns the id of the current span, as the ring has it.
fn id_of(span: &tracing::Span) -> u64 {
    span.id().unwrap().into_u64()
}

/// Opens the spans of `name` with `eventring open --json`.
fn open(name: &Path, options: &[&str]) -> Value {
    run!("open", name, "--json", options).json()
}

fn spans(opened: &Value) -> Vec<Value> {
    opened["spans"].list().clone()
}

fn ids(opened: &Value) -> BTreeSet<u64> {
    spans(opened).iter().map(|span| span["id"].number()).collect()
}

fn named<'v>(spans: &'v [Value], name: &str) -> &'v Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no span {name}: {spans:?}"))
}

/// Runs `eventring open` for people, and replaces what is different in each run.
fn screen(name: &Path, options: &[&str]) -> String {
    let run = run!("open", name, "--utc", options).ends(0).quiet();
    let mut out = String::new();
    for line in run.out.lines() {
        let line = without_times(line);
        // The column of ages is as wide as the longest age.
        let from_age = line.trim_start();
        let indent = if from_age.starts_with("≥ N") { "  " } else { &line[..line.len() - from_age.len()] };
        out.push_str(&format!("{indent}{from_age}\n"));
    }
    out
}

/// Replaces each number that comes before a unit of time by `N`, the pid, and the date.
fn without_times(line: &str) -> String {
    let (head, date) = match line.split_once(" at ") {
        Some((head, date)) if date.ends_with("UTC") => (head, " at TIME"),
        _ => match line.split_once(" between ") {
            Some((head, _)) => (head, " between TIMES"),
            None => (line, ""),
        },
    };
    let words: Vec<&str> = head.trim_end().split(' ').collect();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut shown = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default().trim_end_matches(',');
        if is_number(word) && ["µs", "ms", "s", "min"].contains(&next) {
            shown.push("N");
        } else if ["µs", "ms", "min"].contains(&word.trim_end_matches(',')) {
            shown.push(if word.ends_with(',') { "s," } else { "s" });
        } else if word.ends_with("):") && words.get(at.wrapping_sub(1)).is_some_and(|before| *before == "(pid") {
            shown.push("PID):");
        } else if word.starts_with("it-") {
            shown.push("PROGRAM");
        } else {
            shown.push(word);
        }
    }
    // The width of the column with the age is that of the age.
    // On a slow machine, an age is in minutes and seconds.
    let text = format!("{}{date}", shown.join(" ")).replace("N s N s", "N s");
    match text.trim_start().starts_with("N s") {
        true => format!("         {}", text.trim_start()),
        false => text,
    }
}

fn deadlock() {
    record(&child::place(), (17, 23));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let accounts = [(); 2].map(|()| Arc::new(tokio::sync::Mutex::new(100)));
        let barrier = Arc::new(tokio::sync::Barrier::new(2));
        let mut truth = Vec::new();
        for (from, to) in [(0, 1), (1, 0)] {
            let span = info_span!("transfer", from, to, note = "\u{1b}[31mred");
            let lock = info_span!(parent: &span, "lock", account = to);
            truth.extend([(id_of(&span), 0), (id_of(&lock), id_of(&span))]);
            let (ours, theirs, barrier) = (accounts[from].clone(), accounts[to].clone(), barrier.clone());
            let work = async move {
                let _ours = ours.lock().await;
                info_span!("check").in_scope(|| info!("enough"));
                barrier.wait().await;
                let _theirs = theirs.lock().instrument(lock).await;
            };
            tokio::spawn(work.instrument(span));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        say(truth.iter().map(|(id, parent)| format!("{id}:{parent}")).collect::<Vec<_>>().join(" "));
        // The tasks wait for ever.
        std::future::pending::<()>().await;
    });
}

#[test]
fn a_deadlock_of_two_tasks_is_a_screen_of_four_spans_in_no_thread() {
    let test = plays!(deadlock());
    let (_directory, [ring]) = places(["bank"]);
    let mut talk = Talk::start(test, "deadlock", &ring);
    let said = talk.hear();
    let truth: BTreeMap<u64, u64> = said
        .split(' ')
        .map(|pair| pair.split_once(':').map(|(id, parent)| (id.parse().unwrap(), parent.parse().unwrap())).unwrap())
        .collect();
    let check = || {
        let opened = open(&ring, &[]);
        let found: BTreeMap<u64, u64> =
            spans(&opened).iter().map(|span| (span["id"].number(), span["parents"][0].as_u64().unwrap_or(0))).collect();
        assert_eq!(found, truth, "{opened:#}");
        for span in spans(&opened) {
            assert!(span["thread"].is_null() && span["opened_before_window"] == false, "{span}");
            assert_eq!(span["may_have_closed"], false);
        }
        assert_eq!(opened["not_tracked"], 0);
        assert_eq!(named(&spans(&opened), "transfer")["fields"]["note"], "\u{1b}[31mred");
        opened
    };
    let first = check();
    insta::assert_snapshot!("deadlock", screen(&ring, &[]));
    assert_eq!(spans(&open(&ring, &["--min-age", "1h"])).len(), 0);
    // The spans grow older, and the program's death changes nothing but that.
    talk.kill();
    let last = check();
    assert!(last["at_ns"].as_u64() >= first["spans"][0]["age_ns"].as_u64());
    insta::assert_snapshot!("deadlock_of_a_dead_program", screen(&ring, &[]));
}

const SPANS: usize = 100_000;

fn many() {
    record(&child::place(), (18, 25));
    let all = info_span!("all");
    let open: Vec<tracing::Span> = (0..SPANS).map(|n| info_span!(parent: &all, "task", n)).collect();
    for closed in 0..1000_u64 {
        info_span!(parent: &all, "closed", closed).in_scope(|| ());
    }
    say(open.iter().chain([&all]).map(|span| id_of(span).to_string()).collect::<Vec<_>>().join(" "));
    wait_for_parent();
}

#[test]
fn a_hundred_thousand_open_spans_are_all_listed_and_are_a_dozen_lines() {
    let test = plays!(many());
    let (_directory, [ring]) = places(["many"]);
    let mut talk = Talk::start(test, "many", &ring);
    let truth: BTreeSet<u64> = talk.hear().split(' ').map(|id| id.parse().unwrap()).collect();
    let opened = open(&ring, &[]);
    assert_eq!(ids(&opened), truth);
    assert_eq!((spans(&opened).len(), opened["not_tracked"].as_u64()), (SPANS + 1, Some(0)));
    insta::assert_snapshot!("a_hundred_thousand_spans", screen(&ring, &[]));
    assert_eq!(screen(&ring, &["--all"]).lines().count(), SPANS + 3);
    // No record, name or field is made of a span that is not shown. (It was 100 MiB more.)
    let (is_done, kib) = memory_of(program!("open", &ring));
    assert!(is_done && kib < 64 << 10, "{kib} KiB");
    let page = open(&ring, &["--limit", "10"]);
    assert_eq!((spans(&page).len(), page["cut"].as_u64()), (10, Some(SPANS as u64 - 9)));

    // With less room, the rest is counted.
    let opened = open(&ring, &["--max-spans", "1000"]);
    let few = ids(&opened);
    assert!(few.is_subset(&truth) && few.len() > 900, "{}", few.len());
    let not_tracked = opened["not_tracked"].number() as usize;
    assert_eq!(few.len() + not_tracked, SPANS + 1);
    assert!(screen(&ring, &["--max-spans", "1000"]).contains("more are open that could not be kept"));
    talk.end();
}

fn killed() {
    record(&child::place(), (17, 23));
    let told = std::sync::Barrier::new(4);
    thread::scope(|scope| {
        for n in 0..3_u64 {
            let told = &told;
            let thread = thread::Builder::new().name(format!("worker-{n}"));
            let work = move || {
                let job = info_span!("job", n).entered();
                let step = info_span!("step", phase = ?"reading").entered();
                say(format!("{n} {} {}", id_of(&job), id_of(&step)));
                told.wait();
                loop {
                    // Spans open and close around the kill.
                    info_span!("short").in_scope(|| thread::sleep(Duration::from_millis(20)));
                }
            };
            thread.spawn_scoped(scope, work).unwrap();
        }
        told.wait();
        say("all");
    });
}

#[test]
fn a_killed_program_shows_which_thread_was_in_which_span() {
    let test = plays!(killed());
    let (_directory, [ring]) = places(["victim"]);
    let mut talk = Talk::start(test, "killed", &ring);
    let mut truth = BTreeMap::new();
    loop {
        let said = talk.hear();
        let Ok([n, job, step]) = <[&str; 3]>::try_from(said.split(' ').collect::<Vec<_>>()) else { break };
        truth.insert(job.parse::<u64>().unwrap(), format!("worker-{n}"));
        truth.insert(step.parse().unwrap(), format!("worker-{n}"));
    }
    assert_eq!(truth.len(), 6);
    thread::sleep(Duration::from_millis(50));
    talk.kill();
    let opened = open(&ring, &[]);
    let long: BTreeMap<u64, String> = spans(&opened)
        .iter()
        .filter(|span| span["name"] != "short")
        .map(|span| (span["id"].number(), span["thread"]["name"].as_str().unwrap_or("none").to_owned()))
        .collect();
    assert_eq!(long, truth);
    // A thread may have been between two short spans, or have made one that it had not entered.
    let short: Vec<Value> = spans(&opened).into_iter().filter(|span| span["name"] == "short").collect();
    assert!(short.len() <= 3, "{short:?}");
    // The ages count to the last event, so they do not grow. They may be as large as the time since then.
    let least = |opened: &Value| spans(opened).iter().map(|span| span["age_ns"].clone()).collect::<Vec<_>>();
    assert_eq!(least(&opened), least(&open(&ring, &[])));
    run!("open", &ring, "--watch", "10ms").ends(0);

    // The engine says that the program has died, after everything else.
    let mut live = Live::new(RingSet::open([&ring]).unwrap(), &LiveOptions::new());
    let mut ends = Vec::new();
    let progress = live.read(Duration::from_secs(60), |observation, state| {
        if let Observation::ProgramEnded(end) = observation {
            ends.push((end.has_died, end.program.pid, state.open_spans().count()));
        }
    });
    assert_eq!(progress, LiveProgress::Ended);
    assert_eq!(ends, [(true, talk.child.id(), 6 + short.len())]);
}

fn late() {
    record(&child::place(), (15, 21));
    let service = info_span!("service", port = 80);
    let (lost, unseen) = (info_span!("lost"), info_span!("unseen"));
    let _entered = service.enter();
    // More events than the ring holds.
    for n in 0..20_000_u64 {
        info_span!("request", n).in_scope(|| info!("served"));
    }
    // A span that is only the parent of another one, and a span whose exit alone is seen.
    let child = info_span!(parent: &lost, "child");
    say(format!("{} {} {} {}", id_of(&service), id_of(&lost), id_of(&child), id_of(&unseen)));
    wait_for_parent();
}

/// Removes the tables of the present, as if an older version had recorded.
fn without_tables(ring: &Path) {
    fs::remove_file(eventring::internal::now_path(ring)).unwrap();
}

#[test]
fn spans_whose_beginning_is_overwritten_are_there_and_say_so() {
    let test = plays!(late());
    let (_directory, [ring]) = places(["late"]);
    let mut talk = Talk::start(test, "late", &ring);
    let [service, lost, child, unseen] =
        talk.hear().split(' ').map(|id| id.parse::<u64>().unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("four ids")
    };
    // The tables of the present know them all.
    let opened = open(&ring, &[]);
    assert_eq!(ids(&opened), BTreeSet::from([service, lost, child, unseen]), "{opened:#}");
    assert!(spans(&opened).iter().all(|span| span["opened_before_window"] == false), "{opened:#}");
    without_tables(&ring);
    let opened = open(&ring, &[]);
    // No event that the ring still has names the span `unseen`, so nobody can know of it.
    assert_eq!(ids(&opened), BTreeSet::from([service, lost, child]), "{unseen}: {opened:#}");
    let old = |id: u64| spans(&opened).into_iter().find(|span| span["id"] == id).unwrap();
    for (id, is_old) in [(service, true), (lost, true), (child, false)] {
        assert_eq!((id, &old(id)["opened_before_window"]), (id, &Value::Bool(is_old)));
        assert_eq!(old(id)["may_have_closed"], false);
    }
    assert_eq!(old(child)["parents"], json!([lost]));
    assert!(opened["known_since_ns"].as_u64() > Some(0));
    let shown = screen(&ring, &[]);
    assert!(shown.contains("the beginning is overwritten") && shown.contains("> "), "{shown}");
    talk.end();
}

#[test]
fn spans_that_may_have_been_closed_come_after_those_that_are_surely_open() {
    let (directory, [ring]) = places(["doubt"]);
    let recorder = spans_in(&ring).shifts(15, 21).shards(2).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    dispatcher::with_default(&dispatch, || {
        let old = [(); 3].map(|()| info_span!("old"));
        let held = info_span!(parent: None, "held").entered();
        let parent = info_span!(parent: None, "parent");
        let names = |shown: &str| -> Vec<String> {
            let lines = shown.lines().skip_while(|line| !line.contains("thread  ")).skip(1);
            // What threads did in the span follows in brackets.
            let lines =
                lines.filter(|line| !line.starts_with("… and perhaps")).map(|line| line.split(" [").next().unwrap());
            lines.map(|line| line.split_whitespace().last().unwrap().to_owned()).collect()
        };
        // The control: without a loss, all are in the order of age.
        let shown = screen(&ring, &[]);
        assert!(shown.contains(": 5 spans open at") && !shown.contains("perhaps"), "{shown}");
        assert_eq!(names(&shown), ["old", "old", "old", "held", "parent"], "{shown}");

        // A thread loses events in the other shard. Any of them could be the close of a span that no thread is in.
        let lossy = thread::spawn({
            let dispatch = dispatch.clone();
            move || {
                dispatcher::with_default(&dispatch, || {
                    (0..40_000_u64).for_each(|n| info_span!("request", n).in_scope(|| ()));
                });
            }
        });
        lossy.join().unwrap();
        let _child = info_span!(parent: &parent, "child");
        let _new = info_span!(parent: None, "new");
        let shown = screen(&ring, &[]);
        assert!(shown.contains(": 7 spans open at") && !shown.contains("perhaps"), "the tables know: {shown}");
        without_tables(&ring);
        let shown = screen(&ring, &[]);
        assert!(shown.contains(": 4 spans and perhaps 3 more open at"), "{shown}");
        assert_eq!(names(&shown), ["held", "parent", "child", "new"], "{shown}");
        assert!(shown.lines().last().unwrap().starts_with("… and perhaps 3 spans more: events were lost"), "{shown}");
        let shown = screen(&ring, &["--perhaps"]);
        assert_eq!(names(&shown), ["held", "parent", "child", "new", "old", "old", "old"], "{shown}");
        assert!(shown.contains("? may have been closed") && !shown.contains("… and perhaps"), "{shown}");
        // JSON keeps the order of age.
        let opened = open(&ring, &[]);
        let in_json: Vec<&str> = opened["spans"].list().iter().map(|it| it["name"].text()).collect();
        assert_eq!(in_json, ["old", "old", "old", "held", "parent", "child", "new"]);
        assert_eq!(opened["may_have_closed"], 3);

        let top = run!("top", &ring, "--once", "--json").json();
        let in_top: Vec<(&str, bool)> =
            top["open"].list().iter().map(|it| (it["name"].text(), it["may_have_closed"].as_bool().unwrap())).collect();
        let surely = ["held", "parent", "child", "new"].map(|name| (name, false));
        assert_eq!(in_top, [&surely[..], &[("old", true); 3]].concat());
        assert_eq!((&top["open_spans"], &top["may_have_closed"]), (&7.into(), &3.into()));
        run!("top", &ring, "--once").shows("4 open spans and perhaps 3 more");

        // One shard alone would show spans as open that were closed in another one.
        let shard = place(&directory, "doubt.1");
        for verb in [&["open"][..], &["top", "--once"]] {
            let refused = run!(verb, &shard).ends(2).shows_nothing();
            let said = "is only shard 1 of a recorder: it has spans that were closed in other shards";
            assert!(
                refused.err.contains(said) && refused.err.contains(&format!("as open; name {}, which", ring.display()))
            );
        }
        drop((old, held));
    });
}

#[test]
fn a_capture_shows_what_was_open_at_any_time() {
    let (_directory, [ring, file]) = places(["r", "t.evc"]);
    let recorder = spans_in(&ring).shifts(17, 23).build().unwrap();
    let pause = || thread::sleep(Duration::from_millis(20));
    let mut times = Vec::new();
    let mut note = |names: &[&str]| {
        pause();
        times.push((now_nanos(), names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()));
        pause();
    };
    in_recorder(recorder.clone(), || {
        let first = info_span!("first");
        note(&["first"]);
        let second = info_span!(parent: &first, "second").entered();
        note(&["first", "second"]);
        drop(second);
        note(&["first"]);
        // Another span of this name has been closed.
        drop(info_span!(target: "elsewhere", "third"));
        let third = info_span!(parent: None, "third", n = 1);
        third.record("n", 2);
        note(&["first", "third"]);
        run!("capture", &ring, "-o", &file, "--now", "--json").json();
    });
    for (nanos, names) in &times {
        let opened = open(&file, &["--at", &nanos.to_string()]);
        let found: Vec<String> = spans(&opened).iter().map(|span| span["name"].text().to_owned()).collect();
        assert_eq!(&found, names, "{opened:#}");
        assert_eq!(opened["at_ns"], *nanos);
        let is_entered = |name: &str| !named(&spans(&opened), name)["thread"].is_null();
        assert_eq!(
            names.contains(&"second".to_owned()) && is_entered("second"),
            names.len() == 2 && names[1] == "second"
        );
    }
    // A time of day is one of the capture's.
    for (nanos, names) in &times {
        let of_day = nanos % 86_400_000_000_000;
        let (seconds, nanos_of_second) = (of_day / 1_000_000_000, of_day % 1_000_000_000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let at = format!("{hours:02}:{minutes:02}:{seconds:02}.{nanos_of_second:09}");
        for options in [&["--at", &at][..], &["--at", &at, "--utc"], &["--at", &format!("{at}Z")]] {
            let opened = open(&file, options);
            assert_eq!((&opened["at_ns"], spans(&opened).len()), (&(*nanos).into(), names.len()), "{options:?}");
        }
    }
    // A time at which the capture has nothing is said to be one, and a time of the ring's past is none.
    let said = |at: u64| run!("open", &file, "--at", &at.to_string()).err;
    assert_eq!(said(times[0].0), "");
    assert!(
        said(12).contains("--at is 1970-01-01 00:00:00.000000") && said(12).contains(", and the capture lasts from ")
    );
    let at_end = open(&file, &[]);
    assert_eq!(spans(&at_end).len(), 2);
    assert_eq!(named(&spans(&at_end), "third")["fields"]["n"], 2);
    let lines = run!("open", &file).out;
    assert!(lines.contains("third {n=2}") && lines.contains("first"), "{lines}");
    for words in [&["open"][..], &["top", "--once"]] {
        run!(words, &file, "--json", "--at", "+1h").ends(0).warns(", and the capture lasts from ");
    }
    assert!(at_end["spans"][0]["age_ns"].as_u64() > Some(140_000_000), "until the capture's end: {at_end}");

    for (arguments, said) in [
        (&["open", argument(&ring), "--at", "+1s"][..], "--at needs a capture"),
        (&["open", argument(&file), "--watch", "1s"], "--watch needs rings"),
        (&["open"], "nothing to read"),
    ] {
        run(arguments).fails(2, said);
    }
}

#[test]
fn open_goes_on_with_watch_until_the_program_ends() {
    let (_directory, [ring]) = places(["watched"]);
    let recorder = spans_in(&ring).shifts(17, 23).build().unwrap();
    let live = in_recorder(recorder.clone(), || {
        let _outer = info_span!("outer").entered();
        let mut live = live!("open", &ring, "--watch", "20ms", "--json");
        let mut seen = |name: &str, is_open: bool| {
            while spans(&live.json_line()).iter().any(|span| span["name"] == name) != is_open {}
        };
        seen("outer", true);
        let inner = info_span!("inner");
        seen("inner", true);
        drop(inner);
        seen("inner", false);
        live
    });
    drop(recorder);
    live.end().ends(0);
}

#[test]
fn spans_that_found_no_room_in_the_tables_are_counted() {
    let (directory, [ring]) = places(["full"]);
    let recorder = spans_in(&ring).shifts(17, 23).build().unwrap();
    let _open = in_recorder(recorder.clone(), || info_span!("open"));
    run!("open", &ring).shows("1 span open").quiet();
    // As if there had been no room for five spans.
    let tables = File::options().write(true).open(eventring::internal::now_path(&ring)).unwrap();
    tables.write_all_at(&5_u64.to_le_bytes(), 0x30).unwrap();
    run!("open", &ring).shows("1 span open").shows("5 spans more are open that could not be kept");
    // So it is in a capture.
    let capture = argument(&directory.path().join("full.evc")).to_owned();
    run!("capture", &ring, "-o", &capture, "--now").ends(0);
    for place in [argument(&ring), &capture] {
        let opened = run!("open", place, "--json").json();
        assert_eq!((opened["spans"].list().len(), &opened["not_tracked"]), (1, &5.into()), "{opened}");
    }
    // Tables that cannot be read are named, and the events decide.
    tables.write_all_at(b"?", 0).unwrap();
    run!("open", &ring).shows("1 span open").warns("cannot read the tables of the present in").warns(".now");
    drop(recorder);
}
