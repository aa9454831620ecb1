//! Filters of the subscriber and of layers decide which spans and events are recorded. A filter may change while the
//! program runs.

use crate::fixtures::*;
use tracing::{Level, Subscriber as _};
use tracing_core::LevelFilter;
use tracing_subscriber::prelude::*;

fn names(recorder: &PerfRecorder) -> Vec<String> {
    let records = records(recorder);
    records
        .iter()
        .filter_map(|record| match &record.content {
            PerfContent::SpanNew { call_site, .. } => Some(call_site.name.clone()),
            PerfContent::Event { fields, .. } => fields.get("message").map(ToString::to_string),
            _ => None,
        })
        .collect()
}

#[test]
fn the_level_is_given_to_the_macros_as_a_hint() {
    for (filter, level) in
        [("info", LevelFilter::INFO), ("off", LevelFilter::OFF), ("warn,shop=trace", LevelFilter::TRACE)]
    {
        let subscriber = RecorderSubscriber::new(recorder()).with_filter(TargetFilter::parse(filter).unwrap());
        assert_eq!(subscriber.max_level_hint(), Some(level), "{filter}");
    }
    let subscriber = RecorderSubscriber::new(recorder()).with_max_level(Level::WARN);
    assert_eq!(subscriber.max_level_hint(), Some(LevelFilter::WARN));
}

#[test]
fn filters_and_the_switch_change_while_the_program_runs() {
    let recorder = recorder();
    let subscriber = RecorderSubscriber::new(recorder.clone()).with_max_level(Level::INFO);
    let filter = subscriber.filter_handle();
    let program = || {
        tracing::debug!("debug");
        tracing::info_span!("span").in_scope(|| tracing::info!("info"));
    };
    tracing::subscriber::with_default(subscriber, || {
        program();
        filter.set(TargetFilter::all());
        program();
        recorder.set_enabled(false);
        assert!(!tracing::enabled!(Level::ERROR));
        program();
        recorder.set_enabled(true);
        filter.set(TargetFilter::parse("warn").unwrap());
        program();
        filter.set(TargetFilter::parse("debug").unwrap());
        program();
    });
    assert_eq!(names(&recorder), ["span", "info", "debug", "span", "info", "debug", "span", "info"]);
}

#[test]
fn spans_created_while_the_subscriber_is_off_stay_unrecorded_and_their_children_become_those_of_recorded_ones() {
    let recorder = recorder();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        let known = tracing::info_span!("known").entered();
        recorder.set_enabled(false);
        let unknown = tracing::info_span!("unknown");
        recorder.set_enabled(true);
        unknown.in_scope(|| {
            tracing::info_span!("child").in_scope(|| {});
            let _also = unknown.clone();
        });
        drop((unknown, known));
    });
    let records = records(&recorder);
    let tree = eventring::tracing::SpanTree::from_records(&records);
    let names: Vec<_> =
        tree.iter().map(|span| (span.name(), span.parent.and_then(|id| tree.get(id)).map(|p| p.name()))).collect();
    assert_eq!(names, [("known".to_owned(), None), ("child".to_owned(), Some("known".to_owned()))]);
    assert!(tree.iter().all(|span| !span.is_open()));
}

#[test]
fn a_layer_takes_in_spans_that_were_created_before_it_recorded() {
    let recorder = recorder();
    let subscriber = tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone()));
    tracing::subscriber::with_default(subscriber, || {
        recorder.set_enabled(false);
        let grandparent = tracing::info_span!("grandparent", n = 1u64).entered();
        let parent = tracing::info_span!("parent").entered();
        let closed = tracing::info_span!("closed");
        drop(closed);
        recorder.set_enabled(true);
        tracing::info_span!("child").in_scope(|| tracing::info!("in child"));
        tracing::info!("in parent");
        drop(parent);
        drop(grandparent);
    });
    let records = records(&recorder);
    let tree = eventring::tracing::SpanTree::from_records(&records);
    let parent = |name: &str| {
        let span = tree.iter().find(|span| span.name() == name).unwrap();
        (span.parent.and_then(|id| tree.get(id)).map(|parent| parent.name()), span.flags)
    };
    let adopted = eventring::schema::perf::flags::ADOPTED;
    assert_eq!(parent("child"), (Some("parent".to_owned()), 0));
    assert_eq!(parent("parent"), (Some("grandparent".to_owned()), adopted));
    assert_eq!(parent("grandparent"), (None, adopted));
    assert_eq!(tree.len(), 3);
    assert!(tree.iter().all(|span| !span.is_open()));
}

#[test]
fn a_layer_filters_nothing_by_itself_and_has_its_own_parents_under_a_filter_of_its_own() {
    let (all, some) = (recorder(), recorder());
    let only_shop = tracing_subscriber::filter::filter_fn(|metadata| metadata.target() == "shop");
    let subscriber = tracing_subscriber::registry()
        .with(RecorderLayer::new(some.clone()).with_filter(only_shop))
        .with(RecorderLayer::new(all.clone()));
    let dispatch = Dispatch::new(subscriber);
    tracing::dispatcher::with_default(&dispatch, || {
        let outer = tracing::info_span!(target: "shop", "outer").entered();
        let hidden = tracing::trace_span!("hidden").entered();
        tracing::info!(target: "shop", "in hidden");
        tracing::info_span!(target: "shop", "inner").in_scope(|| tracing::info!(target: "shop", "in inner"));
        tracing::trace!("hidden event");
        drop(hidden);
        drop(outer);
        // The filter hides the span `hidden`, but not its parent `explicit`. So the recorder takes `explicit` as the
        // parent of `below`, as a `Registry` would.
        let parent = tracing::info_span!(target: "shop", "explicit");
        tracing::info_span!(parent: &parent, "hidden").in_scope(|| {
            tracing::info_span!(target: "shop", "below").in_scope(|| {});
        });
    });
    assert_eq!(
        names(&all),
        ["outer", "hidden", "in hidden", "inner", "in inner", "hidden event", "explicit", "hidden", "below"]
    );
    assert_eq!(names(&some), ["outer", "in hidden", "inner", "in inner", "explicit", "below"]);
    let records = records(&some);
    let tree = eventring::tracing::SpanTree::from_records(&records);
    let id = |name: &str| tree.iter().find(|span| span.name() == name).unwrap().id;
    assert_eq!(tree.get(id("inner")).unwrap().parent, Some(id("outer")));
    assert_eq!(tree.get(id("below")).unwrap().parent, Some(id("explicit")));
    let in_hidden = records.iter().find_map(|record| match record.content {
        PerfContent::Event { span, .. } => Some(span),
        _ => None,
    });
    assert_eq!(in_hidden, Some(Some(id("outer"))));
}
