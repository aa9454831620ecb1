//! Spans that end while recording is switched off. No reader and no export shows them as still open.

use crate::fixtures::*;
use eventring_stress::switched_off::{both_kinds, builder, run};

#[test]
fn no_export_and_no_summary_has_them_open() {
    use eventring_capture::CaptureFile;
    use eventring_export::{Format, View, export, summarize};

    let directory = program::directory();
    let make = |name: &str| builder().config(program::place(&directory, name)).build().unwrap();
    for (name, (recorder, dispatch)) in ["subscriber", "layer"].into_iter().zip(both_kinds(make)) {
        let really_open = dispatcher::with_default(&dispatch, || {
            run(&recorder, name == "layer");
            info_span!("really_open").entered()
        });
        let file = program::place(&directory, &format!("{name}.evc"));
        let path = recorder.path().unwrap().to_owned();
        run!("capture", &path, "-o", &file, "--now", "--json").json();
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
        dispatcher::with_default(&dispatch, || drop(really_open));
    }
}
