//! The faults that are planted, each at one of several places.

use super::{PLACES, Random, sleep, span_at, usual};
use crate::fixtures::*;
use eventring_tokio::spawn_named;
use eventring_tokio::sync::Mutex;
use std::future::poll_fn;
use std::task::Poll;

/// A fault: the name of its flag, and how it is recorded at a place. The answer must name the place.
pub(super) type Fault = (&'static str, fn(usize, &mut Random));

/// The kinds of faults.
pub(super) const FAULTS: [Fault; 13] = [
    ("error_burst", |place, seeded| {
        span_at(place).in_scope(|| (0..12 + seeded.below(20)).for_each(|_| error!("the store does not answer")));
    }),
    ("panic", |place, _| {
        span_at(place).in_scope(|| error!("thread 'worker' panicked at src/{}.rs:7:9", PLACES[place]))
    }),
    ("slow_span", |place, seeded| {
        (0..40).for_each(|_| span_at(place).in_scope(|| std::hint::black_box(())));
        span_at(place).in_scope(|| sleep(60 + seeded.below(40)));
    }),
    ("slow_child", |place, seeded| {
        let batch = |millis| {
            info_span!("batch").in_scope(|| span_at(place).in_scope(|| sleep(millis)));
        };
        (0..30).for_each(|_| batch(0));
        batch(80 + seeded.below(40));
    }),
    ("hung_span", |place, seeded| {
        let hung = span_at(place);
        sleep(700);
        usual(seeded, 20);
        std::mem::forget(hung);
    }),
    ("latency_step", |place, _| {
        (0..150).for_each(|_| span_at(place).in_scope(|| std::hint::black_box(())));
        (0..150).for_each(|_| span_at(place).in_scope(|| sleep(3)));
    }),
    ("open_spans", |place, _| (0..1500).for_each(|_| std::mem::forget(span_at(place)))),
    ("silence", |place, seeded| {
        usual(seeded, 1000);
        span_at(place).in_scope(|| sleep(1300));
    }),
    ("long_poll", |place, seeded| {
        let millis = 60 + seeded.below(60);
        run(async move { spawn_named(PLACES[place], async move { sleep(millis) }).await.unwrap() });
    }),
    ("lock_wait", |place, seeded| {
        let time = Duration::from_millis(90 + seeded.below(60));
        run(async move {
            let lock = Arc::new(Mutex::new(0));
            let (held, wanted) = (lock.clone(), lock);
            let holder = spawn_named(PLACES[place], async move {
                let _guard = held.lock().await;
                tokio::time::sleep(time).await;
            });
            tokio::task::yield_now().await;
            spawn_named("waiter", async move { drop(wanted.lock().await) }).await.unwrap();
            holder.await.unwrap();
        });
    }),
    ("task_deadlock", |place, _| {
        run(async move {
            let locks = Arc::new([Mutex::new(0), Mutex::new(1)]);
            for first in 0..2 {
                let locks = locks.clone();
                let takes = async move {
                    let _held = locks[first].lock().await;
                    tokio::task::yield_now().await;
                    drop(locks[1 - first].lock().await);
                };
                spawn_named(PLACES[place], takes.instrument(span_at(place)));
            }
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            look();
        });
    }),
    ("lost_waker", |place, _| {
        run(async move {
            let drops_its_waker = poll_fn(|context| {
                drop(context.waker().clone());
                Poll::<()>::Pending
            });
            spawn_named(PLACES[place], drops_its_waker);
            tokio::task::yield_now().await;
            look();
        });
    }),
    ("wake_storm", |place, seeded| {
        let wakes = 2000 + seeded.below(1000);
        let stormy = poll_fn(move |context| {
            (0..wakes).for_each(|_| context.waker().wake_by_ref());
            Poll::Ready(())
        });
        run(async move { spawn_named(PLACES[place], stormy).await.unwrap() });
    }),
];

/// Runs a future on a runtime of its own.
fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

thread_local! {
    static LOOK: std::cell::RefCell<Option<Box<dyn FnOnce()>>> = const { std::cell::RefCell::new(None) };
}

/// Sets what looks at the recording while the tasks of a fault exist: at the end of their runtime they are cancelled.
pub(super) fn on_look(look: impl FnOnce() + 'static) {
    LOOK.set(Some(Box::new(look)));
}

/// Lets it look, unless it has looked.
pub(super) fn look() {
    if let Some(look) = LOOK.take() {
        look();
    }
}
