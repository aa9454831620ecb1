//! In the thread view, each typed event and each log record lies in a slice of the span that it names. This also
//! holds if the span was entered or exited in the same tick of the clock.

use crate::consumers;
use crate::fixtures::*;
use crate::shop::{Order, Shop};

const THREADS: u64 = 2;
const SPANS_EACH: u64 = 600;
/// The number of typed events and log records for each order.
const EVENTS_EACH: u64 = 4;

/// Records spans, with events directly after a span's begin and directly before its end.
fn record_spans(spans: &Path, orders: &Path) {
    let perf = spans_in(spans).shifts(17, 24).tables_shift(16).shards(1);
    let subscriber = RecorderSubscriber::new(perf.keep(true).build().unwrap());
    let dispatch = Dispatch::new(subscriber);
    let ring = typed_in::<Shop>(orders).shifts(16, 27).keep(true).build().unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (dispatch, ring) = (&dispatch, &ring);
            scope.spawn(move || {
                dispatcher::with_default(dispatch, || {
                    for number in 0..SPANS_EACH {
                        let id = thread * SPANS_EACH + number;
                        info_span!("order", id).in_scope(|| {
                            record!(ring => Shop::OrderPlaced, &Order { id });
                            info_span!("payment").in_scope(|| {
                                record!(ring => Shop::OrderPlaced, &Order { id });
                                info!("paid");
                            });
                            record!(ring => Shop::DayEnded);
                        });
                    }
                });
            });
        }
    });
}

/// Rounds all times in a ring file down to multiples of `nanos`, as if the clock had ticks of this length. The ring
/// must have no writer.
fn with_ticks(ring: &Path, nanos: u64) {
    let mut bytes = fs::read(ring).unwrap();
    let capacity = Reader::open(ring).unwrap().info().geometry.descriptor_capacity() as usize;
    for descriptor in bytes[2 << 20..][..capacity * 64].as_chunks_mut::<64>().0 {
        let time = u64::from_le_bytes(descriptor[16..24].try_into().unwrap());
        descriptor[16..24].copy_from_slice(&(time - time % nanos).to_le_bytes());
    }
    fs::write(ring, bytes).unwrap();
}

/// The begin, end and track of the slices of each span.
type Slices = HashMap<u64, Vec<(u64, u64, Value)>>;

/// Counts the instants that lie in a slice of their span as a viewer shows it: on the slice's track, at its begin or
/// later, and before its end.
fn inside(slices: &Slices, instants: &[(u64, u64, Value)]) -> usize {
    let lies_in = |(span, time, track): &&(u64, u64, Value)| {
        let of_span = slices.get(span).map_or(&[][..], Vec::as_slice);
        of_span.iter().any(|(start, end, on)| on == track && (*start..*end).contains(time))
    };
    instants.iter().filter(lies_in).count()
}

fn chrome(file: &Path) -> (Slices, Vec<(u64, u64, Value)>) {
    let trace: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let nanos = |micros: &Value| (micros.as_f64().unwrap() * 1000.0).round() as u64;
    let (mut slices, mut instants) = (Slices::new(), Vec::new());
    for event in trace["traceEvents"].list() {
        let Some(span) = event["args"]["span_id"].as_u64() else { continue };
        let (start, track) = (nanos(&event["ts"]), event["tid"].clone());
        match event["ph"].as_str() {
            Some("X") => slices.entry(span).or_default().push((start, start + nanos(&event["dur"]), track)),
            Some("i") => instants.push((span, start, track)),
            other => panic!("{other:?}"),
        }
    }
    (slices, instants)
}

fn perfetto(trace: &Value) -> (Slices, Vec<(u64, u64, Value)>) {
    let mut slices = Slices::new();
    // What threads did is on tracks of their own.
    for slice in trace["slices"].list().iter().filter(|slice| !slice["args"]["span_id"].is_null()) {
        let (span, start) = (number(&slice["args"]["span_id"]), number(&slice["start"]));
        slices.entry(span).or_default().push((start, start + number(&slice["dur"]), slice["track"].clone()));
    }
    let instants = trace["instants"].list().iter();
    let named = |instant: &Value| {
        let span = instant["args"]["span_id"].as_u64()?;
        Some((span, number(&instant["time"]), instant["track"].clone()))
    };
    (slices, instants.filter_map(named).collect())
}

#[test]
fn each_typed_event_and_log_record_lies_in_a_slice_of_the_span_that_it_names() {
    let (_directory, [spans, orders, trace]) = places(["shop", "shop-orders", "trace"]);
    record_spans(&spans, &orders);
    let expected = (THREADS * SPANS_EACH * EVENTS_EACH) as usize;
    // Each case has an order of the two rings, and a length of the clock's ticks in nanoseconds. With long ticks,
    // many spans begin and end at the same time.
    let in_order: [&PathBuf; 2] = [&spans, &orders];
    let cases = [(in_order, 1), (in_order, 250), ([&orders, &spans], 250), (in_order, 1000), ([&orders, &spans], 4000)];
    for ([first, second], ticks) in cases {
        for ring in [&spans, &orders] {
            with_ticks(ring, ticks);
        }
        for format in ["chrome", "perfetto"] {
            run!("export", first, second, "--format", format, "-o", &trace, "--force").ends(0);
            let (slices, instants) = match format {
                "chrome" => chrome(&trace),
                _ => match consumers::read("perfetto_slices.py", &trace) {
                    Some(trace) => {
                        for instant in trace["instants"].list() {
                            let around = instant["inside"].list();
                            assert!(around.contains(&instant["args"]["span_id"]), "{instant}");
                        }
                        perfetto(&trace)
                    }
                    None => continue,
                },
            };
            assert_eq!(instants.len(), expected, "{format}");
            assert_eq!(inside(&slices, &instants), expected, "{format}, ticks of {ticks} ns");
        }
    }
}

#[test]
fn an_event_that_lies_in_no_slice_of_its_span_is_not_counted_as_inside() {
    let slices = Slices::from([(7, vec![(10, 20, Value::from(1))])]);
    let instants = [(7, 10, 1), (7, 19, 1), (7, 20, 1), (7, 9, 1), (7, 12, 2), (8, 12, 1)];
    let instants = instants.map(|(span, time, track)| (span, time, Value::from(track)));
    assert_eq!(inside(&slices, &instants), 2);
}
