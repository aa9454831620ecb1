//! Captures with everything that exports show: fields and payloads of all types, hostile names, losses.

use crate::fixtures::*;
use eventring::PayloadField;
use eventring::schema::encode_array;
use eventring::schema::exec::{Address, U256};
use eventring::tracing::{Counter, Marker};
use tracing::field;

#[derive(PayloadField, Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
enum Kind {
    BelowZero = -300,
    Second = 0,
}

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Part {
    is_live: bool,
    kind: Kind,
    count: u8,
}

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Everything {
    byte: u8,
    large: u128,
    short: i16,
    numbers: [u32; 3],
    address: Address,
    double: f64,
    huge: U256,
    part: Part,
    parts: [Part; 2],
    negative: i128,
    single: f32,
    name: [Utf8; 5],
    long: i64,
    grid: [[u8; 2]; 3],
    matrix: [[u16; 2]; 2],
    kinds: [Kind; 2],
    #[event(redact)]
    key: [u8; 7],
    count: u32,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 300, name = "SINK", ext(0 = order: seqno, 1 = line: index))]
#[repr(u16)]
enum Sink {
    #[event(payload = Everything, trailing(integers: i32 * count, live_parts: Part * part.count, note: Utf8))]
    Everything = 2,
    Nothing = 3,
    #[event(trailing(doubles: f64))]
    OnlyArray = 4,
    #[event(payload = Part)]
    Part = 5,
}

static QUEUE_LENGTH: Counter = Counter::new("queue length");
static RESTARTED: Marker = Marker::new("restarted");

fn everything(number: u8) -> Everything {
    let part = Part { is_live: number.is_multiple_of(2), kind: Kind::BelowZero, count: number % 3 };
    Everything {
        byte: number,
        large: u128::MAX - u128::from(number),
        short: -300,
        numbers: [1, 2, u32::MAX],
        address: Address([number; 20]),
        double: if number == 3 { f64::NAN } else { 0.1 + f64::from(number) },
        huge: U256::from_limbs([1, 2, 3, number.into()]),
        part,
        parts: [part, Part { kind: Kind::Second, ..part }],
        negative: i128::MIN,
        single: -0.25,
        name: Utf8::padded("ab\"c"),
        long: i64::MIN,
        grid: [[number, 1], [2, 3], [4, 5]],
        matrix: [[1, 2], [3, number.into()]],
        kinds: [Kind::Second, Kind::BelowZero],
        key: [1; 7],
        count: number.into(),
    }
}

/// Records typed events. Some of their payloads do not fit their types.
fn record_typed(sink: &Recorder) {
    for number in 0..8_u8 {
        let fixed = everything(number);
        let integers = encode_array(&vec![-7_i32; usize::from(number)]);
        let live = encode_array(&vec![fixed.part; usize::from(fixed.part.count)]);
        let note = "a\0b \u{1}\n\t\\ \"é\" \u{2400}".as_bytes();
        let payload = [&fixed.with_bytes(<[u8]>::to_vec)[..], &integers, &live, note].concat();
        sink.record(Sink::Everything.code(), [number.into(), u64::from(number) % 2, u64::MAX, 0], &payload);
        let part = fixed.part.with_bytes(<[u8]>::to_vec);
        sink.record(Sink::Part.code(), [0; 4], &part);
        // A kind without a name, and a truth value that does not exist.
        sink.record(Sink::Part.code(), [0; 4], &[&part[..2], &[7, 0], &part[4..]].concat());
        sink.record(Sink::Part.code(), [0; 4], &[&[9], &part[1..]].concat());
        sink.record(Sink::Nothing.code(), [0; 4], b"");
        sink.record(Sink::Nothing.code(), [0; 4], b"too long");
        sink.record(Sink::OnlyArray.code(), [0; 4], &encode_array(&[0.5_f64, f64::INFINITY, 1e300]));
        sink.record(77, [0; 4], &[number; 40]);
    }
}

/// Records spans, log records, samples and marks, on two threads.
fn record_spans(recorder: &PerfRecorder, dispatch: &Dispatch) {
    let record = || {
        let request = info_span!(
            "request",
            int = i64::MIN,
            uint = u64::MAX,
            float = 0.25,
            nan = f64::NAN,
            yes = true,
            wide = i128::MIN,
            text = "a\0text \"quoted\" \\ \n",
            http.method = "GET",
            http_method = "second",
            debug = ?Some("é"),
            r#struct = 1,
            _first = 2,
            first = 3,
            late = field::Empty
        );
        let long = "x".repeat(70_000);
        request.in_scope(|| {
            info!(number = 1, "said {}", "it");
            warn!(long = long.as_str(), "a long value");
            QUEUE_LENGTH.sample_to(recorder, 12);
            QUEUE_LENGTH.sample_to(recorder, -0.5);
            RESTARTED.mark_to(recorder, "a\0mark");
            request.record("late", "now");
        });
        let after = info_span!("after");
        after.follows_from(&request);
        after.in_scope(|| {});
    };
    dispatcher::with_default(dispatch, record);
    thread::scope(|scope| {
        let on_worker = || dispatcher::with_default(dispatch, record);
        let worker = thread::Builder::new().name("wörker \"1\"".into());
        worker.spawn_scoped(scope, on_worker).unwrap();
    });
}

fn sink_recorder(path: &str) -> Recorder {
    let sink = typed_in::<Sink>(path).compact(true).shifts(15, 21);
    sink.prefault(false).keep(true).build().unwrap()
}

fn path_in(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// Captures spans and typed events of two rings, `shop` and `sink`. Returns the path of the capture.
pub fn capture_everything(dir: &Path) -> String {
    let [ring, sink_ring, capture] = ["shop", "sink", "t.evc"].map(|name| path_in(dir, name));
    let recorder = spans_in(&ring).keep(true).build().unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let sink = sink_recorder(&sink_ring);
    record_spans(&recorder, &dispatch);
    record_typed(&sink);
    run!("capture", &ring, &sink_ring, "-o", &capture, "--now", "--json").json();
    capture
}

/// Makes a ring `sink` that has lost events and payloads. Returns its path.
pub fn ring_with_losses(dir: &Path) -> String {
    let path = path_in(dir, "sink");
    let sink = sink_recorder(&path);
    // The ring has 2^15 slots, and 2 MiB for payloads: the first events are lost, and payloads of others.
    (0..1_u64 << 15).for_each(|number| _ = sink.record(Sink::OnlyArray.code(), [0; 4], &[number as u8; 96]));
    (0..700).for_each(|_| _ = sink.record(Sink::Nothing.code(), [0; 4], b""));
    path
}
