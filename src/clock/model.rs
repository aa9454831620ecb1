//! The published line under loom: every interleaving, up to a number of preemptions, of one thread that publishes and
//! threads that ask.
//!
//! Part of the crate `models`; `.ci/models` runs it.

use super::line::{Line, Place};
use super::published::Published;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// A nanosecond per tick, so that lines are easily read below.
const SHIFT: u32 = 0;

/// Ten ticks long.
fn line(ticks0: u64, nanos0: u64) -> Line {
    Line { ticks0, nanos0, mult: 1, span: 10 }
}

/// A clock whose first line is used up at tick 20, and nanosecond 1010.
fn begun() -> Published {
    let published = Published::new();
    published.set_shift(SHIFT);
    published.place_empty_line(900);
    published.publish(|lowest| line(10, lowest.max(1000)));
    published
}

/// As `TickClock` does it for a thread that does not get to calibrate: the time at `ticks`, which is `truth`.
fn ask(published: &Published, ticks: u64, truth: u64) -> u64 {
    if let Some(nanos) = published.nanos_at(|| ticks) {
        return nanos;
    }
    loop {
        let (edition, line) = published.read();
        match line.place(ticks, SHIFT) {
            Place::On(nanos) | Place::Before(nanos) => return nanos,
            Place::Off => {}
        }
        if let Some(nanos) = published.overrun(edition, line.end_nanos(SHIFT), truth) {
            return nanos;
        }
    }
}

/// The publisher is always the thread that runs first: loom tries a load before another thread's store only if it met
/// the store first.
fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let deeper = std::env::var("EVENTRING_MODEL_DEPTH").map_or(0, |depth| depth.parse::<usize>().unwrap());
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions + deeper);
    builder.check(model);
}

#[test]
fn time_never_falls_for_a_thread_that_asks_while_lines_are_published() {
    check(3, || {
        let published = Arc::new(begun());
        let asker = thread::spawn({
            let published = Arc::clone(&published);
            move || {
                let mut last = 0;
                // On the first line, past its end (with a truth beyond, at and behind it), and on later lines.
                for (ticks, truth) in [(15, 1005), (21, 1200), (22, 1201), (41, 1100)] {
                    let nanos = ask(&published, ticks, truth);
                    assert!(last <= nanos, "fell from {last} to {nanos} at tick {ticks}");
                    last = nanos;
                }
            }
        });
        // The truth has it that the first line was ahead, then that the second one was behind.
        published.publish(|lowest| line(20, lowest.max(1000)));
        published.publish(|lowest| line(40, lowest.max(1100)));
        asker.join().unwrap();
        let (_, newest) = published.read();
        assert!(newest.ticks0 == 40 && newest.nanos0 >= 1100);
    });
}

#[test]
fn a_line_starts_above_what_two_threads_were_given_past_the_last_ones_end() {
    check(3, || {
        let published = Arc::new(begun());
        let highest = Arc::new(AtomicU64::new(0));
        let askers = [(21, 1100), (22, 1300)].map(|(ticks, truth)| {
            let (published, highest) = (Arc::clone(&published), Arc::clone(&highest));
            thread::spawn(move || {
                let given = ask(&published, ticks, truth);
                // The line after the one that is being published starts at tick 100: whoever sees it, sees this.
                highest.fetch_max(given, Ordering::Relaxed);
                let again = ask(&published, ticks + 2, truth + 1);
                assert!(given <= again, "fell from {given} to {again}");
            })
        });
        published.publish(|lowest| line(20, lowest));
        for asker in askers {
            asker.join().unwrap();
        }
        let last = published.publish(|lowest| line(100, lowest));
        assert!(last.nanos0 >= highest.load(Ordering::Relaxed));
    });
}

/// Lines whose words belong together in a way that a mixture would not.
#[test]
fn no_reader_takes_words_of_two_lines_for_one() {
    check(4, || {
        let published = Arc::new(begun());
        let reader = thread::spawn({
            let published = Arc::clone(&published);
            move || {
                let (_, line) = published.read();
                assert!(line == self::line(10, 1000) || line.nanos0 == line.ticks0 * 1000, "{line:?}");
            }
        });
        for ticks0 in [100, 200, 300] {
            published.publish(|_| line(ticks0, ticks0 * 1000));
        }
        reader.join().unwrap();
    });
}
