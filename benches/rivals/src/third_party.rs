//! Third-party recorders, each set up as its documentation says. Recorders that write to a file write to a temporary
//! file.
//!
//! The recorders differ in kind; a comment at each says how. A row shows only the cost to the thread that makes spans.

use crate::Medians;
use crate::interleave::Cases;
use crate::spans::{self, time};
use fastrace::local::LocalSpan;
use std::any::Any;
use std::hint::black_box;
use std::time::Duration;
use tracing::Dispatch;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

/// The number of operations in a batch. It is small because some recorders keep everything in memory, and some write to
/// a file.
const OPERATIONS: u64 = 500;

/// Adds the recorder that has no other thread at work, to take turns with ours.
pub fn add_tracy(cases: &mut Cases<'_>) {
    let tracy = tracing_tracy::TracyLayer::default();
    spans::add(cases, "tracing_tracy", OPERATIONS, Dispatch::new(Registry::default().with(tracy)));
}

/// Adds the recorders that write files. The caller keeps the returned value until they have been measured.
fn add_writers(cases: &mut Cases<'_>) -> impl Any + use<> {
    // The fields are formatted and sent to a thread, which writes on the other processor. That thread is not counted.
    let (chrome, flush) =
        tracing_chrome::ChromeLayerBuilder::new().writer(tempfile::tempfile().unwrap()).include_args(true).build();
    spans::add(cases, "tracing_chrome", OPERATIONS, Dispatch::new(Registry::default().with(chrome)));
    let perfetto = tracing_perfetto::PerfettoLayer::new(std::sync::Mutex::new(tempfile::tempfile().unwrap()))
        .with_debug_annotations(true);
    spans::add(cases, "tracing_perfetto", OPERATIONS, Dispatch::new(Registry::default().with(perfetto)));
    flush
}

/// Measures the recorders that write files, and then those that do not use `tracing`.
pub fn measure(rounds: usize) -> Medians {
    let mut medians = {
        let mut cases = Cases::default();
        let _flushed_at_the_end = add_writers(&mut cases);
        cases.measure(rounds)
    };
    let mut cases = Cases::default();
    let operations = OPERATIONS;
    fastrace::set_reporter(Discard, fastrace::collector::Config::default());
    cases.add_batch("span_fastrace_0f", operations, |operations| {
        in_fastrace(operations, || drop(LocalSpan::enter_with_local_parent("work")))
    });
    // The properties of fastrace are texts: a number is formatted.
    cases.add_batch("span_fastrace_2f", operations, |operations| {
        in_fastrace(operations, || {
            let span = LocalSpan::enter_with_local_parent("work");
            drop(span.with_properties(|| [("id", black_box(1u64).to_string()), ("name", "some text".to_string())]));
        })
    });

    puffin::set_scopes_on(true);
    cases.add_batch("span_puffin_0f", operations, |operations| {
        in_puffin(operations, || {
            puffin::profile_scope!("work");
        })
    });
    // A scope of puffin has one text at most, and no numbers: this is one field, not two.
    cases.add_batch("span_puffin_2f", operations, |operations| {
        in_puffin(operations, || {
            puffin::profile_scope!("work", black_box("some text"));
        })
    });
    cases.add("puffin_new_frame", 1, || puffin::GlobalProfiler::lock().new_frame());

    // perfetto-recorder keeps everything in memory until it is taken.
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
    medians.extend(cases.measure(rounds));
    medians
}

/// Times a batch of spans below a root of their own, as a request has one: fastrace drops spans beyond 10,240 of one
/// local parent. Making the root and handing the batch to the collector is not counted.
fn in_fastrace(operations: u64, span: impl Fn()) -> Duration {
    assert!(operations < 10_240);
    let root = fastrace::Span::root("root", fastrace::collector::SpanContext::random());
    let _parent = root.set_local_parent();
    time(operations, |_| span())
}

/// Times a batch of scopes inside of another scope, as a frame or a function is one: after each outermost scope, puffin
/// hands its data to the process's profiler. The time of this step is not counted.
fn in_puffin(operations: u64, scope: impl Fn()) -> Duration {
    puffin::profile_scope!("outermost");
    time(operations, |_| scope())
}

/// A collector that takes the spans and does nothing with them.
struct Discard;

impl fastrace::collector::Reporter for Discard {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        drop(spans);
    }
}
