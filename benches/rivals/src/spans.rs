//! Spans and log records through `tracing`: create, enter, exit, close.

use crate::Medians;
use crate::floors::{Floor, Nothing, Records, Stamps, Unclaimed};
use crate::interleave::{Cases, fastest};
use crate::recording::{SHARD, warm_recorder, warm_reference};
use eventring::tracing::{PERF, PerfRecorder, RecorderLayer, RecorderSubscriber};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tracing::Dispatch;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

/// The kinds of cases that run under each subscriber.
pub const KINDS: [&str; 7] = [
    "span_*_0f",
    "span_*_2f",
    "span_nested3_*",
    "event_2f_*",
    "event_text_*",
    "event_text_static_*",
    "event_text_2u_*",
];

/// Adds the cases of one subscriber. `name` replaces the `*` in the names of [`KINDS`].
pub fn add<'a>(cases: &mut Cases<'a>, name: &str, operations: u64, dispatch: Dispatch) {
    for kind in KINDS {
        let dispatch = dispatch.clone();
        cases.add_batch(kind.replace('*', name), operations, move |operations| {
            tracing::dispatcher::with_default(&dispatch, || run(kind, operations))
        });
    }
}

/// Runs one kind of case under the current subscriber.
fn run(kind: &str, operations: u64) -> Duration {
    // Each kind of case has its own loop, so that the comparison of the names is outside of the measured time.
    match kind {
        "span_*_0f" => time(operations, |_| drop(tracing::info_span!("work").entered())),
        "span_*_2f" => time(operations, |i| {
            drop(tracing::info_span!("work", id = black_box(i), name = "some text").entered());
        }),
        "span_nested3_*" => time(operations, |_| {
            let _a = tracing::info_span!("a").entered();
            let _b = tracing::info_span!("b").entered();
            let _c = tracing::info_span!("c").entered();
        }),
        "event_2f_*" => time(operations, |i| tracing::info!(id = black_box(i), name = "some text")),
        "event_text_*" => time(operations, |_| tracing::info!("some text")),
        "event_text_static_*" => time(operations, |_| tracing::info!("some text that is always the same")),
        "event_text_2u_*" => {
            time(operations, |i| tracing::info!("order {} has {} lines", black_box(i), black_box(17_u64)))
        }
        other => unreachable!("no case is named {other}"),
    }
}

/// Returns how long `operations` calls take.
#[inline(always)]
pub fn time(operations: u64, operation: impl Fn(u64)) -> Duration {
    let start = Instant::now();
    (0..operations).for_each(operation);
    start.elapsed()
}

/// Makes a perf recorder of default sizes, with a name, as programs have it. Its files go with it.
pub fn perf_recorder() -> PerfRecorder {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("eventring-rivals-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    PerfRecorder::builder().config(name.as_str()).build().expect("memory for a ring")
}

pub fn measure(rounds: usize) -> Medians {
    let mut cases = Cases::default();
    add(&mut cases, "subscriber", 4_000, Dispatch::new(RecorderSubscriber::new(perf_recorder())));
    let layer = Registry::default().with(RecorderLayer::new(perf_recorder()));
    add(&mut cases, "layer", 4_000, Dispatch::new(layer));
    add(&mut cases, "registry", 4_000, Dispatch::new(Registry::default()));
    // Scopes go to the global recorder.
    let _ = PERF.install(perf_recorder());
    cases.add_batch("scope_0f", 4_000, |operations| time(operations, |_| drop(eventring::scope!("work"))));
    cases.add_batch("scope_2f", 4_000, |operations| {
        time(operations, |i| drop(eventring::scope!("work", id = black_box(i), bytes = black_box(17_u32))))
    });
    cases.add_batch("log_text", 4_000, |operations| time(operations, |_| eventring::log::info!("some text")));
    cases.add_batch("log_text_2u", 4_000, |operations| {
        time(operations, |i| eventring::log::info!("order {} has {} lines", black_box(i), black_box(17_u64)))
    });
    // These cases are floors. Each shows the least cost of one part of a recorder's work.
    add(&mut cases, "floor_nothing", 4_000, Dispatch::new(Floor(Nothing)));
    add(&mut cases, "floor_stamps", 4_000, Dispatch::new(Floor(Stamps)));
    add(&mut cases, "floor_records", 4_000, Dispatch::new(Floor(Records(warm_recorder(SHARD)))));
    add(&mut cases, "floor_unclaimed", 4_000, Dispatch::new(Floor(Unclaimed(warm_reference(SHARD)))));
    // These cases are the same floors, through a layer.
    add(&mut cases, "layer_floor_nothing", 4_000, Dispatch::new(Registry::default().with(Floor(Nothing))));
    add(&mut cases, "layer_floor_stamps", 4_000, Dispatch::new(Registry::default().with(Floor(Stamps))));
    add(
        &mut cases,
        "layer_floor_unclaimed",
        4_000,
        Dispatch::new(Registry::default().with(Floor(Unclaimed(warm_reference(SHARD))))),
    );
    add_tracy(&mut cases);
    let mut medians = cases.measure(rounds);
    // The last cases have a filter that refuses every call site (`level_off`), or no subscriber at all (`span_off`).
    // These cases run after all other subscribers were dropped. The other subscribers want every call site. While they
    // exist, subscribers disagree, and `tracing` asks the current subscriber at each call.
    let mut cases = Cases::default();
    cases.add_batch("span_off", 20_000, |operations| run("span_*_0f", operations));
    let off = Registry::default().with(tracing_subscriber::filter::LevelFilter::OFF);
    add(&mut cases, "level_off", 20_000, Dispatch::new(off));
    medians.extend(cases.measure(rounds));
    for layer in ["layer", "layer_floor_nothing", "layer_floor_stamps", "layer_floor_unclaimed"] {
        for of in [str::to_string, fastest] {
            let alone = medians[&of(&format!("span_{layer}_0f"))] - medians[&of("span_registry_0f")];
            medians.insert(of(&format!("span_{layer}_0f_over_registry")), alone);
        }
    }
    medians
}

/// Adds Tracy, the one recorder of another project that has no other thread at work. So its cases can take turns
/// with those of eventring.
fn add_tracy(cases: &mut Cases<'_>) {
    let tracy = tracing_tracy::TracyLayer::default();
    add(cases, "tracing_tracy", 500, Dispatch::new(Registry::default().with(tracy)));
}
