//! The live engine sees every closed span, log record and typed event with its fields, and its memory is bounded.

use eventring::reader::{Reader, RingSet};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::perf::FieldValue;
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring::{EventPayload, EventType};
use eventring_live::{Live, LiveOptions, LiveProgress, Observation, SeriesKind};
use std::time::Duration;
use tracing::{info_span, subscriber::with_default};

#[derive(EventPayload, Debug)]
struct Order {
    order_id: u64,
    code: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", ext(0 = basket))]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    OrderRejected = 2,
}

fn perf() -> PerfRecorder {
    PerfRecorder::builder().anonymous().shifts(17, 23).shards(2).prefault(false).build().unwrap()
}

fn live(recorder: &PerfRecorder, options: &LiveOptions) -> Live {
    Live::new(RingSet::options().from_readers(recorder.open_readers().unwrap()), options)
}

/// Reads until the engine has seen everything that was recorded before the call.
fn read(live: &mut Live, mut see: impl FnMut(&Observation<'_>)) {
    while live.read(Duration::from_millis(60), |observation, _| see(observation)) == LiveProgress::Behind {}
}

#[test]
fn each_closed_span_log_record_typed_event_and_mark_is_seen_with_its_fields() {
    let recorder = perf();
    let typed =
        Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().shifts(16, 27).build().unwrap();
    let readers =
        recorder.open_readers().unwrap().into_iter().chain([Reader::options().open_fd(typed.as_fd()).unwrap()]);
    let mut live = Live::new(RingSet::options().from_readers(readers), &LiveOptions::new());
    with_default(RecorderSubscriber::new(recorder.clone()), || {
        let outer = info_span!(target: "shop", "request", user = "ada", rows = tracing::field::Empty).entered();
        tracing::error!(code = 7, "it failed");
        let span = outer.id().unwrap().into_u64();
        let mut payload = 5_u64.to_le_bytes().to_vec();
        payload.extend(7_u64.to_le_bytes());
        typed.record(2, [41, 0, 0, span], &payload);
        outer.record("rows", 3);
    });
    let mut seen = Vec::new();
    read(&mut live, |observation| match observation {
        Observation::SpanClosed(span) => {
            let user = span.fields().text("user").unwrap().into_owned();
            let rows = span.fields().get("rows").map(|field| field.to_value());
            assert_eq!((span.fields().get("nothing"), span.fields().iter().count()), (None, 2));
            assert!(span.wall_nanos() > 0 && span.self_nanos() == Some(span.wall_nanos()) && span.thread().is_some());
            seen.push(format!("closed {} {} {user} {rows:?}", span.target(), span.name()));
        }
        Observation::LogRecord(record) => {
            let code = record.fields().get("code").map(|field| field.to_value());
            let of_span = record.span_fields().and_then(|fields| fields.text("user")).unwrap_or("?".into());
            seen.push(format!("{:?} {} {code:?} in {of_span}", record.level(), record.message()));
        }
        Observation::TypedEvent(event) => {
            let decoded = event.decode().unwrap();
            let (code, basket) = (decoded.get("code").cloned(), event.word("basket"));
            let span = event.span().map(|span| span.name());
            seen.push(format!("{} {code:?} {basket:?} in {span:?}", event.name()));
        }
        _ => {}
    });
    let expected = [
        "Error it failed Some(I64(7)) in ada",
        "ORDER_REJECTED Some(Uint(7)) Some(41) in Some(\"request\")",
        "closed shop request ada Some(I64(3))",
    ];
    assert_eq!(seen, expected);
    let state = live.state();
    let count = |kind, name: &str| state.series_of(kind, name, None).map(|series| series.window(1).count());
    assert_eq!(count(SeriesKind::Spans, "request"), Some(1));
    assert_eq!(count(SeriesKind::LogRecords, "ERROR"), Some(1));
    assert_eq!(count(SeriesKind::Events, "ORDER_REJECTED"), Some(1));
    assert_eq!((state.open_spans().count(), state.lost(), state.not_tracked()), (0, 0, 0));
}

#[test]
fn spans_without_room_are_counted_until_they_close_and_the_others_are_right() {
    let recorder = perf();
    let mut live = live(&recorder, &LiveOptions::new().open_spans_max(100));
    with_default(RecorderSubscriber::new(recorder.clone()), || {
        let mut open: Vec<tracing::Span> = (0..1000).map(|n| info_span!("task", n)).collect();
        read(&mut live, |_| ());
        let state = live.state();
        assert_eq!((state.open_spans().count(), state.not_tracked()), (100, 900));
        open.iter().for_each(|span| span.in_scope(|| tracing::info!("in it")));
        read(&mut live, |_| ());
        assert_eq!((live.state().open_spans().count(), live.state().not_tracked()), (100, 900));
        // The oldest spans were kept. They close first, and there is room again.
        open.drain(..500);
        let mut closed = 0;
        read(&mut live, |observation| closed += u64::from(matches!(observation, Observation::SpanClosed(_))));
        assert_eq!((closed, live.state().open_spans().count(), live.state().not_tracked()), (100, 0, 500));
        open.clear();
        let _new = info_span!("new");
        read(&mut live, |_| ());
        assert_eq!((live.state().open_spans().count(), live.state().not_tracked()), (1, 0));
    });
}

#[test]
fn a_field_that_is_recorded_again_and_again_has_its_last_value_and_the_others_stay() {
    let recorder = perf();
    let mut live = live(&recorder, &LiveOptions::new());
    with_default(RecorderSubscriber::new(recorder.clone()), || {
        let span = info_span!("copy", file = "a.txt", bytes = 0);
        for n in 1..=20_000_u64 {
            span.record("bytes", n);
        }
        read(&mut live, |_| ());
        let open = live.state().open_spans().to_vec();
        let [copy] = &open[..] else { panic!("{open:?}") };
        let known = copy.fields();
        let fields: Vec<(&str, FieldValue)> =
            known.known().iter().map(|(name, field)| (name, field.to_value())).collect();
        let expected = [("file", FieldValue::Str("a.txt".into())), ("bytes", FieldValue::U64(20_000))];
        assert_eq!(fields, expected);
    });
}

#[test]
fn each_span_grows_old_once() {
    let recorder = perf();
    let mut live = live(&recorder, &LiveOptions::new());
    let mut grown: Vec<String> = Vec::new();
    with_default(RecorderSubscriber::new(recorder.clone()), || {
        let spans: Vec<tracing::Span> = (0..20)
            .map(|n| {
                std::thread::sleep(Duration::from_millis(5));
                info_span!("waiting", n)
            })
            .collect();
        let young = info_span!("young");
        let (mut before, begin) = (0, std::time::Instant::now());
        while grown.len() < 20 && begin.elapsed() < Duration::from_secs(30) {
            live.read(Duration::from_millis(20), |observation, state| {
                if let Observation::Tick = observation {
                    state.each_grown_older(150_000_000, before, |span| {
                        assert!(span.age_nanos() >= 150_000_000);
                        grown.push(span.fields().known().get("n").map_or("?".into(), |n| n.to_value().to_string()));
                    });
                    before = state.now_epoch_nanos();
                }
            });
        }
        drop((spans, young));
    });
    grown.retain(|n| n != "?");
    assert_eq!(grown, (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn each_thread_that_has_not_ended_is_there_with_the_innermost_span_that_it_is_in() {
    // A shard that is made later would not be found: the rings have no names.
    let recorder = PerfRecorder::builder().anonymous().shifts(17, 23).shards(1).prefault(false).build().unwrap();
    let mut live = live(&recorder, &LiveOptions::new());
    let dispatch = tracing::Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let (begun, ends) = (std::sync::Barrier::new(3), std::sync::Barrier::new(3));
    /// Returns the name of each thread, whether all of it is certain, its span, and the names of the parents.
    fn threads(live: &Live) -> Vec<(String, bool, Option<String>, String)> {
        let of = |thread: &eventring_live::LiveThread<'_>| {
            let path = thread.span().map(|span| span.ancestor_names().collect::<Vec<_>>().join(" < "));
            let span = thread.span().map(|span| span.name().into_owned());
            let is_sure = thread.is_certain() && thread.is_seen() && thread.nanos_in_span().is_some() == span.is_some();
            (thread.thread().name.clone().unwrap_or_default(), is_sure, span, path.unwrap_or_default())
        };
        live.state().threads().iter().map(of).filter(|(name, ..)| name.starts_with("its-")).collect()
    }
    std::thread::scope(|scope| {
        let start = |name: &str, work: &'static (dyn Fn(&dyn Fn()) + Sync)| {
            let (dispatch, begun, ends) = (&dispatch, &begun, &ends);
            let work = move || {
                tracing::dispatcher::with_default(dispatch, || {
                    work(&|| {
                        begun.wait();
                        ends.wait();
                    });
                });
            };
            std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, work).unwrap()
        };
        let inside = start("its-inside", &|wait| {
            let task = info_span!("task", n = 1);
            let _other = info_span!("other").entered();
            // A parent is not always the span that the thread was in before.
            let _step = info_span!(parent: &task, "step").entered();
            info_span!("done").in_scope(|| ());
            wait();
        });
        let outside = start("its-outside", &|wait| {
            info_span!("done").in_scope(|| ());
            wait();
        });
        begun.wait();
        read(&mut live, |_| ());
        let mut found = threads(&live);
        found.sort();
        ends.wait();
        inside.join().unwrap();
        outside.join().unwrap();
        let inside_it = ("its-inside".to_owned(), true, Some("step".to_owned()), "task".to_owned());
        assert_eq!(found, [inside_it, ("its-outside".to_owned(), true, None, String::new())]);
        read(&mut live, |_| ());
        // The recorder's table still names the threads, so they may be there as threads of which no record was seen.
        let seen =
            live.state().threads().iter().filter(|it| it.is_seen()).map(|it| format!("{it:?}")).collect::<Vec<_>>();
        assert_eq!(seen, [""; 0]);
    });
}

#[test]
fn a_thread_of_which_events_were_lost_is_not_certainly_where_it_seems_to_be() {
    // A THREAD_TIME would say that the thread is in its span.
    let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).shards(1).prefault(false).thread_time(0.0);
    let recorder = recorder.build().unwrap();
    with_default(RecorderSubscriber::new(recorder.clone()), || {
        let _lost = info_span!("lost").entered();
        let fill = || (0..40_000).for_each(|_| info_span!(parent: None, "request").in_scope(|| ()));
        fill();
        let mut live = live(&recorder, &LiveOptions::new());
        // Returns whether the thread is certainly in its span, and the span.
        let look = |live: &mut Live| {
            read(live, |_| ());
            let state = live.state();
            let [thread] = &state.threads()[..] else { panic!("one thread: {:?}", state.threads()) };
            (thread.is_certain(), thread.span().map(|span| span.name().into_owned()))
        };
        // The beginning of the span that the thread is in was overwritten.
        assert_eq!(look(&mut live), (false, None));
        let _seen = info_span!("seen").entered();
        assert_eq!(look(&mut live), (true, Some("seen".to_owned())));
        // The thread may have left the span in an event that the engine has lost.
        fill();
        assert_eq!(look(&mut live), (false, Some("seen".to_owned())));
        // A thread that begins after the loss is certainly in no span.
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let (begun, ends) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tracing::dispatcher::with_default(&dispatch, || tracing::info!("here"));
                begun.wait();
                ends.wait();
            });
            begun.wait();
            read(&mut live, |_| ());
            let found: Vec<(bool, bool)> =
                live.state().threads().iter().map(|thread| (thread.is_certain(), thread.span().is_some())).collect();
            ends.wait();
            assert_eq!(found, [(false, true), (true, false)]);
        });
    });
}
