//! The output in terminals of several widths.

use super::super::rings::NextItem;
use super::*;
use crate::input::ring_args::Expect;
use crate::interrupt::Interrupt;
use crate::text::silence::Silence;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::BlockEnd;
use eventring::schema::perf::{
    CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ThreadTime, ThreadView, ValueType,
};
use eventring::schema::{EventPayload as _, EventType};
use eventring_capture::recording::EntryContent;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time 1,234 ns before the first event: 2023-11-14 22:13:20.123456789 UTC.
const START: u64 = 1_700_000_000_123_456_789;

fn recorder<E: EventType>(path: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::from_event_type::<E>()).config(path);
    builder.compact(true).shifts(15, 21).prefault(false).keep(true).build().unwrap()
}

fn text_field(index: u8, text: &str) -> Vec<u8> {
    let bytes = (text.len() as u16).to_le_bytes();
    [&[index, ValueType::Str as u8], &bytes[..], text.as_bytes()].concat()
}

/// Records a request to a service whose names are long.
fn record_spans(recorder: &Recorder) {
    let record = |event: PerfEvent, ext: PerfExt, payload: &[u8]| {
        recorder.record(event.code(), ext.to_words(), payload);
    };
    let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
    let name = "tokio-runtime-worker";
    let started = ThreadView::encode(START, 4242, name);
    record(PerfEvent::ThreadStarted, ext, &started);
    let sites = [
        (1, CallSiteKind::Span, "request", "http_service::routes", vec!["method", "path"]),
        (2, CallSiteKind::Span, "query", "http_service::database", vec!["statement"]),
        (3, CallSiteKind::Event, "event src/database.rs:77", "http_service::database", vec!["message", "rows"]),
    ];
    for (call_site_id, kind, name, target, fields) in sites {
        let level = if kind == CallSiteKind::Event { CallSiteLevel::Warn } else { CallSiteLevel::Info };
        let view = CallSiteView {
            kind,
            level,
            name: name.into(),
            target: target.into(),
            module: target.into(),
            file: "src/lib.rs".into(),
            line: 7,
            field_names: fields.into_iter().map(Into::into).collect(),
        };
        record(PerfEvent::CallSite, PerfExt { call_site_id, ..ext }, &view.encode());
    }
    let request = PerfExt { span_id: 16_777_271, call_site_id: 1, ..ext };
    let query = PerfExt { span_id: 16_777_272, related: request.span_id, call_site_id: 2, ..ext };
    let fields = [text_field(0, "GET"), text_field(1, "/orders/17")].concat();
    record(PerfEvent::SpanNew, PerfExt { field_count: 2, ..request }, &fields);
    record(PerfEvent::SpanEnter, request, &[]);
    let statement = text_field(0, "SELECT id, price_cents FROM orders WHERE customer = ?");
    record(PerfEvent::SpanNew, PerfExt { field_count: 1, ..query }, &statement);
    record(PerfEvent::SpanEnter, PerfExt { related: 0, ..query }, &[]);
    let said = PerfExt { span_id: query.span_id, call_site_id: 3, field_count: 2, ..ext };
    let rows = [&[1, ValueType::U64 as u8, 8, 0][..], &17_u64.to_le_bytes()].concat();
    record(PerfEvent::Event, said, &[text_field(0, "slow query"), rows].concat());
    for (event, ext) in [(PerfEvent::SpanExit, query), (PerfEvent::SpanClose, query), (PerfEvent::SpanExit, request)] {
        record(event, PerfExt { related: 0, ..ext }, &[]);
    }
}

fn record_business(recorder: &Recorder) {
    BlockEnd::default().with_bytes(|payload| recorder.record(ExecEvent::BlockEnd.code(), [150_007, 0, 0, 0], payload));
    recorder.record(ExecEvent::TxnHeaderEnd.code(), [150_007, 43, 0, 16_777_272], &[]);
    recorder.record(ExecEvent::TxnPerfEvmExit.code(), [150_007, 43, 0, 0], &[]);
}

fn open(paths: &[PathBuf]) -> Rings {
    let interrupt = Interrupt::listen().unwrap();
    Rings::open(paths, &Expect::default(), None, (false, 0), &interrupt, &mut Silence::new(true)).unwrap().unwrap()
}

