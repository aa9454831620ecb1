//! Tests of a system without event rings. There, functions that would make a ring, or open one by its name, return the
//! error `Unsupported`. Captures, snapshots and copies of rings are read as everywhere.

#![cfg(any(not(target_os = "linux"), eventring_unsupported))]

use eventring::global::{GlobalRecorder, InitErrorKind};
use eventring::reader::{GapCause, Next, Reader, ReaderErrorKind, RingState, Seek};
use eventring::recorder::{ContentDescription, Recorder, RecorderErrorKind};
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt};
use eventring::tracing::{PerfReader, PerfRecorder, RecorderLayer, RecorderSubscriber, SetupError, SetupErrorKind};
use eventring::{EventPayload, EventType, record, recordv};
use eventring_capture::fixtures::{CaptureFixture, text};
use eventring_capture::{CaptureErrorKind, CaptureFile, CaptureOptions, CaptureProgress, capture};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(EventPayload)]
struct OrderPlaced {
    order_id: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    #[event(payload = OrderPlaced)]
    OrderPlaced = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[test]
fn typed_events_go_nowhere_and_are_not_even_evaluated() {
    let error = SHOP.try_init::<Shop>("shop:16:27").unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::Unsupported);
    assert!(error.to_string().contains("need Linux"), "{error}");
    assert!(!SHOP.is_enabled());
    let order = || -> OrderPlaced { panic!("nobody records it") };
    record!(Shop::OrderPlaced, &order());
    recordv!(Shop::OrderPlaced, &order(), []);

    let builder = || Recorder::builder(ContentDescription::from_event_type::<Shop>());
    assert_eq!(builder().config("shop:16:27").build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    assert_eq!(builder().anonymous().build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    // A mistake in the configuration is found on every system.
    assert_eq!(builder().config("shop:1:2").build().unwrap_err().kind(), RecorderErrorKind::BadConfig);
}

#[test]
fn spans_go_nowhere() {
    let error = eventring::tracing::try_init("shop").unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Unsupported);
    assert!(error.to_string().contains("need Linux"), "{error}");
    // `init` goes on without a recording.
    let recording = eventring::tracing::init("shop");
    assert_eq!(recording.problem().map(SetupError::kind), Some(SetupErrorKind::Unsupported));
    assert_eq!(PerfRecorder::builder().anonymous().build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    let dispatches = [
        tracing::Dispatch::new(RecorderSubscriber::global()),
        tracing::Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::global())),
    ];
    for dispatch in &dispatches {
        tracing::dispatcher::with_default(dispatch, || {
            tracing::info_span!("request", order_id = 7).in_scope(|| tracing::info!("hello"));
        });
    }
}

#[test]
fn no_ring_has_a_name() {
    assert_eq!(Reader::open("shop").unwrap_err().kind(), ReaderErrorKind::Unsupported);
    assert_eq!(PerfReader::open("shop").unwrap_err().kind(), ReaderErrorKind::Unsupported);
    assert_eq!(CaptureFile::open(Path::new("shop.evc")).unwrap_err().kind(), CaptureErrorKind::NotFound);
    let go_on = &mut |_: &CaptureProgress| ControlFlow::Continue(());
    let captured = capture(&["shop".into()], Path::new("shop.evc"), &CaptureOptions::default(), go_on);
    assert_eq!(captured.unwrap_err().reader_error().unwrap().kind(), ReaderErrorKind::Unsupported);
}

#[test]
fn a_snapshot_is_read_and_so_is_a_copy_of_a_ring() {
    let count = |path: &Path| {
        let mut cursor = Reader::open(path).unwrap().cursor();
        cursor.seek(Seek::Oldest);
        let mut payload = Vec::new();
        std::iter::from_fn(|| match cursor.next() {
            Next::Event(event) => cursor.payload(&event, &mut payload).valid().map(<[u8]>::len),
            _ => None,
        })
        .count()
    };
    let snapshot = kept("data/all-exec-events.snapshot.zst");
    let events = count(&snapshot);
    assert!(events > 20, "{events}");
    let ring = Temporary::new("copied-ring");
    zstd::stream::copy_decode(File::open(&snapshot).unwrap(), File::create(&ring.0).unwrap()).unwrap();
    assert_eq!(count(&ring.0), events);
    assert_eq!(Reader::open(&ring.0).unwrap().state(), RingState::Ended);
}

/// Returns the path of a file that is kept with the tests.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(name)
}

/// A file or directory that is removed at the end of a test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("eventring-unsupported-{}-{name}", std::process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

