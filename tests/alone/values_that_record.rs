//! Values that record while they are formatted: the events of a thread stay in the order of time.

use crate::fixtures::*;
use std::fmt;
use tracing_subscriber::layer::SubscriberExt as _;

/// A value whose formatting records something itself.
struct Records;

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        info!("inside");
        f.write_str("value")
    }
}

fn install() {
    let builder = PerfRecorder::builder().anonymous().shards(1).shifts(16, 22).tables_shift(16).prefault(false);
    PERF.install(builder.build().unwrap()).unwrap();
}

fn check() {
    for _ in 0..50 {
        info!(value = ?Records, "outside");
        info!("{:?}", Records);
        info!(plain = ?1, "plain");
        eventring::log::info!("{:?}", Records);
        drop(eventring::scope!("scope", value = ?Records));
    }
    let shards = PERF.installed().unwrap().open_readers().unwrap();
    let records = reference::records(&mut PerfReader::from_shards(shards));
    // What describes call sites and threads has no thread, and no order.
    let is_description = |record: &PerfRecord| matches!(record.content, PerfContent::CallSite(_));
    let times: Vec<u64> = records.iter().filter(|it| !is_description(it)).map(|record| record.epoch_nanos).collect();
    assert!(times.is_sorted(), "an event is earlier than the one before");
    let text = |record: &PerfRecord| match &record.content {
        PerfContent::Event { fields, .. } => fields.get("message").map(ToString::to_string),
        PerfContent::SpanNew { .. } => Some("scope".to_owned()),
        _ => None,
    };
    let texts: Vec<String> = records.iter().filter_map(text).collect();
    let expected = ["inside", "outside", "inside", "value", "plain", "inside", "value", "inside", "scope"];
    assert_eq!(texts.len(), 50 * expected.len());
    assert!(texts.chunks(expected.len()).all(|chunk| chunk == expected), "{texts:?}");
}

#[test]
fn beside_a_subscriber() {
    alone!();
    install();
    tracing::subscriber::set_global_default(RecorderSubscriber::global()).unwrap();
    check();
}

#[test]
fn beside_a_layer() {
    alone!();
    install();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(RecorderLayer::global())).unwrap();
    check();
}
