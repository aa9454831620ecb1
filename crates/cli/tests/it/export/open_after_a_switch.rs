//! Spans that end while recording is switched off. No reader and no export shows them as still open.

use crate::program;
use eventring::tracing::{PerfRecorder, PerfRecorderBuilder, RecorderLayer, RecorderSubscriber};
use tracing::{Dispatch, Span, info_span};
use tracing_subscriber::prelude::*;

fn builder() -> PerfRecorderBuilder {
    PerfRecorder::builder().shifts(20, 24).tables_shift(16).prefault(false)
}

/// Makes two recorders. A `RecorderSubscriber` records to the first one, a `RecorderLayer` on a `Registry` to the
/// second one.
fn both_kinds(make: impl Fn(&str) -> PerfRecorder) -> [(PerfRecorder, Dispatch); 2] {
    let (first, second) = (make("subscriber"), make("layer"));
    let layered = tracing_subscriber::registry().with(RecorderLayer::new(second.clone()));
    [(first.clone(), Dispatch::new(RecorderSubscriber::new(first))), (second, Dispatch::new(layered))]
}

/// Makes spans, switches recording off and on, and ends all spans. Some spans are made, entered or ended while
/// recording is off. Returns how many spans are recorded.
fn run(recorder: &PerfRecorder, is_layer: bool) -> usize {
    let deep: Vec<Span> = (0..50).map(|depth| info_span!("deep", depth)).collect();
    let entered: Vec<_> = deep.into_iter().map(Span::entered).collect();
    let across = info_span!("across").entered();
    let twice = info_span!("twice");
    let guard = twice.enter();
    let elsewhere = info_span!("elsewhere");
    let often = info_span!("often");
    let still = info_span!("still");
    recorder.set_enabled(false);
    // Recording is off now. Another thread enters and exits the span `elsewhere`, and this thread closes it.
    std::thread::scope(|scope| drop(scope.spawn(|| elsewhere.in_scope(|| ())).join()));
    drop(elsewhere);
    (0..1000).for_each(|_| often.in_scope(|| drop(info_span!("never"))));
    twice.in_scope(|| ());
    drop(guard);
    drop(across);
    entered.into_iter().rev().for_each(drop);
    let late = info_span!("late");
    let still = still.entered();
    recorder.set_enabled(true);
    // The parent of this child is the span `still`, which was entered while recording was off.
    drop(info_span!("child"));
    drop(still);
    drop((often, twice));
    late.in_scope(|| ());
    drop(late);
    // The span `late` was made while recording was off and entered after that. Only the layer records such a span.
    50 + 6 + usize::from(is_layer)
}

#[test]
fn no_export_and_no_summary_has_them_open() {
    use eventring_capture::CaptureFile;
    use eventring_export::{Format, View, export, summarize};

    let directory = program::directory();
    let make = |name: &str| builder().config(program::place(&directory, name)).build().unwrap();
    for (name, (recorder, dispatch)) in ["subscriber", "layer"].into_iter().zip(both_kinds(make)) {
        let really_open = tracing::dispatcher::with_default(&dispatch, || {
            run(&recorder, name == "layer");
            info_span!("really_open").entered()
        });
        let file = program::place(&directory, &format!("{name}.evc"));
        let path = recorder.path().unwrap().to_owned();
        program::run(&["capture", program::argument(&path), "-o", program::argument(&file), "--now", "--json"]).json();
        let capture = CaptureFile::open(&file).unwrap();
        for summary in summarize(&capture).unwrap().spans {
            assert_eq!(summary.open > 0, summary.name.ends_with("really_open"), "{summary:?}");
        }
        for format in [Format::Jsonl, Format::Chrome, Format::Folded, Format::Perfetto] {
            for view in [View::Thread, View::Span] {
                let mut out = Vec::new();
                let reported = export(&capture, format, view, &mut out).unwrap();
                // This is the control: the one span that has not ended is reported as open.
                assert_eq!((reported.open_spans, reported.lost_ends), (1, 0), "{format:?}");
                let text = String::from_utf8_lossy(&out);
                if format == Format::Jsonl || format == Format::Chrome {
                    let marks: Vec<&str> = text.lines().filter(|line| line.contains("\"open\":true")).collect();
                    assert_eq!(marks.len(), 1, "{format:?} {view:?} {marks:#?}");
                    assert!(marks[0].contains("really_open"));
                }
            }
        }
        tracing::dispatcher::with_default(&dispatch, || drop(really_open));
    }
}
