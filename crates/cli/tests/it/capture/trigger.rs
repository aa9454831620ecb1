//! A program says that now is the moment to look at its past: it calls `trigger`, or it panics. Both record a log
//! record named `TRIGGER` in the current span.

use crate::fixtures::*;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::{
    PERF, PerfContent, PerfReader, RecorderLayer, TargetFilter, trigger, trigger_on_panic, try_init_with,
};
use eventring_stress::reference;
use std::sync::atomic::AtomicU64;
use tracing_subscriber::prelude::*;

fn recorder(place: &Path) -> PerfRecorder {
    spans_in(place).shifts(15, 21).tables_shift(16).build().unwrap()
}

/// Returns the fields of each trigger, and the name of its span. Checks its call site.
fn triggers(reader: &mut PerfReader) -> Vec<(String, String)> {
    let records = reference::records(reader);
    let name_of = |id| {
        let name = records.iter().find_map(|record| match &record.content {
            PerfContent::SpanNew { span, call_site, .. } if *span == id => Some(call_site.name.clone()),
            _ => None,
        });
        name.unwrap_or_else(|| "unknown".into())
    };
    let triggers = records.iter().filter_map(|record| match &record.content {
        PerfContent::Event { span, call_site, fields } if call_site.name == "TRIGGER" => {
            assert_eq!((call_site.target.as_str(), call_site.level), ("eventring", CallSiteLevel::Error));
            let values: Vec<_> = fields.values.iter().map(|field| format!("{}={}", field.name, field.value)).collect();
            Some((values.join(" "), span.map_or_else(|| "none".into(), name_of)))
        }
        _ => None,
    });
    triggers.collect()
}

#[test]
fn a_trigger_is_recorded_in_its_span_whatever_the_filter_says() {
    let directory = directory();
    let dispatches: [fn(PerfRecorder) -> Dispatch; 2] = [
        |recorder| Dispatch::new(RecorderSubscriber::new(recorder)),
        |recorder| Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder))),
    ];
    for (index, dispatch) in dispatches.into_iter().enumerate() {
        let recorder = recorder(&directory.path().join(index.to_string()));
        let lines = dispatcher::with_default(&dispatch(recorder.clone()), || {
            let before = line!() + 1;
            recorder.trigger("before");
            let _request = tracing::error_span!("request").entered();
            let inside = line!() + 1;
            recorder.trigger("in a span");
            [before, inside]
        });
        let [before, inside] = lines.map(|line| format!("{}:{line}", file!()));
        recorder.set_enabled(false);
        recorder.trigger("while it is off");
        let expected = [
            (format!("reason=before location={before}"), "none".to_owned()),
            (format!("reason=in a span location={inside}"), "request".to_owned()),
        ];
        assert_eq!(triggers(&mut PerfReader::from_shards(recorder.open_readers().unwrap())), expected);
    }
    // Without a global recorder, the free function does nothing.
    assert!(PERF.installed().is_none());
    trigger("nobody records this");
    // A filter that lets nothing pass does not hold the trigger back.
    let recorder = recorder(&directory.path().join("filtered"));
    let subscriber = RecorderSubscriber::new(recorder.clone()).with_filter("off".parse().unwrap());
    subscriber::with_default(subscriber, || {
        error!("off");
        recorder.trigger("on");
    });
    let records = reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()));
    let events = records.iter().filter(|record| matches!(record.content, PerfContent::Event { .. }));
    assert_eq!(events.count(), 1);
}

/// Number of calls of the hook that was there before.
static CALLS: AtomicU64 = AtomicU64::new(0);

#[test]
fn panics_and_calls_are_triggers_that_a_watcher_sees() {
    let test = plays!({
        // The line of each trigger is the line of the call.
        std::panic::set_hook(Box::new(|_| {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }));
        trigger_on_panic();
        trigger_on_panic();
        let builder = spans_in(child::place()).shifts(15, 21).tables_shift(16);
        try_init_with(builder, TargetFilter::all()).unwrap();
        let worker = || {
            let _job = info_span!("job").entered();
            panic!("no more {}", "paper");
        };
        let joined = thread::Builder::new().name("printer".into()).spawn(worker).unwrap().join();
        assert!(joined.is_err());
        // A panic while a value is formatted comes from inside the recorder.
        let value = Panics;
        let caught = std::panic::catch_unwind(|| info!(value = ?value, "formatted"));
        assert!(caught.is_err());
        // The hook takes any payload.
        assert!(std::panic::catch_unwind(|| std::panic::panic_any(7)).is_err());
        // The destructor of a thread-local runs when the thread ends.
        let ending = thread::spawn(|| AT_END.with(|_| ()));
        let _ = ending.join();
        info_span!("call").in_scope(|| trigger("by hand"));
        say(CALLS.load(Ordering::Relaxed));
        wait_for_parent();
    });
    let (_directory, [place]) = places(["app"]);
    let mut child = Talk::start(test, "program", &place);
    // Each of the four panics has called the hook that was there before.
    assert_eq!(child.hear(), "4");
    let found = triggers(&mut PerfReader::open(&place).unwrap());
    let said: Vec<_> = found
        .iter()
        .map(|(fields, span)| (fields.split(" location=").next().unwrap().to_owned(), span.as_str()))
        .collect();
    let said: Vec<_> = said.iter().map(|(fields, span)| (fields.as_str(), *span)).collect();
    assert_eq!(
        said,
        [
            ("message=no more paper reason=panic", "job"),
            ("message=a value reason=panic", "none"),
            ("reason=panic", "none"),
            ("message=at the end reason=panic", "none"),
            ("reason=by hand", "call"),
        ]
    );
    assert!(found.iter().all(|(fields, _)| fields.contains(&format!("location={}:", file!()))), "{found:?}");
    // The sixth event is the log record whose value has panicked.
    let watch = |more: &[&str]| {
        let arguments = ["watch", argument(&place), "--from", "oldest", "--type", "EVENT", "--count", "6", "--quiet"];
        run!(&arguments, more)
    };
    let shown = watch(&[]).out;
    assert!(shown.contains("ERROR TRIGGER no more paper reason=\"panic\""), "{shown}");
    let lines = watch(&["--json"]).json_lines();
    let by_hand = lines.iter().find(|line| line["payload"]["fields"]["reason"] == "by hand").unwrap();
    assert_eq!((&by_hand["payload"]["name"], &by_hand["payload"]["level"]), (&"TRIGGER".into(), &"ERROR".into()));
    child.end();
}

struct Panics;

impl std::fmt::Debug for Panics {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("a value")
    }
}

struct AtEnd;

thread_local! {
    static AT_END: AtEnd = const { AtEnd };
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let _ = std::panic::catch_unwind(|| panic!("at the end"));
    }
}