fn next(rings: &mut Rings) -> Option<NextItem<'_>> {
    rings.next(Duration::from_millis(50), |_, _| true)
}

fn with_descriptor<'e>(entry: &RecordingEntry<'e>, event: &'e Descriptor) -> RecordingEntry<'e> {
    let content = match &entry.content {
        EntryContent::Perf { recorder, record, catalog } => {
            let mut record = *record;
            record.descriptor = event;
            EntryContent::Perf { recorder: *recorder, record, catalog }
        }
        EntryContent::Typed { payload, .. } => EntryContent::Typed { descriptor: event, payload: *payload },
        EntryContent::Gap(gap) => EntryContent::Gap(*gap),
    };
    RecordingEntry { content, ..*entry }
}

/// Returns the output of a watch for these rings, one after the other, in a terminal of this width. The events get new
/// times, each 1,234 ns after the one before.
fn shown(paths: &[PathBuf], ask_width: fn() -> Option<usize>, full: bool) -> String {
    let mut rings = open(paths);
    let out = Out { to: Vec::new(), is_plain: true };
    let mut lines = Lines::new(out, ask_width, &rings, full, TimeFormat::new(true));
    let mut nanos = START;
    while !rings.have_ended() {
        let Some(NextItem::Entry(ring, entry)) = next(&mut rings) else { continue };
        nanos += 1_234;
        let event = Descriptor { record_epoch_nanos: nanos, ..*entry.event().unwrap().0 };
        // As in `watch` without `--full`.
        if full || !ring.is_perf || !crate::text::perf::is_description(event.event_type) {
            lines.event(ring, &with_descriptor(&entry, &event)).unwrap();
        }
    }
    let shown = String::from_utf8(lines.out.to).unwrap();
    if let Some(width) = ask_width() {
        assert!(shown.lines().all(|line| line.chars().count() <= width), "{shown}");
    }
    // The rings are in a temporary directory with another name in each run. So its name is replaced.
    let directory = paths[0].parent().unwrap().to_str().unwrap();
    shown.replace(directory, "DIR")
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn perf(&self) -> PathBuf {
        let path = self.0.path().join("shop");
        record_spans(&recorder::<PerfEvent>(&path));
        path
    }

    fn exec(&self) -> PathBuf {
        let path = self.0.path().join("shop-exec");
        record_business(&recorder::<ExecEvent>(&path));
        path
    }
}

#[test]
fn spans_leave_room_for_what_they_say_in_80_columns() {
    let place = Place::new();
    insta::assert_snapshot!(shown(&[place.perf()], || Some(80), false));
}

#[test]
fn spans_have_more_columns_in_120() {
    let place = Place::new();
    insta::assert_snapshot!(shown(&[place.perf()], || Some(120), false));
}

#[test]
fn all_columns_are_there_where_there_is_no_terminal() {
    let place = Place::new();
    insta::assert_snapshot!(shown(&[place.perf()], || None, true));
}

#[test]
fn execution_events_leave_room_for_their_payload_in_80_columns() {
    let place = Place::new();
    insta::assert_snapshot!(shown(&[place.exec()], || Some(80), false));
}

#[test]
fn a_program_s_spans_and_business_events_stand_in_line_in_120_columns() {
    let place = Place::new();
    insta::assert_snapshot!(shown(&[place.perf(), place.exec()], || Some(120), false));
}

