//! What profilers of OpenTelemetry see of the program's threads: an independent reader stops them again and again.

use crate::fixtures::*;
use eventring::tracing::context::{RemoteContext, inject};
use eventring::tracing::publish_otel_context;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::compiler_fence;
use tracing::Span;

const THREADS: usize = 8;
/// The spans of each thread.
const SPANS: usize = 6;

/// For each thread, the number of its span before and after the present step.
static TRUTH: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

fn say(thread: usize, before: usize, after: usize) {
    compiler_fence(Ordering::SeqCst);
    TRUTH[thread].store((before as u64) << 32 | after as u64, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
}

/// Does something from one span to another, and says so before and after.
fn step<R>(thread: usize, before: usize, after: usize, step: impl FnOnce() -> R) -> R {
    say(thread, before, after);
    let result = step();
    say(thread, after, after);
    result
}

/// Makes the spans of a thread: a tree that begins here, and one below a remote caller.
fn spans(thread: usize) -> Vec<Span> {
    let caller = format!("00-{:032x}-00f067aa0ba902b7-00", 0x4bf9_2f35_u128 << 64 | thread as u128);
    let mut spans = vec![info_span!("own"), info_span!("remote")];
    assert!(RemoteContext::parse(&caller, None).unwrap().attach(&spans[1]));
    for number in spans.len()..SPANS {
        spans.push(info_span!(parent: &spans[number - 2], "child"));
    }
    spans
}

/// Sleeps now and then, at different places, so that a busy machine lets the reader stop the thread soon. It sleeps in
/// each span in its turn: a reader on a busy machine sees little else.
fn pause(round: usize, place: usize) {
    if round % (SPANS * 10 + 1) == 32 * place {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

fn walk(thread: usize, spans: &[Span]) -> ! {
    let number = |index: usize| thread * SPANS + index + 1;
    let mut round = thread;
    loop {
        round += 1;
        let (outer, inner) = (round % SPANS, (round / SPANS + 1) % SPANS);
        pause(round, 0);
        let entered = step(thread, 0, number(outer), || spans[outer].enter());
        pause(round, 1);
        if inner != outer {
            let within = step(thread, number(outer), number(inner), || spans[inner].enter());
            step(thread, number(inner), number(outer), || drop(within));
        }
        step(thread, number(outer), 0, || drop(entered));
    }
}

fn play(place: &Path) {
    let recorder = recorder();
    publish_otel_context(&recorder).unwrap();
    publish_otel_context(&recorder).unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder));
    let all: Vec<Vec<Span>> = tracing::dispatcher::with_default(&dispatch, || (0..THREADS).map(spans).collect());
    let mut listed = String::new();
    for span in all.iter().flatten() {
        assert!(inject(span, |_, value| writeln!(listed, "{value}").unwrap()));
    }
    fs::write(place.join("spans"), listed).unwrap();
    let lines = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for (thread, spans) in all.iter().enumerate() {
            let (dispatch, lines) = (&dispatch, &lines);
            scope.spawn(move || {
                let id = rustix::thread::gettid().as_raw_nonzero();
                let mut lines = lines.lock().unwrap();
                writeln!(lines, "{id} {}", TRUTH[thread].as_ptr() as usize).unwrap();
                if lines.lines().count() == THREADS {
                    fs::write(place.join("threads"), &*lines).unwrap();
                    fs::write(place.join("ready"), "").unwrap();
                }
                drop(lines);
                tracing::dispatcher::with_default(dispatch, || walk(thread, spans));
            });
        }
    });
}

#[test]
fn a_reader_of_others_sees_the_span_of_each_thread_whenever_it_stops() {
    let test = plays!(play(&child::place()));
    let stops = std::env::var("EVENTRING_STOPS").unwrap_or_else(|_| "10000".into());
    let python = std::env::var("EVENTRING_PYTHON").unwrap_or_else(|_| "python3".into());
    if Command::new(&python).args(["-c", ""]).output().is_err() {
        return eventring_stress::missing(format_args!("{python} is needed"));
    }
    let directory = tempfile::tempdir().unwrap();
    let program = child::play(test, "spans", directory.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/tracing/otel_reader.py");
    let mut reader = Command::new(python);
    reader.arg(script).arg(stops).arg(directory.path()).arg(program.get_program()).args(program.get_args());
    let environment = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let read = reader.envs(environment).stdin(Stdio::null()).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let counts: Value = serde_json::from_slice(&read.stdout).unwrap();
    println!("{counts}");
    let count = |name: &str| counts[name].as_u64().unwrap();
    assert_eq!((count("wrong"), count("threads")), (0, THREADS as u64), "{counts}");
    // It has seen all spans, and none.
    assert_eq!((count("spans"), count("seen")), ((THREADS * SPANS) as u64, (THREADS * SPANS) as u64 + 1), "{counts}");
    assert!(count("in_spans") > 0 && count("outside") > 0 && count("changing") > 0, "{counts}");
    assert!(count("control") > count("stops") / 2, "{counts}");
    let resource = &counts["resource"];
    assert_eq!(
        (&resource["telemetry.sdk.name"], &resource["telemetry.sdk.language"]),
        (&json!("eventring"), &json!("rust"))
    );
    let name = std::env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(resource["service.name"], name);
    let more = json!({"threadlocal.schema_version": "tlsdesc_v1_dev", "threadlocal.attribute_key_map": []});
    assert_eq!(counts["more"], more);
}
