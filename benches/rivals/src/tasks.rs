//! The cost of a poll and a wake of a tokio task in four cases: without a recorder, with eventring, with dial9, and
//! with the layer of tokio-console.
//!
//! A task is polled again and again, and wakes itself once or nine times in each poll. The cost of a wake is an eighth
//! of the difference between these two times. The cost of a poll is the time with one wake, less the cost of the wake.

use crate::Medians;
use crate::interleave::{Cases, fastest};
use crate::spans::perf_recorder;
use dial9::Dial9HandleTokioExt as _;
use eventring::tracing::RecorderSubscriber;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tracing::Dispatch;
use tracing::dispatcher::with_default;
use tracing_subscriber::layer::SubscriberExt as _;

/// So few that a batch is over before another program gets the processor.
const POLLS: u64 = 250;
/// The wakes of a poll, in the two kinds of cases.
const WAKES: [u64; 2] = [1, 9];

/// A task that is polled so often, with so many wakes in each poll. Returns how long that took.
fn task(polls: u64, wakes: u64) -> impl Future<Output = Duration> + Send + 'static {
    let (mut left, mut start) = (polls, None);
    poll_fn(move |context| {
        let start: Instant = *start.get_or_insert_with(Instant::now);
        if left == 0 {
            return Poll::Ready(start.elapsed());
        }
        left -= 1;
        (0..wakes).for_each(|_| context.waker().wake_by_ref());
        Poll::Pending
    })
}

fn builder() -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.enable_all();
    builder
}

fn runtime() -> Runtime {
    builder().build().expect("a runtime")
}

/// Adds the cases of a recorder. `run` runs a task to its end.
fn add<'a>(cases: &mut Cases<'a>, name: &str, run: impl Fn(u64, u64) -> Duration + Clone + 'a) {
    for wakes in WAKES {
        let run = run.clone();
        cases.add_batch(format!("task_{wakes}_{name}"), POLLS, move |polls| run(polls, wakes));
    }
}

/// Measures cases, and what a poll and a wake cost beside those of plain tokio in the same run.
fn costs(mut cases: Cases<'_>, names: &[&str], rounds: usize) -> Medians {
    let plain = Rc::new(runtime());
    add(&mut cases, "plain", move |polls, wakes| {
        plain.block_on(async { tokio::spawn(task(polls, wakes)).await.unwrap() })
    });
    let found = cases.measure(rounds);
    let mut medians = Medians::new();
    for of in [str::to_string, fastest] {
        let cost = |name: &str| {
            let [one, many] = WAKES.map(|wakes| found[&of(&format!("task_{wakes}_{name}"))]);
            let wake = (many - one) / (WAKES[1] - WAKES[0]) as f64;
            [("poll", one - wake), ("wake", wake)]
        };
        for name in names {
            for ((kind, nanos), (_, plain)) in cost(name).into_iter().zip(cost("plain")) {
                medians.insert(of(&format!("task_{kind}_{name}")), nanos - plain);
                medians.insert(of(&format!("task_{kind}_plain")), plain);
            }
        }
    }
    medians
}

pub fn measure(rounds: usize) -> Medians {
    // Below INFO, tokio says the same of each task once more, to the layer of tokio-console.
    let subscriber = RecorderSubscriber::new(perf_recorder()).with_max_level(tracing::Level::INFO);
    let (ours, dispatch) = (runtime(), Dispatch::new(subscriber));
    let directory = tempfile::tempdir().expect("a directory");
    let buffer = dial9::DiskBuffer::builder().base_path(directory.path()).max_total_size(256 << 20);
    let recorder = dial9::recorder(buffer.build().expect("a buffer")).build();
    let attached = recorder.handle().attach_tokio_runtime(builder(), dial9::TokioAttachOptions::default());
    let attached = attached.expect("a runtime");
    let mut cases = Cases::default();
    add(&mut cases, "eventring", |polls, wakes| {
        with_default(&dispatch, || ours.block_on(async { eventring_tokio::spawn(task(polls, wakes)).await.unwrap() }))
    });
    add(&mut cases, "dial9", |polls, wakes| dial9::block_on(&attached, task(polls, wakes)));
    let mut medians = costs(cases, &["eventring", "dial9"], rounds);
    drop(dispatch);

    // While a subscriber wants tokio's own spans, `tracing` asks the others about each of them. So this one comes
    // alone. It keeps counts of each task, and no events. A thread of it serves the console.
    let layer = console_subscriber::ConsoleLayer::builder().server_addr(([127, 0, 0, 1], 0)).spawn();
    let (watched, dispatch) = (runtime(), Dispatch::new(tracing_subscriber::registry().with(layer)));
    let mut cases = Cases::default();
    add(&mut cases, "tokio_console", |polls, wakes| {
        with_default(&dispatch, || watched.block_on(async { tokio::spawn(task(polls, wakes)).await.unwrap() }))
    });
    medians.extend(costs(cases, &["tokio_console"], rounds));
    medians
}
