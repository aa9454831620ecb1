//! Watches with `eventring capture --on`, and programs to watch.

use crate::fixtures::*;
use eventring::tracing::try_init;
use eventring_capture::{CapturedContent, CapturedRecord};
use std::ops::RangeInclusive;

pub const SLOW_SPANS: u64 = 20;
pub const LIMIT: Duration = Duration::from_millis(20);
const SLEEP: Duration = Duration::from_millis(30);
pub const SLOW: &str = "span=slow dur>20ms";

/// Returns the command `eventring capture RING OPTIONS -- PROGRAM`, where PROGRAM is this test executable, which plays
/// `part`.
pub fn watching(test: &str, part: &str, ring: &Path, options: &[&str]) -> Command {
    of_program(&play(test, part, ring), program!("capture", ring, "--json", options, "--"))
}

/// Adds to the words of a command those of the program that it starts.
pub fn of_program(program: &Command, mut command: Command) -> Command {
    command.arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("EVENTRING_KEEP").env_remove("EVENTRING_FILTER");
    command
}

/// Starts a watch of a ring that is not there yet. It listens to signals when this function returns.
pub fn watch_before(ring: &Path, options: &[&str]) -> Live {
    let mut live = live!("capture", ring, "--wait", "--json", options);
    live.notice("waiting for the ring");
    live
}

/// Waits until a file is complete: its manifest is written last.
#[track_caller]
pub fn wait_for(file: &Path) -> Value {
    // A manifest that is being written may be empty.
    let read = || serde_json::from_str(&fs::read_to_string(manifest_path(file)).unwrap_or_default()).ok();
    let mut manifest = None;
    wait_while(|| {
        manifest = read();
        manifest.is_none()
    });
    manifest.unwrap()
}

pub fn manifest_path(file: &Path) -> PathBuf {
    format!("{}.json", file.display()).into()
}

pub fn result(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{run:?}");
    run.said()
}

pub fn count(result: &Value, what: &str) -> u64 {
    result[what].as_u64().unwrap_or_else(|| panic!("no {what}: {result}"))
}

/// Checks that a file opens, holds the whole time that was asked for, and has the manifest that the result names.
/// Returns the file's path, and its manifest.
pub fn checked(file: &Value) -> (PathBuf, Value) {
    let path = PathBuf::from(file["file"].text());
    // A thread that was killed while it recorded leaves a gap.
    let is_event = |record: &CapturedRecord| matches!(record.content, CapturedContent::Event { .. });
    let events = CaptureFile::open(&path).unwrap().events().filter(is_event).count();
    assert_eq!(events as u64, file["events"].number());
    let manifest = wait_for(&path);
    for (name, value) in file.as_object().unwrap() {
        assert_eq!(&manifest[name], value, "{name} of {}", path.display());
    }
    assert_eq!(manifest["window_kept_ns"], manifest["window_asked_ns"], "{manifest:#}");
    (path, manifest)
}

/// Returns the spans that were open at the end of a file.
pub fn open_spans(file: &Path) -> Vec<(u64, String)> {
    let opened = run!("open", file, "--json").json();
    let spans = opened["spans"].list().iter();
    spans.map(|span| (span["id"].number(), span["name"].text().to_owned())).collect()
}

/// Plays a program with thousands of short spans and some that sleep. Says how many spans `slow` were longer than the
/// limit for certain, and possibly: on a busy machine, a short one may be held up.
pub fn slow_spans() -> ! {
    let _recording = try_init(format!("{}:18:24", child::place().display())).unwrap();
    let mut random = u64::from(std::process::id()) * 2 + 1;
    let (mut certain, mut possible) = (0, 0);
    let mut slow = |n: u64, sleep: Duration| {
        let outside = Instant::now();
        let inside = info_span!("slow", n).in_scope(|| {
            let inside = Instant::now();
            info!("a record in a slow span has no duration");
            thread::sleep(sleep);
            inside.elapsed()
        });
        certain += u64::from(inside > LIMIT);
        possible += u64::from(outside.elapsed() > LIMIT);
    };
    // The first and the last event of the program are those of slow spans.
    for n in 0..SLOW_SPANS {
        slow(n, SLEEP);
        if n + 1 == SLOW_SPANS {
            break;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for k in 0..100 + (random >> 40) % 400 {
            info_span!("ordinary", k).in_scope(|| info!(k, "something"));
        }
        slow(n, Duration::ZERO);
        if n % 5 == 0 {
            info_span!("patient").in_scope(|| thread::sleep(SLEEP));
        }
    }
    say(format!("{certain} {possible}"));
    std::process::exit(0);
}

/// Returns how many slow spans the program says it had. It prints to stderr, because stdout has the result.
pub fn said(run: &Run) -> RangeInclusive<u64> {
    let line = run.err.lines().find_map(|line| line.strip_prefix("talk: ")).unwrap_or_else(|| panic!("{run:?}"));
    let (certain, possible) = line.split_once(' ').unwrap();
    let certain: u64 = certain.parse().unwrap();
    assert!(certain >= SLOW_SPANS, "{line}");
    certain..=possible.parse().unwrap()
}
