//! Several subscribers at the same time: each thread has its own, one is used inside another, and layers are combined
//! with filters and a `fmt` layer.

use crate::fixtures::*;
use eventring::global::current_span_id;
use eventring_stress::switched_off;
use std::io;
use tracing::Level;
use tracing::dispatcher::with_default;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

/// Returns a line for each span, `name in parent`, and for each event, `message at span`. The lines are in the order
/// of time.
fn story(recorder: &PerfRecorder) -> Vec<String> {
    let records = records(recorder);
    let tree = SpanTree::from_records(&records);
    assert!(tree.iter().all(|span| !span.is_open() && !span.may_have_losses));
    let name = |id| tree.get(id).map_or_else(|| "a stranger".to_owned(), |span| span.name());
    let reported = records.iter().filter_map(|record| match &record.content {
        PerfContent::SpanNew { parent, call_site, .. } => {
            Some(format!("{} in {}", call_site.name, parent.map_or("nothing".into(), name)))
        }
        PerfContent::Event { span, fields, .. } => {
            Some(format!("{} at {}", fields.get("message").unwrap(), span.map_or("nothing".into(), name)))
        }
        _ => None,
    });
    reported.collect()
}

/// Makes two dispatches, each with a recorder of its own: one with a subscriber, one with a layer on a `Registry`.
fn both_kinds() -> [(PerfRecorder, Dispatch); 2] {
    switched_off::both_kinds(|_| recorder())
}

#[test]
fn threads_with_subscribers_of_their_own_record_to_their_own_recorders() {
    for (first, dispatch) in both_kinds() {
        for (second, other_dispatch) in both_kinds() {
            first.set_enabled(true);
            let before = story(&first).len();
            std::thread::scope(|scope| {
                for (dispatch, own) in [(&dispatch, true), (&other_dispatch, false)] {
                    scope.spawn(move || {
                        with_default(dispatch, || {
                            for _ in 0..500 {
                                let _outer = tracing::info_span!("outer").entered();
                                if own { tracing::info!("mine") } else { tracing::info!("yours") }
                            }
                        });
                    });
                }
            });
            let reported = story(&first).split_off(before);
            assert_eq!(reported, ["outer in nothing", "mine at outer"].repeat(500));
            assert_eq!(story(&second), ["outer in nothing", "yours at outer"].repeat(500));
        }
    }
}

#[test]
fn a_scoped_subscriber_inside_another_one_has_its_own_current_span() {
    for (outer, outer_dispatch) in both_kinds() {
        for (inner, inner_dispatch) in both_kinds() {
            let before = story(&outer).len();
            with_default(&outer_dispatch, || {
                let span = tracing::info_span!("of the outer").entered();
                let id_outside = current_span_id();
                with_default(&inner_dispatch, || {
                    tracing::info!("first");
                    tracing::info_span!("of the inner").in_scope(|| {
                        tracing::info!("second");
                        // For a typed event, the current span is the span that was entered last. It does not matter
                        // which subscriber has recorded this span.
                        assert!(current_span_id() != 0 && current_span_id() != id_outside);
                        // This enters the span of the outer subscriber again. The inner subscriber does not know that
                        // span, so its own current span stays the same.
                        span.in_scope(|| tracing::info!("third"));
                    });
                });
                assert_eq!(current_span_id(), id_outside);
                tracing::info!("fourth");
            });
            assert_eq!(current_span_id(), 0);
            assert_eq!(story(&outer).split_off(before), ["of the outer in nothing", "fourth at of the outer"]);
            let inside =
                ["first at nothing", "of the inner in nothing", "second at of the inner", "third at of the inner"];
            assert_eq!(story(&inner), inside);
        }
    }
}

/// The output of a `fmt` layer.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'l> registry::LookupSpan<'l>,
    {
        let written = self.clone();
        fmt::layer().with_ansi(false).without_time().with_writer(move || written.clone())
    }

    /// Returns the last word of each line, which is the message: all messages here are single words.
    fn messages(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect()
    }
}

fn shop() {
    for path in ["/buy", "/health"] {
        let _request = tracing::info_span!(target: "shop", "request", path).entered();
        tracing::debug!(target: "shop", "routed");
        tracing::info_span!(target: "shop::db", "query").in_scope(|| tracing::trace!(target: "shop::db", "rows"));
        tracing::info!(target: "other", "elsewhere");
    }
}

#[test]
fn an_env_filter_over_the_stack_holds_for_all_layers() {
    let (recorder, written) = (recorder(), Written::default());
    // Inside the request for `/buy`, the filter admits everything. For other requests, it admits only the span
    // `request` itself, and spans and events with the target `shop::db`.
    let filter = EnvFilter::new("shop[request{path=/buy}]=trace,shop::db=info");
    let stack = registry().with(RecorderLayer::new(recorder.clone())).with(written.layer()).with(filter);
    with_default(&Dispatch::new(stack), shop);
    let of_buy =
        ["request in nothing", "routed at request", "query in request", "rows at query", "elsewhere at request"];
    let of_health = ["request in nothing", "query in request"];
    assert_eq!(story(&recorder), [&of_buy[..], &of_health].concat());
    assert_eq!(written.messages(), ["routed", "rows", "elsewhere"]);
}

#[test]
fn a_filter_of_the_recorders_own_holds_for_nobody_else() {
    let (recorder, other_recorder, written) = (recorder(), recorder(), Written::default());
    let stack = registry()
        .with(RecorderLayer::new(recorder.clone()).with_filter(EnvFilter::new("off,shop::db=trace")))
        .with(written.layer().with_filter(LevelFilter::INFO))
        .with(RecorderLayer::new(other_recorder.clone()));
    with_default(&Dispatch::new(stack), shop);
    assert_eq!(story(&recorder), ["query in nothing", "rows at query"].repeat(2));
    assert_eq!(written.messages(), ["elsewhere"; 2]);
    let all = ["request in nothing", "routed at request", "query in request", "rows at query", "elsewhere at request"];
    assert_eq!(story(&other_recorder), all.repeat(2));
}

#[test]
fn a_recorder_that_is_switched_off_or_missing_hides_nothing_from_other_layers() {
    let (recorder, written) = (recorder(), Written::default());
    let layers: Vec<Box<dyn Layer<_> + Send + Sync>> = vec![
        Box::new(RecorderLayer::new(recorder.clone())),
        // No recorder is installed.
        Box::new(RecorderLayer::global()),
        Box::new(written.layer()),
    ];
    let dispatch = Dispatch::new(registry().with(layers));
    with_default(&dispatch, || {
        recorder.set_enabled(false);
        assert!(tracing::enabled!(Level::TRACE));
        shop();
        recorder.set_enabled(true);
        shop();
    });
    assert_eq!(written.messages().len(), 12);
    assert_eq!(story(&recorder).len(), 10);
}

#[test]
fn a_layer_can_be_left_out_by_an_option() {
    for is_wanted in [false, true] {
        let (recorder, written) = (recorder(), Written::default());
        let layer = is_wanted.then(|| RecorderLayer::new(recorder.clone()));
        let stack = registry().with(layer).with(written.layer());
        with_default(&Dispatch::new(stack), shop);
        assert_eq!(written.messages().len(), 6);
        assert_eq!(story(&recorder).len(), if is_wanted { 10 } else { 0 });
    }
}
