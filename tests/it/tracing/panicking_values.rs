//! A value panics while it is formatted. The program gets the panic. The event is recorded with its fields up to the
//! one that panicked.

use crate::fixtures::*;
use eventring::schema::perf::{Cut, FieldValue};
use eventring::tracing::{Fields, PerfRecorderBuilder};
use eventring_stress::switched_off::both_kinds;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing::field::Empty;

struct Panicking;

impl fmt::Debug for Panicking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half")?;
        panic!("in Debug");
    }
}

/// Runs `programs`, each of which panics while a value is formatted. Returns what the subscriber has recorded, and
/// what the layer has recorded.
fn recorded(builder: fn() -> PerfRecorderBuilder, programs: &[&dyn Fn()]) -> [Vec<PerfRecord>; 2] {
    both_kinds(|_| builder().build().unwrap()).map(|(recorder, dispatch)| {
        tracing::dispatcher::with_default(&dispatch, || {
            for program in programs {
                reference::ask_the_time_often();
                assert!(catch_unwind(AssertUnwindSafe(program)).is_err(), "the panic is the program's");
            }
            tracing::info!(value = ?Some(1), "after");
        });
        records(&recorder)
    })
}

#[track_caller]
fn check(fields: &Fields, before: &str) {
    let found: Vec<_> = fields.values.iter().map(|field| (&*field.name, field.value.clone(), field.cut)).collect();
    let half = FieldValue::Debug("half".into());
    assert_eq!(found, [("before", FieldValue::Str(before.into()), None), ("value", half, Some(Cut::Panicked))]);
    assert!(!fields.is_complete());
}

#[test]
fn an_event_with_a_value_that_panics_is_recorded_with_the_fields_up_to_it() {
    let program: &dyn Fn() = &|| tracing::info!(before = "b", value = ?Panicking, after = 1u64);
    // The program runs twice, because a thread's first event takes another path through the code than its later events.
    for records in recorded(small, &[program, program]) {
        let events = reference::log_fields(&records);
        assert_eq!(events.len(), 3);
        check(events[0], "b");
        check(events[1], "b");
        // Later events are recorded as usual.
        assert_eq!(events[2].get("value"), Some(&FieldValue::Debug("Some(1)".into())));
        assert!(events[2].is_complete());
    }
}

#[test]
fn so_it_is_in_a_large_event_and_where_fields_are_hidden() {
    let long = "x".repeat(3000);
    let program: &dyn Fn() = &|| tracing::info!(before = long, value = ?Panicking);
    for builder in [small, || small().redact_fields(["password"])] {
        for records in recorded(builder, &[program, program]) {
            let events = reference::log_fields(&records);
            check(events[0], &long);
            check(events[1], &long);
        }
    }
}

#[test]
fn a_span_whose_value_panics_is_closed_and_its_id_is_not_returned() {
    let program: &dyn Fn() = &|| drop(tracing::info_span!("broken", before = "b", value = ?Panicking));
    let late: &dyn Fn() = &|| {
        let span = tracing::info_span!("late", before = "l", value = Empty);
        span.record("value", tracing::field::debug(Panicking));
    };
    // The panics use up no cells of spans.
    let programs = [program, late].repeat(100);
    for records in recorded(small, &programs) {
        let tree = SpanTree::from_records(&records);
        let spans: Vec<_> = tree.iter().collect();
        assert_eq!(spans.len(), 200);
        for span in spans {
            assert!(!span.is_open() && !span.may_have_losses, "{span:?}");
            check(&span.fields, if span.name() == "late" { "l" } else { "b" });
        }
    }
}
