//! Scopes and log macros in stacks of layers: what other layers get, and which filter decides.

use crate::fixtures::*;
use eventring::tracing::{FilterHandle, Level, Span};
use eventring::{log, scope};
use proptest::prelude::*;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, debug_span};
use tracing_subscriber::filter::{DynFilterFn, EnvFilter, LevelFilter, Targets, dynamic_filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry, reload};

type AnyLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Counts events.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Counter {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes down the lines of the call sites of spans and events.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u32>>>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.lock().unwrap().extend(event.metadata().line());
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.lock().unwrap().extend(attributes.metadata().line());
    }
}

fn install() {
    PERF.install(recorder()).unwrap();
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
    let records = records(PERF.installed().unwrap());
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

/// Records outside of a query and in two queries.
fn queries() {
    for user in [7, 8] {
        log::debug!("outside");
        let _query = info_span!("query", user).entered();
        log::debug!("of {user}");
        drop(scope!(level: Level::DEBUG, "step"));
    }
}

fn one_in_a_query_and_one_outside(ours: AnyLayer) {
    install();
    with(vec![ours, Counter::default().boxed()]);
    queries();
}

#[test]
fn the_directive_of_a_layers_own_filter_lets_pass_what_is_in_its_span() {
    alone!();
    let filter = FilterHandle::new("info,[query{user=7}]=trace".parse().unwrap());
    one_in_a_query_and_one_outside(RecorderLayer::global().filtered(&filter).boxed());
    assert_eq!(recorded(), OF_USER_7);
}

#[test]
fn a_filter_of_others_around_the_layer_decides_about_macros_as_about_spans() {
    alone!();
    one_in_a_query_and_one_outside(RecorderLayer::global().with_filter(in_query()).boxed());
    assert_eq!(recorded(), OF_QUERIES);
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

/// Records with `tracing`, and with this crate's macros between if `macros` is true.
fn mixed(macros: bool) {
    for number in 0..3 {
        tracing::info!("one {number}");
        drop(macros.then(|| (scope!(level: Level::DEBUG, "debug scope"), scope!("scope"))));
        tracing::info!("two {number}");
        tracing::debug!("three {number}");
        if macros {
            log::debug!("debug {number}");
        }
        let _span = info_span!("outer", number).entered();
        tracing::debug!("four {number}");
        if macros {
            log::info!("info {number}");
        }
        let _inner = debug_span!("inner").entered();
        tracing::warn!("five {number}");
    }
}

/// Returns the layer with a filter, or a layer that filters the whole stack.
fn filtered(kind: usize, layer: impl Layer<Registry> + Send + Sync) -> AnyLayer {
    let here = module_path!();
    match kind {
        0 => layer.boxed(),
        1 => layer.with_filter(LevelFilter::INFO).boxed(),
        2 => layer.with_filter(LevelFilter::DEBUG).boxed(),
        3 => layer.with_filter(LevelFilter::OFF).boxed(),
        4 => layer.with_filter(format!("{here}=info").parse::<Targets>().unwrap()).boxed(),
        5 => layer.with_filter(EnvFilter::new(format!("{here}=info,{here}[outer]=trace"))).boxed(),
        6 => layer.with_filter(in_query()).boxed(),
        7 => layer.with_filter(dynamic_filter_fn(|metadata, _| *metadata.level() != Level::INFO)).boxed(),
        _ => layer.and_then(EnvFilter::new("info,[outer]=debug")).boxed(),
    }
}

/// Returns what the other layers get in a stack with a filter around each layer; the first is the recorder's.
fn lines_of_others(kinds: &[usize], is_first: bool, macros: bool) -> Vec<Vec<u32>> {
    let others: Vec<_> = kinds[1..].iter().map(|kind| (*kind, Lines::default())).collect();
    let mut layers: Vec<_> = others.iter().map(|(kind, lines)| filtered(*kind, lines.clone())).collect();
    layers.insert(if is_first { 0 } else { layers.len() }, filtered(kinds[0], RecorderLayer::global()));
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layers), || mixed(macros));
    others.into_iter().map(|(_, lines)| lines.0.lock().unwrap().clone()).collect()
}

