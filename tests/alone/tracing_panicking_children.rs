//! A child span's value panics while it is formatted, so the program never gets the child. The layer must still close
//! the parent when the program drops the parent's last handle.

use crate::fixtures::*;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::prelude::*;

const PARENTS: usize = 500;

struct Panicking(bool);

impl fmt::Debug for Panicking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.0, "in Debug");
        f.write_str("well")
    }
}

/// A layer that marks each span that begins. It panics if a span without the mark ends.
struct Upset;

struct Met;

impl<S: tracing::Subscriber + for<'l> tracing_subscriber::registry::LookupSpan<'l>> tracing_subscriber::Layer<S>
    for Upset
{
    fn on_new_span(
        &self,
        _: &tracing::span::Attributes<'_>,
        id: &tracing::Id,
        context: tracing_subscriber::layer::Context<'_, S>,
    ) {
        context.span(id).unwrap().extensions_mut().insert(Met);
    }

    fn on_close(&self, id: tracing::Id, context: tracing_subscriber::layer::Context<'_, S>) {
        assert!(context.span(&id).unwrap().extensions().get::<Met>().is_some(), "a stranger ends");
    }
}

fn recorder() -> PerfRecorder {
    PerfRecorder::builder().anonymous().shifts(17, 22).tables_shift(16).prefault(false).build().unwrap()
}

/// Makes spans and children whose value panics if `panics` is true. There are four kinds of children: a child of the
/// current span, a child of a parent that the macro names, a child of a span that the filter hides from the recorder,
/// and a child without a parent.
fn run(panics: bool) {
    let try_child = |child: &dyn Fn()| {
        assert_eq!(catch_unwind(AssertUnwindSafe(child)).is_err(), panics);
    };
    for _ in 0..PARENTS {
        let grandparent = tracing::info_span!("grandparent").entered();
        tracing::info_span!("parent").in_scope(|| {
            try_child(&|| drop(tracing::info_span!("child", value = ?Panicking(panics))));
        });
        let named = tracing::info_span!(parent: None, "parent");
        try_child(&|| drop(tracing::info_span!(parent: &named, "child", value = ?Panicking(panics))));
        tracing::info_span!("hidden").in_scope(|| {
            try_child(&|| drop(tracing::info_span!("child", value = ?Panicking(panics))));
        });
        try_child(&|| drop(tracing::info_span!(parent: None, "child", value = ?Panicking(panics))));
        drop((named, grandparent));
    }
}

#[track_caller]
fn check(recorder: &PerfRecorder) {
    let records = records(recorder);
    let tree = SpanTree::from_records(&records);
    let mut counts = std::collections::BTreeMap::new();
    for span in tree.iter() {
        let count: &mut (usize, usize) = counts.entry(span.name()).or_default();
        count.0 += 1;
        count.1 += usize::from(span.is_open());
        assert!(!span.may_have_losses, "{span:?}");
    }
    let counts: Vec<(&str, usize, usize)> =
        counts.iter().map(|(name, (all, open))| (name.as_str(), *all, *open)).collect();
    assert_eq!(
        counts,
        [("child", 4 * PARENTS, 0), ("grandparent", PARENTS, 0), ("parent", 2 * PARENTS, 0)],
        "name, how many, how many open"
    );
}

fn stack(recorder: &PerfRecorder) -> Dispatch {
    let layer = RecorderLayer::new(recorder.clone()).with_filter(filter_fn(|metadata| metadata.name() != "hidden"));
    Dispatch::new(tracing_subscriber::registry().with(layer).with(Upset))
}

/// Runs as the only test of this file, because it changes global state.
#[test]
fn a_parent_whose_childs_value_panicked_is_closed_when_its_last_handle_is_gone() {
    alone!();
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // These thousands of panics are intended.
        let is_meant = panic.payload_as_str().is_some_and(|text| text == "in Debug" || text == "a stranger ends");
        if !is_meant {
            say(panic);
        }
    }));
    let well = recorder();
    tracing::dispatcher::with_default(&stack(&well), || run(false));
    check(&well);

    let scoped = recorder();
    tracing::dispatcher::with_default(&stack(&scoped), || run(true));
    check(&scoped);

    let global = recorder();
    tracing::dispatcher::set_global_default(stack(&global)).unwrap();
    run(true);
    check(&global);
}