#[test]
fn times_of_threads_are_in_words_and_shown_only_if_somebody_asks_for_them() {
    let place = Place::new();
    let path = place.0.path().join("shop");
    let recorder = recorder::<PerfEvent>(&path);
    let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
    recorder.record(PerfEvent::ThreadStarted.code(), ext.to_words(), &ThreadView::encode(START, 4242, "worker"));
    recorder.record(PerfEvent::ThreadSwitched.code(), ext.to_words(), &[]);
    let times = ThreadTime {
        // The THREAD_TIME is the third event.
        since_epoch_nanos: START + 3 * 1_234 - 5_500_000,
        cpu_nanos: 1_200_000,
        queue_nanos: 300_000,
        slices: 3,
        merged: 1,
        voluntary_switches: 2,
        involuntary_switches: 1,
        minor_faults: 3,
        major_faults: 0,
    };
    for flags in [0, flags::NO_QUEUE] {
        let ext = PerfExt { flags, ..ext };
        times.with_bytes(|bytes| recorder.record(PerfEvent::ThreadTime.code(), ext.to_words(), bytes));
    }
    drop(recorder);
    insta::assert_snapshot!(shown(std::slice::from_ref(&path), || None, true), @r#"
    ── 2023-11-14 UTC ──
    TIME                      SEQNO  EVENT              THREAD                 SPAN    BYTES  PAYLOAD
    22:13:20.123458023            1  THREAD_STARTED     worker                    –       22  started=id=1 tid=4242 name="worker"
    22:13:20.123459257            2  THREAD_SWITCHED    worker                    –        0  left its processor
    22:13:20.123460491            3  THREAD_TIME        worker                    –       48  ran 1.20 ms of 5.50 ms, queue 300 µs, 2 voluntary switches, 1 involuntary switch, 3 minor faults
    22:13:20.123461725            4  THREAD_TIME        worker                    –       48  ran 1.20 ms of 5.50 ms, 2 voluntary switches, 1 involuntary switch, 3 minor faults
    "#);
    assert_eq!(shown(std::slice::from_ref(&path), || None, false), "");

    let mut rings = open(&[path]);
    let mut records = Vec::new();
    while !rings.have_ended() {
        let Some(NextItem::Entry(_, entry)) = next(&mut rings) else { continue };
        records.extend(entry.decoded());
    }
    let json = |at: usize| serde_json::to_value(perf::value(&records[at], true)).unwrap();
    assert_eq!(json(1).as_object().unwrap().len(), 2, "only thread and span: {}", json(1));
    let keys = ["cpu_ns", "queue_ns", "slices", "merged", "voluntary_switches", "minor_faults"];
    assert_eq!(keys.map(|key| json(2)[key].as_u64()), [1_200_000, 300_000, 3, 1, 2, 3].map(Some));
    assert!(json(3)["queue_ns"].is_null() && json(3)["since_ns"] == times.since_epoch_nanos, "{}", json(3));
}

#[test]
fn a_window_that_changes_its_size_gets_other_columns_and_a_heading_that_says_so() {
    thread_local! {
        static WIDTH: Cell<usize> = const { Cell::new(120) };
    }
    let place = Place::new();
    let mut rings = open(&[place.perf()]);
    let out = Out { to: Vec::new(), is_plain: true };
    let mut lines = Lines::new(out, || Some(WIDTH.get()), &rings, false, TimeFormat::new(true));
    for width in [120, 119, 80] {
        WIDTH.set(width);
        lines.flush(&rings).unwrap();
        let Some(NextItem::Entry(ring, entry)) = next(&mut rings) else { panic!() };
        let event = Descriptor { record_epoch_nanos: START, ..*entry.event().unwrap().0 };
        lines.event(ring, &with_descriptor(&entry, &event)).unwrap();
    }
    let shown = String::from_utf8(lines.out.to).unwrap();
    let headings: Vec<&str> = shown.lines().filter(|line| line.starts_with("TIME")).collect();
    // A slightly narrower terminal has the same columns.
    insta::assert_snapshot!(headings.join("\n"), @r"
    TIME             SEQNO  EVENT         THREAD                 SPAN  PAYLOAD
    TIME             EVENT         THREAD       PAYLOAD
    ");
    assert_eq!(shown.lines().count(), 1 + 2 + 3, "{shown}");
}

#[test]
fn the_narrowest_terminals_are_no_problem() {
    let place = Place::new();
    let paths = [place.perf(), place.exec()];
    for ask_width in [|| Some(1), || Some(2), || Some(17), || Some(40)] as [fn() -> Option<usize>; 4] {
        assert!(shown(&paths, ask_width, false).lines().count() > 8);
    }
}

#[test]
fn a_gap_without_seqnos_is_no_problem() {
    let place = Place::new();
    let rings = open(&[place.perf()]);
    let out = Out { to: Vec::new(), is_plain: true };
    let mut lines = Lines::new(out, || None, &rings, false, TimeFormat::new(true));
    for cause in [GapCause::Overwritten, GapCause::NeverCommitted, GapCause::NeverOpened, GapCause::Damaged] {
        lines.gap(rings.iter().next().unwrap(), Gap { first_seqno: 7, count: 0, cause }).unwrap();
    }
    assert_eq!(String::from_utf8(lines.out.to).unwrap().lines().count(), 4);
}
