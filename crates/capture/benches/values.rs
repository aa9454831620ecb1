//! What the values of blocks cost: the processor time of captures of what is in rings, for an event.

#![allow(missing_docs)]

use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring::{EventPayload, EventType, record};
use eventring_capture::{CaptureOptions, NextRing, capture_rings};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

const EVENTS: u64 = 1 << 20;
const ROUNDS: usize = 15;

#[derive(EventPayload)]
struct Order {
    id: u64,
    customer: u32,
    cents: u32,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    Placed = 2,
}

/// Returns numbers that look random.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

fn processor_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the processor time for an event, and the bytes of the file.
fn capture(ring: &Path, to: &Path) -> (f64, u64) {
    let mut rings = [Reader::open(ring).unwrap()].into_iter();
    let begin = processor_nanos();
    let options = CaptureOptions::new().duration(Duration::ZERO).overwrite(true);
    let mut next = || rings.next().map_or(NextRing::NoMore, NextRing::Ring);
    let summary = capture_rings(&mut next, to, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    ((processor_nanos() - begin) as f64 / summary.stats.events() as f64, std::fs::metadata(to).unwrap().len())
}

fn main() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let place = |name: &str| directory.path().join(name);
    let spans = |name: &str| {
        let recorder = PerfRecorder::builder().config(place(name)).shifts(20, 27).shards(1).build().unwrap();
        (RecorderSubscriber::new(recorder.clone()), recorder)
    };
    let (subscriber, _small) = spans("small");
    tracing::subscriber::with_default(subscriber, || {
        for id in 0..EVENTS / 4 {
            drop(tracing::info_span!("work", id).entered());
        }
    });
    let (subscriber, _requests) = spans("requests");
    tracing::subscriber::with_default(subscriber, || {
        for id in 0..EVENTS / 16 {
            let path = ["/", "/cart", "/item", "/pay"][mixed(id) as usize % 4];
            let _request = tracing::info_span!("request", method = "GET", path, id).entered();
            tracing::info_span!("query", table = "orders", rows = mixed(id) % 100).in_scope(|| ());
            tracing::info_span!("render", template = "page").in_scope(|| ());
            tracing::info!(status = 200, bytes = mixed(id) % 100_000, "done");
        }
    });
    let builder =
        Recorder::builder(ContentDescription::from_event_type::<Shop>()).config(place("typed")).shifts(20, 27);
    let typed = builder.build().unwrap();
    for id in 0..EVENTS {
        record!(&typed => Shop::Placed, &Order { id, customer: mixed(id) as u32, cents: mixed(id) as u32 % 10_000 });
    }
    for name in ["small", "requests", "typed"] {
        let mut found: Vec<(f64, u64)> = (0..ROUNDS).map(|_| capture(&place(name), &place("capture"))).collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        println!("{name:10} {:7.1} ns an event (fastest {:.1}), {} bytes", found[ROUNDS / 2].0, found[0].0, found[0].1);
    }
}
