//! Third-party recorders, each as its documentation sets it up, writing to where it writes.

use crate::Medians;
use crate::interleave::Cases;
use crate::spans;
use std::any::Any;
use std::hint::black_box;
use tracing::Dispatch;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

/// Few operations a batch: some keep everything in memory, some write to a file.
const OPERATIONS: u64 = 500;

/// Adds those that are subscribers, to take turns with ours. What is given back is to be kept until they have been measured.
pub fn add_subscribers(cases: &mut Cases<'_>) -> impl Any {
    let (chrome, flush) = tracing_chrome::ChromeLayerBuilder::new().writer(std::io::sink()).include_args(true).build();
    spans::add(cases, "tracing_chrome", OPERATIONS, Dispatch::new(Registry::default().with(chrome)));
    let perfetto = tracing_perfetto::PerfettoLayer::new(std::sync::Mutex::new(tempfile::tempfile().unwrap()))
        .with_debug_annotations(true);
    spans::add(cases, "tracing_perfetto", OPERATIONS, Dispatch::new(Registry::default().with(perfetto)));
    let tracy = tracing_tracy::TracyLayer::default();
    spans::add(cases, "tracing_tracy", OPERATIONS, Dispatch::new(Registry::default().with(tracy)));
    flush
}

/// Those that know nothing of `tracing`.
pub fn measure(rounds: usize) -> Medians {
    let mut cases = Cases::default();
    let operations = OPERATIONS;
    fastrace::set_reporter(Discard, fastrace::collector::Config::default());
    let root = fastrace::Span::root("root", fastrace::collector::SpanContext::random());
    let _parent = root.set_local_parent();
    cases.add("span_fastrace_0f", operations, || drop(fastrace::local::LocalSpan::enter_with_local_parent("work")));
    cases.add("span_fastrace_2f", operations, || {
        let span = fastrace::local::LocalSpan::enter_with_local_parent("work");
        drop(span.with_properties(|| [("id", black_box(1u64).to_string()), ("name", "some text".to_string())]));
    });

    puffin::set_scopes_on(true);
    cases.add("span_puffin_0f", operations, || {
        puffin::profile_scope!("work");
    });
    cases.add("span_puffin_2f", operations, || {
        puffin::profile_scope!("work", "some text");
    });
    cases.add("puffin_new_frame", 1, || puffin::GlobalProfiler::lock().new_frame());

    perfetto_recorder::start().expect("enabled at build time");
    cases.add("span_perfetto_recorder_0f", operations, || {
        perfetto_recorder::scope!("work");
    });
    cases.add("span_perfetto_recorder_2f", operations, || {
        let id = black_box(1u64);
        perfetto_recorder::scope!("work", id = id, name = "some text");
    });
    cases.add("perfetto_recorder_take", 1, || {
        drop(perfetto_recorder::ThreadTraceData::take_current_thread());
    });
    cases.measure(rounds)
}

/// Takes the spans and does nothing with them.
struct Discard;

impl fastrace::collector::Reporter for Discard {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        drop(spans);
    }
}
