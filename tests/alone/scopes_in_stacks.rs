//! Scopes and log macros in stacks of layers: what other layers get, and which filter decides.

use eventring::tracing::{
    FilterHandle, Level, PERF, PerfContent, PerfReader, PerfRecorder, RecorderLayer, Span, SpanTree,
};
use eventring::{log, scope};
use eventring_stress::{alone, reference};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{Event, Subscriber, info_span};
use tracing_subscriber::filter::{DynFilterFn, LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

type AnyLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Counts events.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Counter {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn install() {
    let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).prefault(false).build();
    PERF.install(recorder.unwrap()).unwrap();
}

fn with(layers: Vec<AnyLayer>) {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layers)).unwrap();
}

/// Information, and more within a span `query`: a filter that must be asked each time.
fn in_query<S: Subscriber + for<'l> LookupSpan<'l>>() -> DynFilterFn<S> {
    dynamic_filter_fn(|metadata, context: &Context<'_, S>| {
        let in_query = || context.lookup_current().is_some_and(|span| span.name() == "query");
        *metadata.level() <= Level::INFO || in_query()
    })
}

/// Returns the names of all spans with their parent's, and of all log records with their span's.
fn recorded() -> Vec<String> {
    let recorder = PERF.installed().unwrap();
    let records = reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()));
    let tree = SpanTree::from_records(&records);
    let below = |parent: Option<&Span>| parent.map_or_else(String::new, |parent| format!("{}/", parent.name()));
    let mut names = Vec::new();
    for record in &records {
        match &record.content {
            PerfContent::SpanNew { span, .. } => {
                let span = tree.get(*span).unwrap();
                names.push(below(span.parent.and_then(|parent| tree.get(parent))) + &span.name());
            }
            PerfContent::Event { span, fields, .. } => {
                let message = fields.get("message").unwrap();
                names.push(format!("{}{message}", below(span.and_then(|span| tree.get(span)))));
            }
            _ => {}
        }
    }
    names
}

fn other_layers_lose_nothing(ours: AnyLayer, is_first: bool) {
    let counter = Counter::default();
    let other = counter.clone().with_filter(LevelFilter::WARN).boxed();
    install();
    with(if is_first { vec![ours, other] } else { vec![other, ours] });
    for number in 0..100 {
        let _scope = scope!("parse", number);
        log::debug!("not wanted by all {number}");
        tracing::error!("important {number}");
        log::info!("not wanted by the other {number}");
        tracing::warn!("second {number}");
    }
    assert_eq!(counter.0.load(Ordering::Relaxed), 200);
    let names = recorded();
    for (what, count) in [("parse", 100), ("important", 100), ("second", 100), ("not wanted by the other", 100)] {
        assert_eq!(
            names.iter().filter(|name| name.rsplit('/').next().unwrap().starts_with(what)).count(),
            count,
            "{what}"
        );
    }
}

#[test]
fn another_layer_gets_every_record_beside_a_layer_without_a_filter() {
    alone!();
    other_layers_lose_nothing(RecorderLayer::global().boxed(), true);
}

#[test]
fn another_layer_gets_every_record_before_a_layer_with_a_filter_of_its_own() {
    alone!();
    let filter = FilterHandle::new("info,[query{user=7}]=trace".parse().unwrap());
    other_layers_lose_nothing(RecorderLayer::global().filtered(&filter).boxed(), false);
}

#[test]
fn another_layer_gets_every_record_beside_a_layer_with_a_filter_of_others() {
    alone!();
    other_layers_lose_nothing(RecorderLayer::global().with_filter(in_query()).boxed(), true);
}

fn one_in_a_query_and_one_outside(ours: AnyLayer) {
    install();
    with(vec![ours, Counter::default().boxed()]);
    for user in [7, 8] {
        log::debug!("outside");
        let _query = info_span!("query", user).entered();
        log::debug!("of {user}");
        drop(scope!(level: Level::DEBUG, "step"));
    }
}

#[test]
fn the_directive_of_a_layers_own_filter_lets_pass_what_is_in_its_span() {
    alone!();
    let filter = FilterHandle::new("info,[query{user=7}]=trace".parse().unwrap());
    one_in_a_query_and_one_outside(RecorderLayer::global().filtered(&filter).boxed());
    assert_eq!(recorded(), ["query", "query/of 7", "query/step", "query"]);
}

#[test]
fn a_filter_of_others_around_the_layer_decides_about_macros_as_about_spans() {
    alone!();
    one_in_a_query_and_one_outside(RecorderLayer::global().with_filter(in_query()).boxed());
    assert_eq!(recorded(), ["query", "query/of 7", "query/step", "query", "query/of 8", "query/step"]);
}

#[test]
fn a_layer_in_an_option_is_the_parent_of_scopes_and_its_filter_decides() {
    alone!();
    install();
    let filter = FilterHandle::new("info,[query{user=7}]=trace".parse().unwrap());
    let layer = Some(RecorderLayer::global().filtered(&filter).boxed());
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    let outer = scope!("outer");
    {
        let _span = info_span!("span").entered();
        let _inner = scope!("inner");
        tracing::info!("in tracing");
        log::info!("in log");
        log::debug!("not wanted");
    }
    drop(outer);
    let _query = info_span!("query", user = 8).entered();
    log::debug!("not wanted yet");
    // The span is open already, and is judged now.
    filter.set("off,[query{user=8}]=debug".parse().unwrap());
    log::debug!("wanted");
    log::trace!("not wanted");
    let names = ["outer", "outer/span", "span/inner", "inner/in tracing", "inner/in log", "query", "query/wanted"];
    assert_eq!(recorded(), names);
}
