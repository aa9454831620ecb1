//! Fields of the program with the same names as the other arguments of a slice.

use super::chrome_events;
use crate::View;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt};
use eventring_capture::fixtures::{CaptureFixture, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns the arguments of a span that ends, of one that does not, of one without an exit, and of a log record. All
/// have these fields.
fn drawn(fields: &[&str], view: View) -> Vec<Map<String, Value>> {
    let mut made = CaptureFixture::new();
    made.thread(900, 1, "main");
    made.call_site(900, 1, CallSiteKind::Span, "request", fields);
    made.call_site(900, 2, CallSiteKind::Event, "said", fields);
    let values: Vec<Vec<u8>> = (0..fields.len() as u8).map(|index| text(index, "of the program")).collect();
    for (id, parent) in [(1, 0), (2, 1), (3, 1)] {
        made.span_new(1000 * id, 1, (id, parent), 1, &values);
        if id > 1 {
            let ext = PerfExt { span_id: id, related: 1, thread_id: 1, ..PerfExt::default() };
            made.perf(PerfEvent::SpanFollowsFrom, 1000 * id + 10, ext, &[]);
        }
        made.span(PerfEvent::SpanEnter, 1000 * id + 20, 1, id, 1);
        let (call_site_id, thread_id, field_count) = (2, 1, values.len() as u16);
        let ext = PerfExt { span_id: id, call_site_id, thread_id, field_count, ..PerfExt::default() };
        made.perf(PerfEvent::Event, 1000 * id + 30, ext, &values.concat());
    }
    made.span(PerfEvent::SpanClose, 4000, 1, 3, 1);
    made.span(PerfEvent::SpanExit, 5000, 1, 1, 1);
    made.span(PerfEvent::SpanClose, 5010, 1, 1, 1);
    let events = chrome_events(&made.open(), view);
    let has_args = events.iter().filter(|event| ["X", "B", "i"].contains(&event["ph"].as_str().unwrap()));
    has_args.map(|event| event["args"].as_object().unwrap().clone()).collect()
}

#[test]
fn a_field_with_the_name_of_a_fact_is_shown_beside_it_and_changes_nothing() {
    for view in [View::Thread, View::Span] {
        let plain = drawn(&[], view);
        let names: BTreeSet<&str> = plain.iter().flat_map(Map::keys).map(String::as_str).chain(["cut"]).collect();
        for expected in ["data", "source", "level", "target", "span_id", "parent_span_id", "follows_from", "open"] {
            assert!(names.contains(expected), "{names:?}");
        }
        let names: Vec<&str> = names.into_iter().collect();
        let both = drawn(&names, view);
        assert_eq!(both.len(), plain.len());
        for (plain, both) in plain.iter().zip(&both) {
            // `data` has the other arguments once more.
            let facts = plain.iter().filter(|(name, _)| *name != "data");
            facts.for_each(|(name, fact)| assert_eq!(&both[name], fact, "{name}"));
            assert!(both["data"].is_object());
            for name in names.iter().filter(|name| plain.contains_key(**name)) {
                assert_eq!(both[&format!("{name}#field")], "of the program", "{both:?}");
            }
            let of_program = both.values().filter(|value| *value == "of the program").count();
            assert_eq!(of_program, names.len(), "{both:?}");
        }
    }
}
