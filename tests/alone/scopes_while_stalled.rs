//! Threads that are stopped anywhere, also while they begin or end a scope or record a text, spoil nothing of others
//! and nothing of their own.

use crate::fixtures::*;
use crate::stall;
use eventring::tracing::{Span, SpanId, try_init_with};
use eventring::{log, scope};

const THREADS: u64 = 4;
/// The rings hold all events of this many rounds of each thread, whichever shards the threads have.
const ROUNDS_MAX: u64 = 8000;

fn work(thread: u64, rounds: &AtomicU64, stop: &AtomicBool) {
    for round in 0..ROUNDS_MAX {
        if stop.load(Ordering::Relaxed) && round > 100 {
            return;
        }
        let _outer = scope!("outer", thread, round);
        info_span!("span", thread, round).in_scope(|| {
            let _inner = scope!("inner");
            log::info!("thread {thread}, round {round}");
        });
        rounds.store(round + 1, Ordering::Relaxed);
    }
}

fn field(span: &Span, name: &str) -> Option<String> {
    span.fields.get(name).map(|value| value.to_string())
}

#[test]
fn scopes_and_texts_of_threads_that_are_stalled_anywhere_are_whole() {
    alone!();
    let recorder = PerfRecorder::builder().anonymous().shifts(18, 25).prefault(false);
    try_init_with(recorder, "info".parse().unwrap()).unwrap();
    let rounds: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let body = |thread: u64| -> stall::Body<'_> {
        let rounds = &rounds[thread as usize];
        Box::new(move |stop| work(thread, rounds, stop))
    };
    let stalls = stall::run_bodies((0..THREADS).map(body).collect(), stall::seconds(1.0));
    let all: u64 = rounds.iter().map(|rounds| rounds.load(Ordering::Relaxed)).sum();
    println!("eventring: rounds={all} stalls={stalls}");
    assert!(stalls >= 5 && all >= 100 * THREADS, "{stalls} stalls, {all} rounds");

    let readers = PERF.installed().unwrap().open_readers().unwrap();
    let records = reference::records(&mut PerfReader::from_shards(readers));
    let tree = SpanTree::from_records(&records);
    let mut texts: HashMap<SpanId, Vec<String>> = HashMap::new();
    for record in &records {
        if let PerfContent::Event { span: Some(span), fields, .. } = &record.content {
            texts.entry(*span).or_default().push(fields.get("message").unwrap().to_string());
        }
    }
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for outer in tree.roots() {
        let place = |span: &Span| (field(span, "thread"), field(span, "round"));
        let children: Vec<&Span> = tree.children(outer.id).collect();
        let [span] = children[..] else { panic!("{outer:?} has {} children", children.len()) };
        let grandchildren: Vec<&Span> = tree.children(span.id).collect();
        let [inner] = grandchildren[..] else { panic!("{span:?} has {} children", grandchildren.len()) };
        assert_eq!(place(outer), place(span));
        for found in [outer, span, inner] {
            assert!(!found.is_open() && !found.has_ended_with_parent() && !found.may_have_losses, "{found:?}");
            assert_eq!(found.slices.len(), 1, "{found:?}");
            *counted.entry(found.name()).or_default() += 1;
        }
        let (thread, round) = place(outer);
        assert_eq!(texts[&inner.id], [format!("thread {}, round {}", thread.unwrap(), round.unwrap())]);
    }
    let expected = ["inner", "outer", "span"].map(|name| (name.to_owned(), all));
    assert_eq!(counted.into_iter().collect::<Vec<_>>(), expected);
}