#[test]
fn in_any_stack_of_filters_the_other_layers_get_the_same_with_and_without_macros() {
    alone!();
    install();
    proptest!(ProptestConfig::with_cases(200), |(kinds in prop::collection::vec(0..9usize, 1..5), is_first: bool)| {
        let [with, without] = [true, false].map(|macros| lines_of_others(&kinds, is_first, macros));
        prop_assert_eq!(with, without);
    });
}

/// Records the same with `tracing` and with this crate's macros, out of spans and in two spans.
fn in_pairs() {
    let pair = || {
        tracing::debug!("debug");
        log::debug!("debug");
        tracing::info!("info");
        log::info!("info");
        drop(debug_span!("debug scope"));
        drop(scope!(level: Level::DEBUG, "debug scope"));
        drop(info_span!("scope"));
        drop(scope!("scope"));
    };
    pair();
    info_span!("other").in_scope(pair);
    info_span!("outer").in_scope(pair);
    debug_span!("query").in_scope(pair);
}

/// Checks that what [`in_pairs`] has recorded is there twice.
fn assert_paired(names: &[String]) {
    let is_paired = |name: &&String| !["other", "outer", "query"].contains(&name.as_str());
    let paired: Vec<_> = names.iter().filter(is_paired).collect();
    assert!(paired.chunks(2).all(|pair| pair.len() == 2 && pair[0] == pair[1]), "{names:?}");
}

#[test]
fn in_any_stack_of_filters_a_macro_is_recorded_where_one_of_tracing_is() {
    alone!();
    install();
    let seen = Cell::new(0);
    proptest!(ProptestConfig::with_cases(100), |(kinds in prop::collection::vec(0..9usize, 1..4), is_first: bool)| {
        let mut layers: Vec<_> = kinds[1..].iter().map(|kind| filtered(*kind, Counter::default())).collect();
        layers.insert(if is_first { 0 } else { layers.len() }, filtered(kinds[0], RecorderLayer::global()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layers), in_pairs);
        let names = recorded().split_off(seen.get());
        seen.set(seen.get() + names.len());
        assert_paired(&names);
    });
}

#[test]
fn no_layer_loses_a_record_after_a_macro_that_is_off_where_the_filters_name_only_crates() {
    alone!();
    install();
    let lines = Lines::default();
    with(vec![filtered(5, RecorderLayer::global()), filtered(4, lines.clone())]);
    mixed(true);
    assert_eq!(lines.0.lock().unwrap().len(), 3 * 4);
    let count = |what| recorded().iter().filter(|name| name.rsplit('/').next().unwrap().starts_with(what)).count();
    let what = ["one", "two", "three", "outer", "four", "inner", "five", "scope", "debug", "info"];
    assert_eq!(what.map(count), [3, 3, 0, 3, 3, 3, 3, 3, 0, 3]);
}

/// Runs [`queries`], and returns what is in the ring.
fn in_two_queries(stack: &Dispatch) -> Vec<String> {
    install();
    tracing::dispatcher::with_default(stack, queries);
    recorded()
}

const OF_USER_7: [&str; 4] = ["query", "query/of 7", "query/step", "query"];
const OF_QUERIES: [&str; 6] = ["query", "query/of 7", "query/step", "query", "query/of 8", "query/step"];

fn other_recorder() -> RecorderLayer {
    RecorderLayer::new(recorder())
}

#[test]
fn a_filter_of_the_whole_stack_below_the_layer_decides_about_macros() {
    alone!();
    let filter = EnvFilter::new("info,[query{user=7}]=trace");
    let stack = tracing_subscriber::registry().with(filter).with(RecorderLayer::global());
    assert_eq!(in_two_queries(&stack.into()), OF_USER_7);
}

