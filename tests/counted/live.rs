//! The bytes that stay allocated, by the name of the span that has allocated them.

use crate::fixtures::*;
use eventring::schema::perf::{Allocated, FieldValue};
use eventring::scope;
use std::thread::sleep;

/// Returns the last live bytes of a name, and the last peak.
fn live(recorder: &PerfRecorder, name: &str) -> (u64, u64) {
    let mut last = (0, 0);
    for record in records(recorder) {
        let PerfContent::Counter { call_site, value: FieldValue::U64(bytes), .. } = &record.content else { continue };
        match Allocated::live_counter(&call_site.target, &call_site.name) {
            Some((of, false)) if of == name => last.0 = *bytes,
            Some((of, true)) if of == name => last.1 = *bytes,
            _ => {}
        }
    }
    last
}

/// Lets the next sample come.
fn sample() {
    sleep(Duration::from_millis(11));
    let _scope = scope!("sample");
    drop(std::hint::black_box(Box::new(1_u64)));
}

#[test]
fn threads_that_end_leave_nothing_uncounted_whether_they_record_or_not() {
    alone!();
    PERF.install(recorder()).unwrap();
    let recorder = PERF.installed().unwrap().clone();
    for number in 0..2_000 {
        let bytes = {
            let _scope = scope!("make");
            vec![1_u8; 10_000]
        };
        let drop_it = move || {
            let _scope = (number % 2 == 0).then(|| scope!("drop"));
            drop(bytes);
        };
        std::thread::spawn(drop_it).join().unwrap();
    }
    sample();
    assert_near(live(&recorder, "make").0, 0);
    let kept: Vec<Vec<u8>> = (0..2_000)
        .map(|_| {
            let made = std::thread::spawn(|| {
                let _scope = scope!("keep");
                vec![1_u8; 1_000]
            });
            made.join().unwrap()
        })
        .collect();
    sample();
    assert_near(live(&recorder, "keep").0, 2_000_000);
    drop(kept);
}

#[test]
fn spans_of_one_name_have_one_counter_wherever_they_are() {
    alone!();
    PERF.install(recorder()).unwrap();
    let recorder = PERF.installed().unwrap().clone();
    let one = {
        let _scope = scope!("same");
        vec![1_u8; 300_000]
    };
    sample();
    let two = {
        let _scope = scope!("same");
        vec![1_u8; 500_000]
    };
    sample();
    assert_near(live(&recorder, "same").0, 800_000);
    drop((one, two));
}

#[test]
fn an_allocator_with_a_recorded_lock_does_not_wait_for_itself() {
    alone!();
    PERF.install(PerfRecorder::builder().anonymous().build().unwrap()).unwrap();
    crate::truth::LOCKS.store(true, Ordering::Relaxed);
    let work = || {
        for number in 0..300 {
            let _scope = scope!("work", number);
            drop(std::hint::black_box(vec![1_u8; 1 + number * 7]));
        }
    };
    for _ in 0..20 {
        std::thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(work)));
    }
    crate::truth::LOCKS.store(false, Ordering::Relaxed);
}

#[track_caller]
fn assert_near(bytes: u64, expected: u64) {
    // What threads have not added yet.
    assert!(bytes.abs_diff(expected) <= 32 << 10, "{bytes}, expected {expected}");
}

#[test]
fn live_bytes_belong_to_the_span_that_allocated_wherever_they_are_freed() {
    alone!();
    PERF.install(recorder()).unwrap();
    let recorder = PERF.installed().unwrap().clone();
    let mut kept: Vec<Vec<u8>> = {
        let _scope = scope!("keep");
        (0..100).map(|_| vec![1; 10_000]).collect()
    };
    sample();
    assert_near(live(&recorder, "keep").0, 1_000_000);
    {
        let _scope = scope!("drop");
        kept.truncate(50);
    }
    sample();
    let (bytes, peak) = live(&recorder, "keep");
    assert_near(bytes, 500_000);
    assert_near(peak, 1_000_000);
    assert_near(live(&recorder, "drop").0, 0);
    // A block that grows elsewhere stays with its span; another thread frees it.
    {
        let _scope = scope!("grow");
        kept[0].resize(600_000, 2);
    }
    sample();
    assert_near(live(&recorder, "keep").0, 1_090_000);
    std::thread::spawn(move || {
        drop(kept);
        sample();
    })
    .join()
    .unwrap();
    sample();
    assert_near(live(&recorder, "keep").0, 0);
    let (all, peak) = live(&recorder, "(all)");
    assert!(peak >= 1_000_000 && all < peak - 500_000, "{all} of {peak}");
}