/// Makes a capture with spans, in a span of which a log record is, and a loss.
fn capture_file(name: &str) -> Temporary {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    made.call_site(1000, 1, CallSiteKind::Span, "request", &["user"]);
    made.call_site(1000, 2, CallSiteKind::Event, "hello", &["message"]);
    for id in 1..=40 {
        let begin = 10_000 * id;
        made.span_new(begin, 1, (id, 0), 1, &[text(0, "ada")]);
        made.span(PerfEvent::SpanEnter, begin + 10, 1, id, 1);
        let ext = PerfExt { span_id: id, call_site_id: 2, thread_id: 1, field_count: 1, ..PerfExt::default() };
        made.perf(PerfEvent::Event, begin + 20, ext, &text(0, "hello"));
        made.span(PerfEvent::SpanExit, begin + 100 * id, 1, id, 1);
        made.span(PerfEvent::SpanClose, begin + 101 * id, 1, id, 1);
    }
    made.gap(0, 7, GapCause::Overwritten);
    made.span_new(500_000, 1, (41, 0), 1, &[]);
    let mut file = made.file();
    file.seek(SeekFrom::Start(0)).unwrap();
    let capture = Temporary::new(name);
    std::io::copy(&mut file, &mut File::create(&capture.0).unwrap()).unwrap();
    capture
}

/// Runs the program. The command that builds it is in `.ci/run`: the same switch, the same target directory.
fn eventring(words: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join(format!("eventring{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is missing: `.ci/run unsupported` builds it", program.display());
    run(&program, words)
}

fn run(program: &Path, words: &[&str]) -> Output {
    Command::new(program).args(words).env("TZ", "UTC").output().unwrap()
}

#[test]
fn verbs_about_rings_say_that_they_need_linux() {
    for verb in ["list", "capture", "forward", "clean", "enable"] {
        let output = eventring(&[verb, "shop", "--json"]);
        assert_eq!(output.status.code(), Some(15), "{verb}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("need Linux"), "{verb}");
    }
    assert_eq!(eventring(&["lits"]).status.code(), Some(2));
}

/// With the variable `EVENTRING_WITH_RINGS`, which names a program for Linux, both must say the same.
#[test]
fn verbs_about_files_say_what_they_say_on_linux() {
    let snapshot = kept("data/all-exec-events.snapshot.zst");
    let capture = capture_file("files.evc");
    let [snapshot, capture] = [&snapshot, &capture.0].map(|path| path.to_str().unwrap());
    let with_rings = std::env::var_os("EVENTRING_WITH_RINGS");
    for words in [
        &["info", snapshot, "--json"][..],
        &["watch", snapshot, "--json"],
        &["watch", capture, "--json"],
        &["top", capture, "--json", "--once"],
        &["open", capture, "--json"],
        &["summary", capture, "--json"],
        &["summary", capture],
        &["diff", capture, capture, "--json"],
        &["report", capture, "-o", "-"],
        &["export", capture, "--format", "perfetto", "-o", "-"],
        &["export", capture, "--format", "chrome", "-o", "-"],
        &["export", capture, "--format", "folded"],
        &["export", capture, "--format", "jsonl"],
        &["export", capture, "--format", "otlp-json", "-o", "-"],
        &["completions", "bash"],
    ] {
        let output = eventring(words);
        println!("{words:?}: {}, {} bytes", output.status, output.stdout.len());
        if let Some(program) = &with_rings
            && words[0] != "completions"
        {
            let expected = run(Path::new(program), words);
            assert_eq!(output.status.code(), expected.status.code(), "{words:?}: {output:?}");
            assert!(output.stdout == expected.stdout, "{words:?}: another output");
        }
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
    }
}

#[test]
fn an_export_is_whole_or_not_there_and_replaces_nothing_unasked() {
    let capture = capture_file("exports.evc");
    let capture = capture.0.to_str().unwrap();
    for (format, name) in [("perfetto", "trace"), ("ctf", "ctf"), ("parquet", "tables")] {
        let output = Temporary::new(name);
        let words = ["export", capture, "--format", format, "-o", output.0.to_str().unwrap(), "--force"];
        assert_eq!(eventring(&words).status.code(), Some(0), "{format}");
        assert_eq!(eventring(&words[..6]).status.code(), Some(14), "{format}: it exists");
        assert_eq!(eventring(&words).status.code(), Some(0), "{format}: replaced");
        let beside = std::fs::read_dir(output.0.parent().unwrap()).unwrap().flatten();
        let unfinished = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".eventring."));
        assert_eq!(unfinished.count(), 0, "{format}");
    }
    let own = Temporary::new("own.evc");
    std::fs::copy(capture, &own.0).unwrap();
    let own = own.0.to_str().unwrap();
    let replaced = eventring(&["export", own, "-o", own, "--force"]);
    assert_eq!(replaced.status.code(), Some(14), "a file that is read is not written over: {replaced:?}");
}

#[test]
fn view_shows_the_address_of_its_page() {
    let capture = capture_file("view.evc");
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join(format!("eventring{}", std::env::consts::EXE_SUFFIX));
    let words = [Path::new("view"), &capture.0, Path::new("--no-browser")];
    let mut view = Command::new(program).args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut line).unwrap();
    view.kill().unwrap();
    view.wait().unwrap();
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
}
