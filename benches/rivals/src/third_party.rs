//! Recorders of other projects. Each is set up as its documentation describes. If a recorder writes to a file, the file
//! is temporary.
//!
//! The recorders work in different ways, which a comment at each recorder describes. Only the time of the thread that
//! makes spans is measured.

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

/// The number of operations in a batch. It is small, because some of these recorders keep all spans in memory, and
/// some write them to a file.
const OPERATIONS: u64 = 500;

/// Adds the recorders that write files. The returned guard flushes a file when it is dropped, so the caller keeps it
/// until all cases have been measured.
fn add_writers(cases: &mut Cases<'_>) -> impl Any + use<> {
    // This recorder formats the fields and sends them to another thread, which writes the file. The time of that thread
    // is not counted.
    let (chrome, flush) =
        tracing_chrome::ChromeLayerBuilder::new().writer(tempfile::tempfile().unwrap()).include_args(true).build();
    spans::add(cases, "tracing_chrome", OPERATIONS, Dispatch::new(Registry::default().with(chrome)));
    let perfetto = tracing_perfetto::PerfettoLayer::new(std::sync::Mutex::new(tempfile::tempfile().unwrap()))
        .with_debug_annotations(true);
    spans::add(cases, "tracing_perfetto", OPERATIONS, Dispatch::new(Registry::default().with(perfetto)));
    flush
}

/// Measures the recorders that write files. Then measures the recorders that do not use `tracing`.
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
    // A scope of puffin takes at most one text and no numbers. So this case has one field, while the same case of the
    // other recorders has two.
    cases.add_batch("span_puffin_2f", operations, |operations| {
        in_puffin(operations, || {
            puffin::profile_scope!("work", black_box("some text"));
        })
    });
    cases.add("puffin_new_frame", 1, || puffin::GlobalProfiler::lock().new_frame());

    // perfetto-recorder keeps all spans in memory until the program takes them out.
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

/// Times a batch of spans that have a root of their own. fastrace keeps at most 10,240 spans of one local parent and
/// drops the rest, so each batch needs its own root. The time for making the root and for giving the batch to the
/// collector is not counted.
fn in_fastrace(operations: u64, span: impl Fn()) -> Duration {
    assert!(operations < 10_240);
    let root = fastrace::Span::root("root", fastrace::collector::SpanContext::random());
    let _parent = root.set_local_parent();
    time(operations, |_| span())
}

/// Times a batch of scopes that are nested in another scope. At the end of each outermost scope, puffin gives its data
/// to the process's profiler. In a program the outermost scope is a frame or a whole function, so the time for this
/// step is not counted.
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
