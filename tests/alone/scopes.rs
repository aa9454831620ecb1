//! Scopes: the macro, the attribute, their parents and children, and what happens to guards that are not dropped in
//! order.

use crate::fixtures::*;
use eventring::tracing::{FilterHandle, Level, Span, try_init_with};
use eventring::{scope, scoped};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracing_subscriber::layer::SubscriberExt as _;

/// Returns the recorded spans, and each span's name with those of its ancestors.
fn recorded() -> (SpanTree, Vec<String>) {
    let records = records(PERF.installed().unwrap());
    let tree = SpanTree::from_records(&records);
    let name = |span: &Span| {
        let parents = std::iter::successors(Some(span), |span| tree.get(span.parent?));
        let mut names: Vec<String> = parents.map(|span| span.name()).collect();
        names.reverse();
        names.join("/")
    };
    let names = all(&tree).iter().map(|span| name(span)).collect();
    (tree, names)
}

/// Returns all spans, parents before their children.
fn all(tree: &SpanTree) -> Vec<&Span> {
    let mut spans = Vec::new();
    let mut rest: Vec<&Span> = tree.roots().collect();
    rest.reverse();
    while let Some(span) = rest.pop() {
        spans.push(span);
        let children: Vec<&Span> = tree.children(span.id).collect();
        rest.extend(children.into_iter().rev());
    }
    spans
}

fn fields(span: &Span) -> String {
    span.fields.values.iter().map(|field| format!("{}={}", field.name, field.value)).collect::<Vec<_>>().join(" ")
}

#[scoped(skip(secret), fields(twice = 2 * count))]
fn work(count: u32, name: &str, what: Option<&[char]>, secret: &str) -> usize {
    let _inner = scope!(level: Level::DEBUG, "inner");
    count as usize + name.len() + what.map_or(0, <[char]>::len) + secret.len()
}

