//! A program with threads and a tokio runtime does everything that can be done with spans. A reference model in the
//! program collects the records that must result. Another process reads the rings of the program twice: live, and
//! later from the beginning. Both times, it reads exactly the records of the reference model.

use crate::fixtures::*;
use crate::span_stress;
use eventring::tracing::PerfItem;
use eventring_stress::reference::{Collected, Facts, ReferenceLayer, ReferenceTee, assert_same, facts_of, records};
use tracing_subscriber::prelude::*;

fn subscriber_and_reference(recorder: PerfRecorder, collected: Collected) -> Dispatch {
    Dispatch::new(ReferenceTee::new(RecorderSubscriber::new(recorder), collected))
}

fn layer_and_reference(recorder: PerfRecorder, collected: Collected) -> Dispatch {
    let layers = RecorderLayer::new(recorder).and_then(ReferenceLayer(collected));
    Dispatch::new(tracing_subscriber::registry().with(layers))
}

/// Plays the program: uses spans in all ways. Then writes what the reference has seen to a file beside the rings.
fn program(place: &Path, dispatch: fn(PerfRecorder, Collected) -> Dispatch) {
    let recorder = PerfRecorder::builder().config(place).shifts(17, 23).shards(6).prefault(false).build().unwrap();
    let collected = Collected::default();
    tracing::dispatcher::set_global_default(dispatch(recorder.clone(), collected.clone())).unwrap();
    say("recording");
    span_stress::run();
    std::fs::write(place.with_extension("facts"), collected.lock().unwrap().to_text()).unwrap();
    let stats = recorder.stats();
    assert_eq!((stats.lost_spans, stats.shard_failures), (0, 0));
    say("done");
    wait_for_parent();
}

/// Reads records until `is_done` is true and no more records come.
fn follow(mut reader: PerfReader, is_done: &AtomicBool) -> Vec<PerfRecord> {
    let mut records = Vec::new();
    loop {
        let was_done = is_done.load(Ordering::Acquire);
        match reader.next_timeout(Duration::from_millis(30)) {
            Some(PerfItem::Record(record)) => records.push(record),
            Some(other) => panic!("{other:?}"),
            None if was_done => return records,
            None => {}
        }
    }
}

fn read_by_another_process(test: &str, dispatch: fn(PerfRecorder, Collected) -> Dispatch) {
    if part().is_some() {
        return program(&place(), dispatch);
    }
    let (_directory, [place]) = places(["stress"]);
    let mut talk = Talk::told(test, "program", &place, "recording");
    let is_done = AtomicBool::new(false);
    let live = std::thread::scope(|scope| {
        let reader = PerfReader::open(&place).unwrap();
        let follower = scope.spawn(|| follow(reader, &is_done));
        assert_eq!(talk.hear(), "done");
        is_done.store(true, Ordering::Release);
        follower.join().unwrap()
    });
    let expected = std::fs::read_to_string(place.with_extension("facts")).unwrap();
    let mut again = PerfReader::open(&place).unwrap();
    let again_records = records(&mut again);
    assert_eq!(again.rings().iter().filter_map(|ring| ring.reader()).count(), 6);
    assert!(again.shard_errors().is_empty());
    let facts = facts_of(&again_records);
    assert_same(&facts.to_text(), &expected);
    assert_same(&facts_of(&live).to_text(), &expected);
    assert_eq!(live.len(), again_records.len());
    assert_the_run_was_no_toy(&facts);
    assert!(talk.end().success());
}

fn assert_the_run_was_no_toy(facts: &Facts) {
    let spans = || facts.spans.values();
    assert!(facts.spans.len() > 3000 && facts.events.len() > 1000, "{} {}", facts.spans.len(), facts.events.len());
    assert!(spans().filter(|span| span.stays.len() > 1).count() > 50, "spans on several threads");
    assert!(spans().any(|span| span.stays.values().any(|stays| stays.contains("EE"))), "entered twice");
    assert!(spans().filter(|span| !span.follows.is_empty()).count() > 50, "follows from");
    assert!(spans().any(|span| !span.is_closed), "spans that are never closed");
    assert!(spans().any(|span| span.stays.values().any(|stays| stays == "E")), "spans that are never exited");
    let threads: std::collections::BTreeSet<u32> = spans().flat_map(|span| span.stays.keys().copied()).collect();
    assert!(threads.len() > 50, "{} threads", threads.len());
}

#[test]
fn what_the_subscriber_records_of_a_busy_program_is_exactly_what_happened() {
    let test = test_name!();
    read_by_another_process(test, subscriber_and_reference);
}

#[test]
fn what_the_layer_records_of_a_busy_program_is_exactly_what_happened() {
    let test = test_name!();
    read_by_another_process(test, layer_and_reference);
}
