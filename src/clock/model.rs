//! Loom models of the latch. They run every interleaving, up to a number of preemptions, of one thread that publishes
//! and threads that ask for the time.
//!
//! Part of the crate `models`; `.ci/models` runs it.

use super::latch::Latch;
use super::segment::{Position, Segment};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// Shift of one nanosecond per tick, which makes the segments below easy to read.
const SHIFT: u32 = 0;

/// Returns a segment of ten ticks and ten nanoseconds that starts at `ticks0`, at time `nanos0`.
fn segment(ticks0: u64, nanos0: u64) -> Segment {
    Segment { ticks0, nanos0, mult: 1, span: 10 }
}

/// Returns a latch that has published its first segment, which ends at tick 20 and nanosecond 1010.
fn begun() -> Latch {
    let latch = Latch::new();
    latch.set_shift(SHIFT);
    latch.set_empty_segment_start(900);
    latch.publish(|lowest| segment(10, lowest.max(1000)));
    latch
}

/// Returns the time at tick `ticks` as `TickClock` does for a thread that does not get the right to calibrate. `truth`
/// is the time of the real-time clock at that tick.
fn ask(latch: &Latch, ticks: u64, truth: u64) -> u64 {
    if let Some(nanos) = latch.try_nanos_at(|| ticks) {
        return nanos;
    }
    loop {
        let (edition, segment) = latch.read();
        match segment.position(ticks, SHIFT) {
            Position::On(nanos) | Position::Before(nanos) => return nanos,
            Position::Off => {}
        }
        if let Some(nanos) = latch.overrun(edition, segment.end_nanos(SHIFT), truth) {
            return nanos;
        }
    }
}

/// Runs the model. In each model the publisher is the thread that runs first, because loom lets a load return an older
/// value than another thread's store only if loom executed that store first.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let deeper = std::env::var("EVENTRING_MODEL_DEPTH").map_or(0, |depth| depth.parse::<usize>().unwrap());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions + deeper);
    builder.check(model);
}

#[test]
fn time_never_falls_while_another_thread_publishes() {
    check(3, || {
        let latch = Arc::new(begun());
        let asker = thread::spawn({
            let latch = Arc::clone(&latch);
            move || {
                let mut last = 0;
                // The ticks are on the first segment, past its end (with a real time after, at and before the end), and
                // on later segments.
                for (ticks, truth) in [(15, 1005), (21, 1200), (22, 1201), (41, 1100)] {
                    let nanos = ask(&latch, ticks, truth);
                    assert!(last <= nanos, "fell from {last} to {nanos} at tick {ticks}");
                    last = nanos;
                }
            }
        });
        // By the real-time clock the first segment should have ended at 1000, so it was early. The next should start at
        // 1100, which is after its predecessor's end, so it was late.
        latch.publish(|lowest| segment(20, lowest.max(1000)));
        latch.publish(|lowest| segment(40, lowest.max(1100)));
        asker.join().unwrap();
        let (_, newest) = latch.read();
        assert!(newest.ticks0 == 40 && newest.nanos0 >= 1100);
    });
}

#[test]
fn a_segment_starts_above_what_two_threads_were_given_past_the_last_ones_end() {
    check(3, || {
        let latch = Arc::new(begun());
        let highest = Arc::new(AtomicU64::new(0));
        let askers = [(21, 1100), (22, 1300)].map(|(ticks, truth)| {
            let (latch, highest) = (Arc::clone(&latch), Arc::clone(&highest));
            thread::spawn(move || {
                let given = ask(&latch, ticks, truth);
                // The main thread later publishes a segment that starts at tick 100, which must start at or above every
                // time that was given before.
                highest.fetch_max(given, Ordering::Relaxed);
                let again = ask(&latch, ticks + 2, truth + 1);
                assert!(given <= again, "fell from {given} to {again}");
            })
        });
        latch.publish(|lowest| segment(20, lowest));
        for asker in askers {
            asker.join().unwrap();
        }
        let last = latch.publish(|lowest| segment(100, lowest));
        assert!(last.nanos0 >= highest.load(Ordering::Relaxed));
    });
}

/// Checks that a reader never mixes the words of two segments. Only words of the same segment give a correct time here.
#[test]
fn no_reader_takes_words_of_two_segments_for_one() {
    check(4, || {
        let latch = Arc::new(begun());
        let reader = thread::spawn({
            let latch = Arc::clone(&latch);
            move || {
                let (_, segment) = latch.read();
                assert!(segment == self::segment(10, 1000) || segment.nanos0 == segment.ticks0 * 1000, "{segment:?}");
            }
        });
        for ticks0 in [100, 200, 300] {
            latch.publish(|_| segment(ticks0, ticks0 * 1000));
        }
        reader.join().unwrap();
    });
}