// The parameters are not the first parentheses, there is no space behind a colon, and the body has an attribute.
#[rustfmt::skip]
#[scoped(skip(step))]
fn generic<'n, F: Fn(u32) -> Vec<u32>>(step: F, name:&'n str, at: ::std::primitive::u32) -> (usize, &'n str)
where
    &'n str: Copy,
{
    #![allow(unused_mut)]
    let mut steps = step(at);
    (steps.len(), name)
}

// A parameter may have the names of the macro, and its use as a field is no mistake of the program.
#[deny(clippy::used_underscore_binding)]
#[scoped]
fn underscored(_scope: u8, _unused: u8) {}

macro_rules! with_body {
    ($name:ident $body:block) => {
        #[scoped]
        fn $name(number: u8) -> u8 $body
    };
}

with_body!(of_a_macro {
    7
});

// A field takes the place of the argument of its name, whatever an attribute may take away is no field, and a constant
// is a pattern.
#[rustfmt::skip]
#[scoped("named", level = "debug", skip(r#type), fields(text = text.len(), ?name, of.text = 1))]
fn replaced(text: &str, name: &str, r#type: u8, #[cfg(any())] absent: u8, #[allow(unused)] other: u8) {
    let _ = (text, name, r#type);
}

#[test]
fn fields_of_the_attribute_take_the_place_of_arguments_and_constants_are_none() {
    alone!();
    try_init_with(small(), "debug".parse().unwrap()).unwrap();
    replaced("secret", "ada", 1, 2);
    assert!(Stack(vec![]).is_empty(NOTHING));
    let (tree, names) = recorded();
    let fields: Vec<String> = all(&tree).into_iter().map(fields).collect();
    assert_eq!(names, ["named", "is_empty"]);
    assert_eq!(fields, ["text=6 name=\"ada\" of.text=1", ""]);
}

#[test]
fn the_attribute_finds_the_parameters_and_the_body_of_any_function() {
    alone!();
    try_init_with(small(), "debug".parse().unwrap()).unwrap();
    assert_eq!(generic(|at| vec![at; 3], "ada", 5), (3, "ada"));
    assert_eq!(of_a_macro(1), 7);
    underscored(2, 3);
    let (tree, names) = recorded();
    let fields: Vec<String> = all(&tree).into_iter().map(fields).collect();
    assert_eq!(names, ["generic", "of_a_macro", "underscored"]);
    assert_eq!(fields, ["name=ada at=5", "number=1", "_scope=2 _unused=3"]);
}

#[scoped]
fn r#match(r#type: u32) {
    assert!(r#type > 0);
}

struct Stack(Vec<u8>);

impl Stack {
    #[scoped(name = "push", target = "stack", skip_all)]
    fn push(&mut self, (low, high): (u8, u8)) -> Result<(), String> {
        if low > high {
            return Err("wrong".into());
        }
        self.0.extend([low, high]);
        Ok(())
    }

    #[scoped(skip(self))]
    fn is_empty(&self, NOTHING: ()) -> bool {
        self.0.is_empty()
    }
}

const NOTHING: () = ();

/// What the program of the first two tests does, with the tree that it makes.
fn mixed() -> Vec<&'static str> {
    {
        let _outer = scope!("outer");
        info_span!("span").in_scope(|| {
            let _inner = scope!("inner", bytes = 3_u32, kind = ?Some(1), "of what" = %'x', of.whole = 0.5);
            info!("inside");
            let name = "ada";
            let _innermost = scope!(target: "elsewhere", "innermost", name, ?name, none = None::<u8>);
        });
        let _sibling = scope!("sibling");
    }
    assert_eq!(work(3, "abc", Some(&['x']), "secret"), 13);
    r#match(4);
    assert!(Stack(vec![]).push((1, 2)).is_ok() && Stack(vec![]).push((2, 1)).is_err());
    vec![
        "outer",
        "outer/span",
        "outer/span/inner",
        "outer/span/inner/innermost",
        "outer/sibling",
        "work",
        "work/inner",
        "match",
        "push",
        "push",
    ]
}

#[test]
fn scopes_and_spans_are_each_others_parents_with_a_subscriber() {
    alone!();
    try_init_with(small(), "debug".parse().unwrap()).unwrap();
    let expected = mixed();
    let (tree, names) = recorded();
    assert_eq!(names, expected);
    let spans = all(&tree);
    let is_scope: Vec<bool> = spans.iter().map(|span| span.is_scope()).collect();
    assert_eq!(is_scope, [true, false, true, true, true, true, true, true, true, true]);
    assert!(spans.iter().all(|span| !span.is_open() && !span.may_have_losses && !span.has_ended_with_parent()));
    assert!(spans.iter().all(|span| span.slices.len() == 1 && span.slices[0].exited_epoch_nanos.is_some()));
    assert_eq!(fields(spans[2]), "bytes=3 kind=Some(1) of what=x of.whole=0.5");
    assert_eq!(fields(spans[7]), "type=4");
    assert_eq!(fields(spans[3]), "name=ada name#2=\"ada\"");
    assert_eq!(fields(spans[5]), "twice=6 count=3 name=abc what=Some(['x'])");
    let target = |at: usize| spans[at].call_site.as_ref().unwrap().target.clone();
    assert_eq!((target(3).as_str(), target(8).as_str()), ("elsewhere", "stack"));
    assert!(spans[4].call_site.as_ref().unwrap().file.as_deref().is_some_and(|file| file.ends_with("scopes.rs")));
}

#[test]
fn scopes_and_spans_are_each_others_parents_with_a_layer() {
    alone!();
    PERF.install(small().build().unwrap()).unwrap();
    let stack = tracing_subscriber::registry().with(RecorderLayer::global());
    tracing::subscriber::set_global_default(stack).unwrap();
    let expected = mixed();
    assert_eq!(recorded().1, expected);
}

#[test]
fn without_a_subscriber_scopes_are_recorded_and_without_a_recorder_nothing_is_evaluated() {
    alone!();
    let evaluated = Cell::new(0);
    let begin = || {
        scope!(
            "counted",
            evaluated = {
                evaluated.set(evaluated.get() + 1);
                evaluated.get()
            }
        )
    };
    drop(begin());
    assert_eq!((evaluated.get(), begin().id()), (0, None));
    PERF.install(small().build().unwrap()).unwrap();
    drop(begin());
    PERF.set_enabled(false);
    drop(begin());
    PERF.set_enabled(true);
    drop(begin());
    assert_eq!(evaluated.get(), 2);
    assert_eq!(recorded().1, ["counted", "counted"]);
}

#[test]
fn filters_and_overrides_decide_about_scopes_as_about_spans() {
    alone!();
    PERF.install(small().build().unwrap()).unwrap();
    let subscriber = RecorderSubscriber::global().with_filter("info,quiet=off".parse().unwrap());
    let filter = subscriber.filter_handle();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let all_four = || {
        drop(scope!(target: "quiet", "quiet"));
        drop(scope!("info"));
        drop(scope!(level: Level::TRACE, "trace"));
        let _request = scope!("request", user = 7);
        drop(scope!(level: Level::DEBUG, "debug"));
    };
    all_four();
    filter.set("trace".parse().unwrap());
    all_four();
    filter.set("off".parse().unwrap());
    let filter_override = filter.add_override("[request{user=7}]=debug".parse().unwrap());
    all_four();
    drop(filter_override);
    all_four();
    let first = ["info", "request"];
    let second = ["quiet", "info", "trace", "request", "request/debug"];
    let third = ["request", "request/debug"];
    assert_eq!(recorded().1, [&first[..], &second, &third].concat());
}

#[test]
fn the_filter_of_a_layer_decides_and_another_layer_does_not() {
    alone!();
    PERF.install(small().build().unwrap()).unwrap();
    let filter = FilterHandle::new("warn".parse().unwrap());
    let others = tracing_subscriber::fmt::layer().with_writer(std::io::sink);
    let stack = tracing_subscriber::registry().with(RecorderLayer::global().filtered(&filter)).with(others);
    tracing::subscriber::set_global_default(stack).unwrap();
    let both = || {
        drop(scope!("info"));
        drop(scope!(level: Level::WARN, "warn"));
    };
    both();
    filter.set("info".parse().unwrap());
    both();
    assert_eq!(recorded().1, ["warn", "info", "warn"]);
}

#[test]
fn a_subscriber_that_is_made_and_not_used_changes_nothing_and_one_that_comes_later_is_followed() {
    alone!();
    PERF.install(small().build().unwrap()).unwrap();
    drop(RecorderSubscriber::global().with_filter("off".parse().unwrap()));
    let outer = scope!("without a subscriber");
    drop(scope!("inside"));
    let filter = "warn".parse().unwrap();
    tracing::subscriber::set_global_default(RecorderSubscriber::global().with_filter(filter)).unwrap();
    drop(scope!("not wanted any more"));
    let _warning = scope!(level: Level::WARN, "wanted");
    std::mem::forget(scope!(level: Level::WARN, "forgotten"));
    drop(outer);
    let around = "without a subscriber";
    let names = ["", "/inside", "/wanted", "/wanted/forgotten"].map(|name| format!("{around}{name}"));
    assert_eq!(recorded().1, names);
}

#[test]
fn a_panic_ends_scopes_and_also_the_one_whose_value_panics_which_has_what_was_written() {
    alone!();
    struct Panics;
    impl std::fmt::Debug for Panics {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("half")?;
            panic!("in Debug")
        }
    }
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    let panics = |f: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    for _ in 0..2 {
        panics(&|| {
            let _outer = scope!("outer");
            let _inner = scope!("inner");
            panic!("inside");
        });
        panics(&|| drop(scope!("valued", a = 1, p = ?Panics, b = 2)));
    }
    drop(scope!("after"));
    let (tree, names) = recorded();
    assert_eq!(names, ["outer", "outer/inner", "valued", "outer", "outer/inner", "valued", "after"]);
    let spans = all(&tree);
    assert!(spans.iter().all(|span| !span.is_open()));
    assert_eq!([2, 5].map(|at| fields(spans[at])), ["a=1 p=half"; 2]);
}

