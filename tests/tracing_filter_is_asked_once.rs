//! What the subscriber's filter refuses costs what it costs without a subscriber: `tracing` asks once, and never again. Alone in its
//! process, because `tracing` asks each time as soon as two subscribers disagree.

use eventring::tracing::{PerfRecorder, RecorderSubscriber, TargetFilter};
use std::sync::{Arc, Mutex};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::LevelFilter;
use tracing_core::span::{Attributes, Current, Id, Record};

/// Notes what is asked of the subscriber in it.
struct Watched<S> {
    inner: S,
    interests: Arc<Mutex<Vec<(String, Interest)>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

impl<S> Watched<S> {
    fn call(&self, name: &'static str) {
        self.calls.lock().unwrap().push(name);
    }
}

impl<S: Subscriber> Subscriber for Watched<S> {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let interest = self.inner.register_callsite(metadata);
        if metadata.target().starts_with("shop") {
            self.interests.lock().unwrap().push((metadata.target().to_owned(), interest.clone()));
        }
        interest
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.call("enabled");
        self.inner.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.inner.max_level_hint()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.call("new_span");
        self.inner.new_span(attributes)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.inner.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.inner.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        self.call("event");
        self.inner.event(event);
    }

    fn enter(&self, span: &Id) {
        self.inner.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.inner.exit(span);
    }

    fn try_close(&self, span: Id) -> bool {
        self.inner.try_close(span)
    }

    fn current_span(&self) -> Current {
        self.inner.current_span()
    }
}

#[test]
fn a_refused_call_site_is_never_asked_for_again() {
    let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(16).prefault(false).build().unwrap();
    let subscriber =
        RecorderSubscriber::new(recorder).with_filter(TargetFilter::parse("off,shop=info,shop::db=off").unwrap());
    let (interests, calls) = (Arc::default(), Arc::default());
    let watched = Watched { inner: subscriber, interests: Arc::clone(&interests), calls: Arc::clone(&calls) };
    tracing::subscriber::with_default(watched, || {
        for _ in 0..3 {
            tracing::info!(target: "shop", "accepted");
            tracing::info!(target: "shop::db", "refused");
            let _span = tracing::info_span!(target: "shop::db", "refused span").entered();
            tracing::debug!(target: "shop", "refused by level");
        }
    });
    let interests = interests.lock().unwrap();
    assert!(interests.iter().any(|(target, interest)| target == "shop" && interest.is_always()));
    assert!(interests.iter().any(|(target, interest)| target == "shop::db" && interest.is_never()));
    assert!(interests.iter().all(|(target, interest)| target != "shop::db" || interest.is_never()));
    // Neither for refused ones nor for accepted ones is anything decided each time.
    assert_eq!(*calls.lock().unwrap(), ["event"; 3]);
}
