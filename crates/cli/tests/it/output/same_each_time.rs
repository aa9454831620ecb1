//! Every verb gives one answer about one capture, however often it is asked. The seed of a hash map is another one in
//! each process, so an answer that depends on the order of a hash map differs between runs.

use crate::fixtures::*;
use crate::shop::Shop;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfExt, flags};
use eventring_capture::fixtures::{CaptureFixture, int, text};

/// How often each verb is asked. With ten of a kind that could change places, two equal answers are chance once in
/// millions of runs.
const RUNS: usize = 4;
const KINDS: u32 = 10;
const THREADS: u32 = 4;

/// Makes a capture in which much is alike: names with equal times and counts, spans that opened at the same time, and
/// spans that several threads are in.
fn capture(directory: &Path) -> PathBuf {
    let path = directory.join("alike.evc");
    let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
    let mut made = CaptureFixture::written(file.try_clone().unwrap(), Box::new(file));
    let typed = made.add_typed::<Shop>("orders");
    let (span, event) = (CallSiteKind::Span, CallSiteKind::Event);
    for kind in 0..KINDS {
        made.call_site(1000, 1 + kind, span, &format!("step-{kind}"), &["number", "name"]);
        let level = if kind % 2 == 0 { CallSiteLevel::Error } else { CallSiteLevel::Warn };
        made.call_site_of(1000, 101 + kind, (event, level), &format!("event {kind}"), &["message"]);
        made.call_site_in(1000, 201 + kind, (span, CallSiteLevel::Trace), ("tokio::task", "runtime.spawn"), &["kind"]);
        made.call_site(1000, 301 + kind, CallSiteKind::Counter, &format!("counter {kind}"), &[]);
    }
    (1..=THREADS).for_each(|thread| made.thread(1000, thread, &format!("worker-{thread}")));
    let mut next = 1;
    for round in 0..3_u64 {
        let from = 2000 + round * 1000;
        for kind in 0..KINDS {
            let id = next + u64::from(kind);
            made.span_new(from, 1, (id, 0), 1 + kind, &[int(0, 7), text(1, "alike")]);
            (1..=THREADS).for_each(|thread| made.span(PerfEvent::SpanEnter, from + 10, thread, id, 1 + kind));
            let ext =
                PerfExt { span_id: id, call_site_id: 101 + kind, thread_id: 2, field_count: 1, ..PerfExt::default() };
            made.perf(PerfEvent::Event, from + 20, ext, &text(0, "alike"));
            let ext = PerfExt { call_site_id: 301 + kind, thread_id: 3, related: 5, ..PerfExt::default() };
            made.perf(PerfEvent::Counter, from + 20, ext, &[]);
            let code = [Shop::OrderPlaced, Shop::OrderShipped][kind as usize % 2] as u16;
            made.event(typed, code, from + 30, [0, 0, 0, id], &7_u64.to_le_bytes());
        }
        for kind in 0..KINDS {
            let id = next + u64::from(kind);
            (1..=THREADS).for_each(|thread| made.span(PerfEvent::SpanExit, from + 600, thread, id, 1 + kind));
            made.span(PerfEvent::SpanClose, from + 600, 1, id, 1 + kind);
        }
        next += u64::from(KINDS);
    }
    // These stay open, each with all threads in it, and with scopes in it that look alike.
    for kind in 0..KINDS {
        made.span_new(6000, 1, (next, 0), 1 + kind, &[int(0, 7), text(1, "alike")]);
        (1..=THREADS).for_each(|thread| made.span(PerfEvent::SpanEnter, 6010, thread, next, 1 + kind));
        next += 1;
    }
    let outer = next - 1;
    for copy in 0..14 {
        for kind in 0..KINDS {
            next += 1;
            let ext =
                PerfExt { span_id: next, related: outer, call_site_id: 1 + kind, thread_id: 1, ..PerfExt::default() };
            made.perf(PerfEvent::SpanNew, 6020, PerfExt { flags: flags::SCOPE * u16::from(copy % 2 == 0), ..ext }, &[]);
        }
    }
    drop(made.file());
    path
}

/// Returns everything that an answer is: the exit code, what was printed, and the files that were written.
fn answer(arguments: &[&str], output: Option<&Path>) -> (Option<i32>, String, String, BTreeMap<PathBuf, Vec<u8>>) {
    let answered = run(arguments);
    let mut files = BTreeMap::new();
    if let Some(output) = output {
        let mut paths = vec![output.to_owned()];
        while let Some(path) = paths.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => paths.extend(entries.map(|entry| entry.unwrap().path())),
                Err(_) => _ = files.insert(path.clone(), fs::read(&path).unwrap_or_default()),
            }
        }
        hide_uuid(&mut files);
        let removed = if output.is_dir() { fs::remove_dir_all(output) } else { fs::remove_file(output) };
        removed.unwrap();
    }
    (answered.code, answered.out, answered.err, files)
}