#[test]
fn a_guard_that_is_forgotten_or_dropped_late_is_bounded_by_its_parent() {
    alone!();
    try_init_with(small(), "info".parse().unwrap()).unwrap();
    let late = std::thread::spawn(|| {
        let late;
        {
            let _outer = scope!("outer");
            std::mem::forget(scope!("forgotten"));
            late = scope!("late");
        }
        drop(scope!("root"));
        drop(late);
        drop(scope!("root"));
        info_span!("span").in_scope(|| std::mem::forget(scope!("forgotten in a span")));
        drop(scope!("root"));
        std::mem::forget(scope!("until the end of the thread"));
    });
    late.join().unwrap();
    let (tree, names) = recorded();
    let expected = [
        "outer",
        "outer/forgotten",
        "outer/forgotten/late",
        "root",
        "root",
        "span",
        "span/forgotten in a span",
        "root",
        "until the end of the thread",
    ];
    assert_eq!(names, expected);
    let ended_with_parent: Vec<bool> = all(&tree).iter().map(|span| span.has_ended_with_parent()).collect();
    assert_eq!(ended_with_parent, [false, true, true, false, false, false, true, false, true]);
    assert!(all(&tree).iter().all(|span| !span.is_open()));
    for span in all(&tree) {
        let Some(parent) = span.parent.and_then(|parent| tree.get(parent)) else { continue };
        assert!(span.closed.as_ref().unwrap().epoch_nanos <= parent.closed.as_ref().unwrap().epoch_nanos);
    }
}

#[test]
fn many_nested_scopes_of_many_threads_are_counted_exactly() {
    alone!();
    try_init_with(small().shifts(18, 24), "info".parse().unwrap()).unwrap();
    fn nest(depth: u32) {
        let _scope = scope!("nested", depth);
        if depth > 0 {
            nest(depth - 1);
        }
    }
    // Deeper than the part of the span stack that needs no memory of its own.
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| (0..100).for_each(|_| nest(99)))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let (tree, _) = recorded();
    let spans = all(&tree);
    assert_eq!(spans.len(), 4 * 100 * 100);
    assert!(spans.iter().all(|span| !span.is_open() && !span.has_ended_with_parent()));
    assert_eq!(tree.roots().count(), 400);
    assert!(spans.iter().all(|span| tree.children(span.id).count() == usize::from(fields(span) != "depth=0")));
}
