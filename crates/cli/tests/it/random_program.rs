//! Programs that record random trees of spans, with what is in them, on several threads.

use crate::fixtures::*;
use eventring_stress::random::Random;
use eventring_tokio::spawn_named;
use tracing::debug;

#[derive(EventPayload, Clone, Copy)]
struct Order {
    price: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", ext(0 = order: seqno))]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    OrderPlaced = 2,
    #[event(payload = Order)]
    OrderShipped = 3,
}

/// Records nested spans with what is in them. Scopes are only in programs with a recorder for the whole program.
fn record_spans(seeded: &mut Random, orders: &Recorder, depth: u64) {
    for _ in 0..=seeded.below(3) {
        let number = seeded.below(5);
        let _scope = (seeded.below(4) == 0).then(|| eventring::scope!("step", number));
        let span = match seeded.below(3) {
            0 => info_span!(target: "shop::web", "request", number),
            1 => info_span!(target: "shop::db", "query", number, user = "ada"),
            _ => info_span!(target: "shop::db", "fetch"),
        };
        span.in_scope(|| {
            match seeded.below(5) {
                0 => info!(target: "shop::web", number = seeded.below(5), "asked"),
                1 => warn!(target: "shop::db", "slow"),
                2 => debug!(target: "shop::db", user = "bob", "quick"),
                3 => _ = record!(orders => Shop::OrderPlaced, &Order { price: seeded.below(9) }; ext[0] = seeded.below(5)),
                _ => _ = record!(orders => Shop::OrderShipped, &Order { price: seeded.below(9) }),
            }
            if depth < 3 {
                record_spans(seeded, orders, depth + 1);
            }
        });
    }
}

/// Records so many trees on each thread into rings of these names: one of spans, and one of typed events. The program has
/// ended when this returns.
pub fn record(spans: &Path, orders: &Path, trees: u64, seed: u64) {
    let perf = spans_in(spans).shifts(15, 21).shards(4);
    let dispatch = Dispatch::new(RecorderSubscriber::new(perf.keep(true).build().unwrap()));
    let recorder = typed_in::<Shop>(orders).keep(true).compact(true).shifts(15, 21).build().unwrap();
    // One thread after the other: an event of a span on another thread has the same time otherwise.
    for thread in 0..3 {
        let (mut seeded, recorder, dispatch) = (Random(seed * 7 + thread + 1), &recorder, &dispatch);
        thread::scope(|scope| {
            let work = move || {
                dispatcher::with_default(dispatch, || {
                    (0..trees).for_each(|_| record_spans(&mut seeded, recorder, 0));
                });
            };
            thread::Builder::new().name(format!("w{thread}")).spawn_scoped(scope, work).unwrap();
        });
    }
}

/// Places an order in each of so many spans `query`, in a new ring.
pub fn place_orders(orders: &Path, count: u64) {
    let recorder = typed_in::<Shop>(orders).keep(true).compact(true).shifts(15, 21).build().unwrap();
    for price in 0..count {
        info_span!("query").in_scope(|| _ = record!(recorder => Shop::OrderPlaced, &Order { price }));
    }
}

/// Polls tasks that end, that are cancelled, and that are alive when this returns.
fn record_tasks(seeded: &mut Random) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for number in 0..3 + seeded.below(4) {
            let (polls, waits) = (seeded.below(4), seeded.below(3) == 0);
            let task = spawn_named(if number % 2 == 0 { "even" } else { "odd" }, async move {
                for step in 0..polls {
                    info_span!(target: "shop::db", "fetch", step).in_scope(|| info!(step, "polled"));
                    tokio::task::yield_now().await;
                }
                if waits {
                    std::future::pending::<()>().await;
                }
            });
            tokio::task::yield_now().await;
            match seeded.below(3) {
                0 => task.abort(),
                1 if !waits => task.await.unwrap(),
                _ => {}
            }
        }
    });
    runtime
}

/// Plays a program that records scopes and tasks, too, and then dies in the middle of spans.
pub fn record_and_die(trees: u64, seed: u64) -> ! {
    let (spans, seeded) = (child::place(), &mut Random(seed));
    let _recording = eventring::tracing::try_init(format!("{}:15:21", spans.display())).unwrap();
    let orders = typed_in::<Shop>(&spans.with_extension("orders")).keep(true).shifts(15, 21).build().unwrap();
    (0..trees).for_each(|_| record_spans(seeded, &orders, 0));
    let _tasks = record_tasks(seeded);
    let _open = info_span!(target: "shop::web", "request", number = 1).entered();
    let _step = eventring::scope!("step");
    let _left = info_span!(target: "shop::db", "query", user = "ada");
    std::process::abort();
}