#[test]
fn a_filter_of_the_whole_stack_that_can_be_reloaded_decides_about_macros() {
    alone!();
    let (filter, handle) = reload::Layer::new(EnvFilter::new("off"));
    let stack = Dispatch::new(tracing_subscriber::registry().with(filter).with(RecorderLayer::global()));
    handle.reload(EnvFilter::new("info,[query]=debug")).unwrap();
    assert_eq!(in_two_queries(&stack), OF_QUERIES);
}

#[test]
fn the_filter_around_the_layer_decides_below_a_layer_with_another_recorder() {
    alone!();
    let ours = RecorderLayer::global().with_filter(in_query());
    assert_eq!(in_two_queries(&tracing_subscriber::registry().with(ours).with(other_recorder()).into()), OF_QUERIES);
}

#[test]
fn the_filter_around_the_layer_decides_above_a_layer_with_another_recorder() {
    alone!();
    let ours = RecorderLayer::global().with_filter(in_query());
    assert_eq!(in_two_queries(&tracing_subscriber::registry().with(other_recorder()).with(ours).into()), OF_QUERIES);
}

#[test]
fn the_filter_around_the_layer_decides_in_a_layer_that_can_be_reloaded() {
    alone!();
    let (ours, _handle) = reload::Layer::new(RecorderLayer::global().with_filter(in_query()));
    assert_eq!(in_two_queries(&tracing_subscriber::registry().with(ours).into()), OF_QUERIES);
}

#[test]
fn the_filter_around_a_layer_that_can_be_reloaded_decides() {
    alone!();
    let (ours, _handle) = reload::Layer::new(RecorderLayer::global());
    assert_eq!(in_two_queries(&tracing_subscriber::registry().with(ours.with_filter(in_query())).into()), OF_QUERIES);
}

#[test]
fn on_a_thread_without_the_stack_its_filter_decides_as_long_as_there_is_the_stack() {
    alone!();
    install();
    let log = || {
        log::debug!("debug");
        log::info!("info");
        drop(scope!("query"));
    };
    let ours = RecorderLayer::global().with_filter(in_query());
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(ours));
    log();
    std::thread::spawn(log).join().unwrap();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(Counter::default()), log);
    assert_eq!(recorded(), ["info", "query"].repeat(3));
    drop(guard);
    log();
    assert_eq!(recorded()[6..], ["debug", "info", "query"]);
}

/// Enters spans and scopes by turns.
fn nested() {
    let _outer = scope!("outer");
    let _span = info_span!("span").entered();
    let _scope = scope!("scope");
    tracing::info!("in tracing");
    log::info!("in log");
    let _inner = info_span!("inner").entered();
    let _innermost = scope!("innermost");
}

const NESTED: [&str; 7] =
    ["outer", "outer/span", "span/scope", "scope/in tracing", "scope/in log", "scope/inner", "inner/innermost"];

#[test]
fn spans_and_scopes_are_each_others_parents_after_a_reload_has_brought_the_layer() {
    alone!();
    install();
    let (layer, handle) = reload::Layer::new(None::<RecorderLayer>);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer)).unwrap();
    handle.reload(Some(RecorderLayer::global())).unwrap();
    nested();
    handle.reload(Some(RecorderLayer::global())).unwrap();
    nested();
    assert_eq!(recorded(), NESTED.repeat(2));
}

#[test]
fn spans_and_scopes_are_each_others_parents_in_a_second_stack_of_any_kind() {
    alone!();
    install();
    let stacks = || {
        [
            Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::global())),
            Dispatch::new(tracing_subscriber::registry().with(Some(RecorderLayer::global()))),
            Dispatch::new(tracing_subscriber::registry().with(vec![RecorderLayer::global()])),
            Dispatch::new(RecorderSubscriber::global()),
        ]
    };
    let (first, second) = (stacks(), stacks());
    for stack in first.iter().chain(&second).rev().chain(&first) {
        tracing::dispatcher::with_default(stack, nested);
    }
    assert_eq!(recorded(), NESTED.repeat(12));
}

