//! Many scopes on one thread: they all end, and none makes the others slower.

use crate::fixtures::*;
use eventring::scope;
use eventring::tracing::Scope;

fn install() {
    let recorder = PerfRecorder::builder().anonymous().shards(1).shifts(16, 22).tables_shift(16).prefault(false);
    PERF.install(recorder.build().unwrap()).unwrap();
}

/// Begins this many scopes and forgets their guards.
fn forget(count: usize) {
    (0..count).for_each(|_| std::mem::forget(scope!("forgotten")));
}

#[test]
fn forgotten_scopes_end_with_their_thread_however_many_they_are() {
    alone!();
    install();
    for count in [31, 32, 33, 40, 1000] {
        std::thread::spawn(move || forget(count)).join().unwrap();
        // A span may lie below, and the thread may have done nothing else before.
        std::thread::spawn(move || {
            std::mem::forget(info_span!("span").entered());
            forget(count);
        })
        .join()
        .unwrap();
    }
    let records = reference::records(&mut PerfReader::from_shards(PERF.installed().unwrap().open_readers().unwrap()));
    let tree = SpanTree::from_records(&records);
    let scopes: Vec<_> = tree.iter().filter(|span| span.is_scope()).collect();
    assert_eq!(scopes.len(), 2 * (31 + 32 + 33 + 40 + 1000));
    assert_eq!(scopes.iter().filter(|span| !span.has_ended_with_parent()).count(), 0);
}

/// Nests scopes this deep: one half is ended one by one, and the other with the scope around it.
fn nest(depth: usize) -> Duration {
    let began = Instant::now();
    let outer = scope!("outer");
    forget(depth / 2);
    let mut guards: Vec<Scope> = (0..depth / 2).map(|_| scope!("inner")).collect();
    while let Some(guard) = guards.pop() {
        drop(guard);
    }
    drop(outer);
    began.elapsed()
}

#[test]
fn a_deep_scope_takes_no_longer_than_another() {
    alone!();
    install();
    // Ten times as many scopes take ten times as long, and not a hundred times. Others may use the machine.
    let ratio = || nest(20_000).as_secs_f64() / nest(2_000).as_secs_f64();
    let ratios: Vec<f64> = (0..3).map(|_| ratio()).collect();
    assert!(ratios.iter().any(|ratio| *ratio < 30.0), "{ratios:?}");
}
