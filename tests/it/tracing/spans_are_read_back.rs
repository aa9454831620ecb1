//! `RecorderSubscriber` and `RecorderLayer` record the same events for the same spans and log records.

use eventring::tracing::{PerfRecorder, RecorderLayer, RecorderSubscriber};
use tracing::Dispatch;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

fn recorder() -> PerfRecorder {
    PerfRecorder::builder().anonymous().shifts(16, 22).shards(1).build().unwrap()
}

/// Uses spans and log records in several ways under `dispatch`.
fn work(dispatch: &Dispatch) {
    tracing::dispatcher::with_default(dispatch, || {
        let outer = tracing::info_span!("outer", id = 7u64, late = tracing::field::Empty);
        outer.in_scope(|| {
            let _inner = tracing::info_span!("inner", name = "text").entered();
            tracing::info!(answer = 42, "inside");
        });
        outer.record("late", true);
        let _again = outer.enter();
    });
}

/// Returns how many events of each type are in all shards together.
fn counts(recorder: &PerfRecorder) -> std::collections::BTreeMap<u16, usize> {
    use eventring::reader::{Next, Seek};
    let mut counts = std::collections::BTreeMap::new();
    for reader in recorder.open_readers().unwrap() {
        let mut cursor = reader.cursor();
        cursor.seek(Seek::Oldest);
        while let Next::Event(event) = cursor.next() {
            *counts.entry(event.event_type).or_default() += 1;
        }
    }
    counts
}

#[test]
fn subscriber_and_layer_record_the_same_kinds_of_events_for_the_same_work() {
    let by_subscriber = recorder();
    work(&Dispatch::new(RecorderSubscriber::new(by_subscriber.clone())));
    let by_layer = recorder();
    work(&Dispatch::new(Registry::default().with(RecorderLayer::new(by_layer.clone()))));
    let counted = counts(&by_subscriber);
    assert_eq!(counted, counts(&by_layer));
    // These are 12 events or more: two spans are made and closed, a span is entered and exited three times, and there
    // is one late field and one log record.
    assert!(counted.values().sum::<usize>() >= 12, "{counted:?}");
}