#[test]
fn spans_and_scopes_are_each_others_parents_on_threads_with_stacks_of_their_own() {
    alone!();
    install();
    let stacks = [(); 2].map(|()| Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::global())));
    for stack in stacks.iter().chain(&stacks) {
        let stack = stack.clone();
        std::thread::spawn(move || tracing::dispatcher::with_default(&stack, nested)).join().unwrap();
    }
    assert_eq!(recorded(), NESTED.repeat(4));
}

#[test]
fn spans_of_a_layer_that_was_made_before_its_recorder_was_installed_are_parents_of_scopes() {
    alone!();
    let recorder = recorder();
    let stack = Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder.clone())));
    PERF.install(recorder).unwrap();
    tracing::dispatcher::with_default(&stack, nested);
    assert_eq!(recorded(), NESTED);
}

#[test]
fn each_of_several_stacks_decides_on_the_threads_that_use_it() {
    alone!();
    install();
    let own = |filter: &str| RecorderLayer::global().filtered(&FilterHandle::new(filter.parse().unwrap()));
    let subscriber = |filter: &str| RecorderSubscriber::global().with_filter(filter.parse().unwrap());
    let stacks = [
        Dispatch::new(tracing_subscriber::registry().with(own("info,[query]=trace"))),
        Dispatch::new(subscriber("warn,[outer]=debug")),
        Dispatch::new(tracing_subscriber::registry().with(EnvFilter::new("info")).with(RecorderLayer::global())),
        Dispatch::new(tracing_subscriber::registry().with(Some(own("debug")))),
        Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::global().with_filter(in_query()))),
        Dispatch::new(subscriber("off")),
    ];
    for stack in stacks.iter().chain(&stacks) {
        let seen = recorded().len();
        tracing::dispatcher::with_default(stack, in_pairs);
        assert_paired(&recorded().split_off(seen));
    }
}

#[test]
fn a_filter_of_the_whole_stack_decides_before_the_filter_of_the_layer() {
    alone!();
    install();
    let ours = RecorderLayer::global().filtered(&FilterHandle::new("debug".parse().unwrap()));
    let stack = tracing_subscriber::registry().with(LevelFilter::INFO).with(ours);
    tracing::subscriber::with_default(stack, in_pairs);
    assert_paired(&recorded());
}

/// Formats events, and drops the texts.
struct Formats;

impl<S: Subscriber> Layer<S> for Formats {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        assert!(!format!("{event:?}").is_empty());
    }
}

#[test]
fn a_macro_in_the_debug_code_of_a_value_asks_no_stack_if_the_layer_has_a_filter_of_its_own() {
    alone!();
    struct Logs;
    impl std::fmt::Debug for Logs {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            log::debug!("in Debug");
            f.write_str("a value")
        }
    }
    install();
    let counter = Counter::default();
    let ours = RecorderLayer::global().filtered(&FilterHandle::new("info,[query]=trace".parse().unwrap()));
    let layers = vec![Formats.boxed(), ours.boxed(), counter.clone().with_filter(LevelFilter::WARN).boxed()];
    let stack = Dispatch::new(tracing_subscriber::registry().with(layers));
    let both = || {
        // `tracing` asks nobody about a call site that is first used while it calls a scoped subscriber.
        assert_eq!(format!("{Logs:?}"), "a value");
        tracing::info!(value = ?Logs);
        info_span!("query").in_scope(|| tracing::info!(value = ?Logs));
    };
    tracing::dispatcher::with_default(&stack, both);
    tracing::dispatcher::set_global_default(stack).unwrap();
    both();
    assert_eq!(counter.0.load(Ordering::Relaxed), 0);
}
