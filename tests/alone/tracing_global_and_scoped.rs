//! A global subscriber and a scoped one in the same program. The test has a test program of its own, because it sets
//! a global subscriber.

use crate::fixtures::*;
use eventring::tracing::SetupErrorKind;
use eventring::tracing::{try_init, try_init_with};

fn messages(recorder: &PerfRecorder) -> Vec<String> {
    let records = records(recorder);
    let reported = records.iter().filter_map(|record| match &record.content {
        PerfContent::Event { fields, .. } => Some(fields.get("message").unwrap().to_string()),
        _ => None,
    });
    reported.collect()
}

#[test]
fn a_scoped_subscriber_takes_the_place_of_the_global_one_as_long_as_it_lasts() {
    alone!();
    let recording = try_init_with(small(), TargetFilter::all()).unwrap();
    let recorder = recording.recorder().unwrap();
    let scoped = small().build().unwrap();
    tracing::info!("global before");
    tracing::subscriber::with_default(RecorderSubscriber::new(scoped.clone()), || {
        tracing::info!("scoped");
        std::thread::spawn(|| tracing::info!("global, from another thread")).join().unwrap();
    });
    tracing::info!("global after");
    assert_eq!(messages(recorder), ["global before", "global, from another thread", "global after"]);
    assert_eq!(messages(&scoped), ["scoped"]);

    // A second global subscriber is refused. The first one goes on recording.
    let error = try_init("another").unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::SubscriberSet);
    let refused = PERF.install(small().build().unwrap()).unwrap_err();
    insta::assert_snapshot!(refused, @"install a recorder in the global recorder `perf`: found an installed recorder, expected none; use its `set_enabled` to switch that one");
    assert_eq!(format!("{refused:?}"), refused.to_string());
    assert!(refused.into_recorder().is_enabled());
    recording.set_enabled(false);
    tracing::info!("off");
    // `PERF`, the recorder and the recording have the same switch.
    recorder.set_enabled(true);
    assert!(PERF.active().is_some());
    PERF.set_enabled(false);
    assert!(!recorder.is_enabled());
    recording.set_enabled(true);
    recording.set_filter(TargetFilter::parse("error").unwrap());
    tracing::info!("filtered");
    tracing::error!("on");
    assert_eq!(messages(recorder).last().unwrap(), "on");
    assert_eq!(messages(recorder).len(), 4);
}
