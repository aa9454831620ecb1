//! The cost of a poll and a wake of a task, with and without recording: the fastest twentieth of many rounds, in
//! nanoseconds.

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring_tokio::Task;
use std::cell::Cell;
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const ROUNDS: usize = 4000;
const CALLS: u32 = 200;

/// Returns the time of each of the calls of a round.
fn round(calls: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    calls();
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn mean_of_fastest(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[..ROUNDS / 20].iter().sum::<f64>() / (ROUNDS / 20) as f64
}

/// Returns the mean of the fastest twentieth of rounds, for each call.
fn fastest(mut call: impl FnMut()) -> f64 {
    mean_of_fastest((0..ROUNDS).map(|_| round(|| (0..CALLS).for_each(|_| call()))).collect())
}

fn poll(task: &mut Pin<Box<impl Future<Output = ()>>>) {
    let _ = black_box(task.as_mut().poll(&mut Context::from_waker(Waker::noop())));
}

/// Returns the costs of a poll, of a wake that uses up the only clone of the waker, as channels and timers do, and of a
/// further wake before the next poll.
fn costs() -> [f64; 3] {
    let kept: Vec<Cell<Option<Waker>>> = (0..CALLS).map(|_| Cell::new(None)).collect();
    let keep = |to: &'static str, cell| {
        Box::pin(Task::new(
            to,
            poll_fn(move |context: &mut Context<'_>| {
                Cell::set(cell, Some(context.waker().clone()));
                Poll::<()>::Pending
            }),
        ))
    };
    let mut tasks: Vec<_> = kept.iter().map(|cell| keep("measured", cell)).collect();
    let mut rounds = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        rounds[0].push(round(|| tasks.iter_mut().for_each(poll)));
        rounds[1].push(round(|| kept.iter().filter_map(Cell::take).for_each(Waker::wake)));
        tasks.iter_mut().for_each(poll);
        let twice: Vec<Waker> = kept.iter().filter_map(Cell::take).collect();
        twice.iter().for_each(Waker::wake_by_ref);
        rounds[2].push(round(|| twice.iter().for_each(Waker::wake_by_ref)));
    }
    rounds.map(mean_of_fastest)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = fastest(|| {
        black_box(Instant::now());
    });
    let off = costs();
    let recorder = PerfRecorder::builder().anonymous().build()?;
    let on = tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let span = tracing::info_span!("bare");
        let pair = fastest(|| span.in_scope(|| ()));
        let event = fastest(|| tracing::info!(by = 1_u64, "woken"));
        (costs(), pair, event)
    });
    let (on, pair, event) = on;
    println!("Instant::now                      {clock:6.1} ns");
    println!("enter and exit of a bare span     {pair:6.1} ns");
    println!("an event with a field             {event:6.1} ns");
    println!("                                  not recorded    recorded");
    for (what, at) in [("a poll", 0), ("the first wake after a poll", 1), ("a further wake", 2)] {
        println!("{what:<34}{:9.1} ns {:9.1} ns", off[at], on[at]);
    }
    Ok(())
}
