//! `tracing` asks a subscriber's filter only once about each call site. After that, a refused span costs no more than a
//! span without a subscriber.
//!
//! If two subscribers answer differently, `tracing` asks again for each span and event. So the tests of this file run
//! one after the other.

use crate::fixtures::*;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::LevelFilter;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_subscriber::prelude::*;

/// A subscriber that passes all calls to an inner subscriber and notes what `tracing` has asked.
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
    alone!();
    let subscriber =
        RecorderSubscriber::new(recorder()).with_filter(TargetFilter::parse("off,shop=info,shop::db=off").unwrap());
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
    // `tracing` has not called `enabled`. So it has not asked the filter again, neither about refused call sites nor
    // about accepted ones.
    assert_eq!(*calls.lock().unwrap(), ["event"; 3]);
}

#[test]
fn a_level_that_is_filtered_out_is_never_asked_for_again_with_a_layer_either() {
    alone!();
    let (interests, calls) = (Arc::default(), Arc::default());
    let layer = RecorderLayer::new(recorder()).with_filter(LevelFilter::INFO);
    let inner = tracing_subscriber::registry().with(layer);
    let watched = Watched { inner, interests: Arc::clone(&interests), calls: Arc::clone(&calls) };
    tracing::subscriber::with_default(watched, || {
        for _ in 0..3 {
            tracing::debug!(target: "shop", "refused");
            let _span = tracing::trace_span!(target: "shop", "refused span").entered();
        }
        // The macros first compare the level of their call site with this level. If the call site is more verbose, they
        // do not even register it.
        assert_eq!(LevelFilter::current(), LevelFilter::INFO);
        tracing::info!(target: "shop", "accepted");
    });
    let interests: Vec<(String, Interest)> = interests.lock().unwrap().clone();
    assert!(interests.iter().all(|(_, interest)| interest.is_always()), "{interests:?}");
    assert_eq!(calls.lock().unwrap().iter().filter(|call| **call == "event").count(), 1);
    assert!(!calls.lock().unwrap().contains(&"new_span"));
}
