//! Values whose formatting uses `tracing` itself.
//!
//! While any thread of the process has a scoped subscriber, `tracing` hides events that are made inside a subscriber.
//! So each test runs alone in a process, with a global subscriber.

use crate::fixtures::*;
use eventring::schema::perf::{FieldValue, NotFormatted};
use std::fmt;
use tracing_subscriber::prelude::*;

/// A value that logs, and makes a span, when it is formatted.
struct Chatty;

impl fmt::Debug for Chatty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _span = tracing::info_span!("formatting").entered();
        tracing::info!(depth = 1u64, "inside");
        f.write_str("chatty")
    }
}

/// A value that logs itself when it is formatted. This would go on for ever if the recorder did not stop it.
struct Endless;

impl fmt::Debug for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::info!(me = ?self, "again");
        f.write_str("endless")
    }
}

fn dispatch_to(recorder: &PerfRecorder, kind: &str) -> Dispatch {
    match kind {
        "subscriber" => Dispatch::new(RecorderSubscriber::new(recorder.clone())),
        _ => Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()))),
    }
}

/// Runs `program` in two new processes: one has a global subscriber, the other a global layer. In each of them, calls
/// `check` with the records.
fn globally(test: &str, program: impl FnOnce(), check: impl FnOnce(&[PerfRecord])) {
    match part() {
        Some(kind) => {
            let recorder = recorder();
            tracing::dispatcher::set_global_default(dispatch_to(&recorder, &kind)).unwrap();
            program();
            check(&records(&recorder));
            std::fs::write(place(), "checked").unwrap();
        }
        None => {
            for kind in ["subscriber", "layer"] {
                let directory = tempfile::tempdir().unwrap();
                let place = directory.path().join("checked");
                let run = play(test, kind, &place).output().unwrap();
                assert!(run.status.success(), "{kind}: {}", String::from_utf8_lossy(&run.stderr));
                assert!(place.exists(), "{test} was not run");
            }
        }
    }
}

#[test]
fn what_is_logged_while_a_value_is_formatted_is_recorded_inside_the_current_span_and_the_value_is_whole() {
    let program = || tracing::info_span!("outer").in_scope(|| tracing::info!(value = ?Chatty, "outer event"));
    globally(test_name!(), program, |records| {
        let tree = eventring::tracing::SpanTree::from_records(records);
        let outer = tree.iter().find(|span| span.name() == "outer").unwrap();
        let inner = tree.iter().find(|span| span.name() == "formatting").unwrap();
        assert_eq!(inner.parent, Some(outer.id));
        let spans: Vec<_> = records
            .iter()
            .filter_map(|record| match &record.content {
                PerfContent::Event { span, fields, .. } => Some((span.unwrap(), fields.get("message")?.to_string())),
                _ => None,
            })
            .collect();
        assert_eq!(spans, [(inner.id, "inside".into()), (outer.id, "outer event".into())]);
        assert_eq!(reference::log_fields(records)[1].get("value"), Some(&FieldValue::Debug("chatty".into())));
    });
}

#[test]
fn what_is_logged_while_a_value_is_formatted_makes_no_time_fall() {
    let program = || {
        for plain in 0..100u64 {
            let _outer = tracing::info_span!("outer", plain, value = ?Chatty).entered();
            tracing::info!(plain, value = ?Chatty, "outer event");
            tracing::info!(plain);
        }
    };
    globally(test_name!(), program, |records| {
        // The program has one thread and one shard, so the records come in the order in which they were recorded.
        assert!(records.len() > 1000, "{}", records.len());
        let falls = records.windows(2).filter(|pair| pair[1].epoch_nanos < pair[0].epoch_nanos).count();
        assert_eq!(falls, 0);
    });
}

#[test]
fn spans_that_a_layer_adopts_make_no_time_fall() {
    let recorder = recorder();
    tracing::dispatcher::with_default(&dispatch_to(&recorder, "layer"), || {
        for plain in 0..100u64 {
            recorder.set_enabled(false);
            let _a = tracing::info_span!("a").entered();
            let _b = tracing::info_span!("b").entered();
            recorder.set_enabled(true);
            match plain % 2 {
                0 => tracing::info!(plain),
                _ => drop(tracing::info_span!("c", plain).entered()),
            }
        }
    });
    let records = records(&recorder);
    let adopted = records.iter().filter(|record| matches!(record.content, PerfContent::SpanNew { .. })).count();
    assert!(adopted >= 200, "{adopted}");
    assert_eq!(records.windows(2).filter(|pair| pair[1].epoch_nanos < pair[0].epoch_nanos).count(), 0);
}

#[test]
fn a_value_that_logs_itself_ends_after_a_few_rounds_and_the_deepest_one_says_that_it_was_not_formatted() {
    let program = || {
        tracing::info!(me = ?Endless, "first");
        // The thread no longer counts as formatting a value, so the recorder formats this value.
        tracing::info!(value = ?Some(1), "after");
    };
    globally(test_name!(), program, |records| {
        let events = reference::log_fields(records);
        let nested = FieldValue::NotFormatted(NotFormatted::Nested);
        let endless = FieldValue::Debug("endless".into());
        let me: Vec<_> = events.iter().map(|fields| fields.get("me")).collect();
        assert_eq!(me, [Some(&nested), Some(&endless), Some(&endless), Some(&endless), None]);
        // The message is formatted like any other value, and could log again without end. So the innermost
        // message is not formatted either.
        let messages = events.iter().map(|fields| fields.get("message").unwrap().to_string());
        assert_eq!(messages.collect::<Vec<_>>(), ["<not formatted>", "again", "again", "first", "after"]);
        assert_eq!(events[4].get("value"), Some(&FieldValue::Debug("Some(1)".into())));
    });
}

#[test]
fn under_a_scoped_subscriber_tracing_hides_what_is_logged_while_a_value_is_formatted_and_the_value_is_whole() {
    for kind in ["subscriber", "layer"] {
        let recorder = recorder();
        tracing::dispatcher::with_default(&dispatch_to(&recorder, kind), || {
            tracing::info!(value = ?Chatty, me = ?Endless, "outer event");
        });
        let records = records(&recorder);
        let events = reference::log_fields(&records);
        assert_eq!(events.len(), 1, "{kind}");
        assert_eq!(events[0].get("value"), Some(&FieldValue::Debug("chatty".into())));
        assert_eq!(events[0].get("me"), Some(&FieldValue::Debug("endless".into())));
    }
}
