//! Values whose formatting uses `tracing` itself.

mod reference;

use eventring::schema::perf::{FieldValue, NotFormatted};
use eventring::tracing::{PerfContent, PerfReader, PerfRecorder, RecorderLayer, RecorderSubscriber};
use std::fmt;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;

/// Logs, and makes a span, when it is formatted.
struct Chatty;

impl fmt::Debug for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _span = tracing::info_span!("formatting").entered();
        tracing::info!(depth = 1u64, "inside");
        f.write_str("chatty")
    }
}

/// Logs itself when it is formatted: without end, if nobody stops it.
struct Endless;

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::info!(me = ?self, "again");
        f.write_str("endless")
    }
}

fn both() -> [(Dispatch, PerfRecorder); 2] {
    let recorder =
        || PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).prefault(false).build().unwrap();
    let (first, second) = (recorder(), recorder());
    [
        (Dispatch::new(RecorderSubscriber::new(first.clone())), first),
        (Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(second.clone()))), second),
    ]
}

#[test]
fn what_is_logged_while_a_value_is_formatted_is_recorded_inside_the_current_span_and_the_value_is_whole() {
    for (dispatch, recorder) in both() {
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info_span!("outer").in_scope(|| tracing::info!(value = ?Chatty, "outer event"));
        });
        let records = reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()));
        let tree = eventring::tracing::SpanTree::from_records(&records);
        let outer = tree.iter().find(|span| span.name() == "outer").unwrap();
        let inner = tree.iter().find(|span| span.name() == "formatting").unwrap();
        let events: Vec<_> = records
            .iter()
            .filter_map(|record| match &record.content {
                PerfContent::Event { span, fields, .. } => {
                    Some((span.unwrap(), fields.get("message").unwrap().to_string()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(inner.parent, Some(outer.id));
        assert_eq!(events, [(inner.id, "inside".into()), (outer.id, "outer event".into())]);
        let value = records.iter().find_map(|record| match &record.content {
            PerfContent::Event { fields, .. } => fields.get("value").cloned(),
            _ => None,
        });
        assert_eq!(value, Some(FieldValue::Debug("chatty".into())));
    }
}

#[test]
fn a_value_that_logs_itself_ends_after_a_few_rounds_and_the_deepest_one_says_that_it_was_not_formatted() {
    for (dispatch, recorder) in both() {
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::info!(me = ?Endless, "first");
            // The guard has been taken back.
            tracing::info!(value = ?Some(1), "after");
        });
        let records = reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()));
        let events: Vec<_> = records
            .iter()
            .filter_map(|record| match &record.content {
                PerfContent::Event { fields, .. } => Some(fields),
                _ => None,
            })
            .collect();
        assert!((2..=5).contains(&events.len()), "{}", events.len());
        let nested = FieldValue::NotFormatted(NotFormatted::Nested);
        assert_eq!(events[0].get("me"), Some(&nested));
        assert_eq!(events[events.len() - 2].get("me"), Some(&FieldValue::Debug("endless".into())));
        assert_eq!(events[events.len() - 1].get("value"), Some(&FieldValue::Debug("Some(1)".into())));
    }
}