/// Removes the number of a Common Trace Format trace: two exports are two traces.
fn hide_uuid(files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let metadata = files.iter().find(|(path, _)| path.ends_with("metadata")).map(|(_, bytes)| bytes.clone());
    let metadata = metadata.map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default();
    let Some((_, rest)) = metadata.split_once("uuid = \"") else { return };
    let text = rest.split_once('"').unwrap().0;
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let hex = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let binary: Vec<u8> = digits.chunks(2).map(hex).collect();
    for bytes in files.values_mut() {
        for uuid in [text.as_bytes(), &binary] {
            while let Some(at) = bytes.windows(uuid.len()).position(|window| window == uuid) {
                bytes[at..at + uuid.len()].fill(b'-');
            }
        }
    }
}

#[test]
fn every_verb_says_the_same_of_one_capture_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path());
    let file = file.to_str().unwrap();
    let output = place(&directory, "out");
    let out = output.to_str().unwrap();
    let plain: [&[&str]; 26] = [
        &["open", file],
        &["open", file, "--json"],
        &["open", file, "--all"],
        &["open", file, "--at", "5500"],
        &["top", file, "--once"],
        &["top", file, "--once", "--json"],
        &["watch", file, "--quiet"],
        &["watch", file, "--json", "--quiet"],
        &["watch", file, "--quiet", "--where", "thread=worker-1"],
        &["watch", file, "--quiet", "--where", "thread=worker-3 span=step-*"],
        &["summary", file],
        &["summary", file, "--json"],
        &["summary", file, "--where", "thread=worker-2"],
        &["summary", file, "--where", "level>=WARN"],
        &["ask", file],
        &["ask", file, "--json"],
        &["why", file],
        &["why", file, "--json"],
        &["why", file, "--span", "step-3", "--json"],
        &["tasks", file],
        &["tasks", file, "--json"],
        &["find", "name=alike", directory.path().to_str().unwrap()],
        &["find", "thread=worker-2", directory.path().to_str().unwrap(), "--json"],
        &["diff", file, file],
        &["diff", file, file, "--json", "--times"],
        &["diff", file, file, "--fail-if", "p99(step-*)>=+0%"],
    ];
    let formats = program::formats();
    let formats = || formats.iter().map(String::as_str);
    let exports: Vec<_> = formats().map(|format| ["export", file, "--format", format, "-o", out]).collect();
    let selected = |format| ["export", file, "--format", format, "--where", "thread=worker-2", "-o", out];
    let selected: Vec<_> = formats().map(selected).collect();
    let by_span =
        ["perfetto", "chrome"].map(|format| ["export", file, "--format", format, "--view", "span", "-o", out]);
    let report = ["report", file, "-o", out];
    let written = exports.iter().map(|it| &it[..]).chain(selected.iter().map(|it| &it[..]));
    let written = written.chain(by_span.iter().map(|it| &it[..])).chain([&report[..]]);
    let all = plain.into_iter().map(|it| (it, None)).chain(written.map(|it| (it, Some(output.as_path()))));
    let mut differing = Vec::new();
    for (arguments, output) in all {
        let first = answer(arguments, output);
        assert!(matches!(first.0, Some(0 | 18)), "{arguments:?}: {first:?}");
        if (1..RUNS).any(|_| answer(arguments, output) != first) {
            differing.push(arguments);
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn a_condition_on_a_thread_finds_each_span_that_the_thread_is_in() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path());
    for thread in 1..=THREADS {
        let found = run!(
            "summary",
            file.to_str().unwrap(),
            "--json",
            "--where",
            &format!("thread=worker-{thread} span=step-3")
        );
        let open: u64 = found.json()["spans"].list().iter().map(|span| span["open"].number()).sum();
        assert!(open >= 1, "worker-{thread}: {found:?}");
    }
    // The thread that entered it last is shown, and JSON has all of them, in the order in which they entered it.
    let opened = run!("open", file.to_str().unwrap(), "--json").json();
    let entered: Vec<&Value> = opened["spans"].list().iter().filter(|span| !span["thread"].is_null()).collect();
    assert_eq!(entered.len(), KINDS as usize);
    for span in entered {
        let names: Vec<_> = span["threads"].list().iter().map(|thread| thread["name"].clone()).collect();
        assert_eq!(names, ["worker-1", "worker-2", "worker-3", "worker-4"]);
        assert_eq!(span["thread"], span["threads"][THREADS as usize - 1]);
    }
}
