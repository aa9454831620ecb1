//! Loom models of the [`Latch`]. In each model one thread publishes segments of the clock, and other threads ask for
//! the time. Loom runs every interleaving with at most a fixed number of preemptions.
//!
//! The models are part of the crate `models`; `.ci/models` runs them.

use super::latch::Latch;
use super::segment::{Position, Segment, TickTime};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// The shift of the segments below: one tick is one nanosecond, so the numbers are easy to read.
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

/// Returns the time at tick `ticks`. It gets the time in the same way as `TickClock` does for a thread that is not
/// allowed to calibrate. `truth` is the real-time clock's time at that tick.
fn ask(latch: &Latch, ticks: u64, truth: u64) -> u64 {
    if let Some(nanos) = latch.try_at(|| ticks).map(TickTime::epoch_nanos) {
        return nanos;
    }
    loop {
        let (edition, segment) = latch.read();
        match segment.position(ticks, SHIFT) {
            Position::On(nanos) | Position::Before(nanos) => return nanos,
            Position::Off => {}
        }
        if let Some(nanos) = latch.overshoot(edition, segment.end_nanos(SHIFT), truth) {
            return nanos;
        }
    }
}

/// Runs the model. In each model, the main thread publishes, because loom runs the main thread first. Loom lets a load
/// return an old value only if it has already executed the store of the newer value. If the publisher ran later, loom
/// would miss these old values.
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
                // Tick 15 is on the first segment. Ticks 21 and 22 are past its end, or on the second segment if that
                // is published already. Tick 41 is past the end of both, or on the third segment. The last real time
                // is lower than the one before it: the real-time clock was set back.
                for (ticks, truth) in [(15, 1005), (21, 1200), (22, 1201), (41, 1100)] {
                    let nanos = ask(&latch, ticks, truth);
                    assert!(last <= nanos, "fell from {last} to {nanos} at tick {ticks}");
                    last = nanos;
                }
            }
        });
        // The first segment ends at 1010. By the real-time clock the second segment would start at 1000, but it may
        // not start before 1010. The third segment starts at 1100, or later if the other thread got a higher time.
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
                // The segment that the main thread publishes last must start at or above every time that was given
                // before. `highest` is the highest of these times.
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

/// Checks that a reader never combines the words of two segments. Here the words give a correct time only if they
/// belong to the same segment.
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
