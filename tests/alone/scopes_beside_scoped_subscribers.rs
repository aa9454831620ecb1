//! Scopes and log macros beside subscribers that only some threads use, and only for a while.

use crate::fixtures::*;
use eventring::tracing::FilterHandle;
use eventring::{log, scope};
use std::thread;
use tracing::dispatcher::{set_default, with_default};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;

fn install() {
    let recorder = PerfRecorder::builder().anonymous().shards(1).shifts(15, 21).tables_shift(16).prefault(false);
    PERF.install(recorder.build().unwrap()).unwrap();
}

/// Returns the names of the scopes and the texts of the log records.
fn recorded() -> Vec<String> {
    let records = reference::records(&mut PerfReader::from_shards(PERF.installed().unwrap().open_readers().unwrap()));
    let name = |content: &PerfContent| match content {
        PerfContent::SpanNew { call_site, .. } => Some(call_site.name.clone()),
        PerfContent::Event { fields, .. } => Some(fields.get("message").unwrap().to_string()),
        _ => None,
    };
    records.iter().filter_map(|record| name(&record.content)).collect()
}

const KINDS: usize = 6;

/// Makes a subscriber of this kind, which records errors to `PERF` and no debug records. While there is just one,
/// `tracing` asks that of the calling thread.
fn stack(kind: usize) -> Dispatch {
    let own = || RecorderLayer::global().filtered(&FilterHandle::new("info".parse().unwrap()));
    let registry = tracing_subscriber::registry();
    match kind {
        0 => Dispatch::new(RecorderSubscriber::global().with_filter("info".parse().unwrap())),
        1 => Dispatch::new(registry.with(own())),
        2 => Dispatch::new(registry.with(Some(own()))),
        3 => Dispatch::new(registry.with(LevelFilter::INFO).with(RecorderLayer::global())),
        4 => Dispatch::new(registry.with(RecorderLayer::global().with_filter(LevelFilter::INFO))),
        _ => Dispatch::new(registry.with(vec![RecorderLayer::global().with_filter(LevelFilter::INFO)])),
    }
}

/// Each use has call sites of its own.
macro_rules! both {
    ($text:literal) => {
        || {
            log::error!($text);
            log::debug!("debug {}", $text);
        }
    };
}

#[test]
fn old_and_new_call_sites_record_all_once_the_last_subscriber_has_gone() {
    alone!();
    install();
    let (before, inside) = (both!("before"), both!("inside"));
    before();
    for at in 0..KINDS {
        let guard = set_default(&stack(at));
        before();
        inside();
        drop(guard);
        before();
        inside();
        // A call site is new once.
        match at {
            0 => both!("after 0")(),
            1 => both!("after 1")(),
            2 => both!("after 2")(),
            3 => both!("after 3")(),
            4 => both!("after 4")(),
            _ => drop(scope!("after 5")),
        }
    }
    let of = |text: &str| recorded().iter().filter(|name| *name == text).count();
    assert_eq!([of("before"), of("debug before"), of("inside"), of("debug inside")], [13, 7, 12, 6]);
    for at in 0..5 {
        assert_eq!([of(&format!("after {at}")), of(&format!("debug after {at}"))], [1, 1], "{at}");
    }
    assert_eq!(of("after 5"), 1);
}

/// The first call of the sites is on a thread without a subscriber.
fn other_thread_first(stack: &Dispatch, sites: fn()) -> Vec<String> {
    let seen = recorded().len();
    with_default(stack, || {
        thread::spawn(sites).join().unwrap();
        sites();
        sites();
    });
    recorded().split_off(seen)
}

macro_rules! other_thread_first {
    ($($name:ident: $at:literal;)*) => {
        $(#[test]
        fn $name() {
            alone!();
            install();
            let stack = stack($at);
            assert_eq!(other_thread_first(&stack, both!("error")), ["error"; 3]);
            drop(stack);
            both!("after")();
            assert_eq!(recorded()[3..], ["after", "debug after"]);
        })*
    };
}

other_thread_first! {
    the_subscriber_decides_about_a_call_site_that_another_thread_reaches_first: 0;
    the_filter_of_a_layer_decides_about_a_call_site_that_another_thread_reaches_first: 1;
    the_filter_of_the_stack_decides_about_a_call_site_that_another_thread_reaches_first: 3;
    the_filter_around_a_layer_decides_about_a_call_site_that_another_thread_reaches_first: 4;
}

#[test]
fn a_layer_that_knows_no_stack_decides_on_its_own_thread_about_a_call_site_that_another_reaches_first() {
    alone!();
    install();
    assert_eq!(other_thread_first(&stack(2), both!("error")), ["error"; 2]);
}

#[test]
fn the_older_of_two_subscribers_decides_on_other_threads_when_the_newer_has_gone() {
    alone!();
    install();
    let stack = |filter: &str| Dispatch::new(RecorderSubscriber::global().with_filter(filter.parse().unwrap()));
    let (old, new) = (stack("info,[none]=trace"), stack("trace,[none]=trace"));
    let sites = both!("error");
    sites();
    drop(new);
    sites();
    assert_eq!(recorded(), ["error", "debug error", "error"]);
    drop(old);
    sites();
    assert_eq!(recorded()[3..], ["error", "debug error"]);
}
