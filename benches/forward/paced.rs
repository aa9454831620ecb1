//! A stand-in for a service: it records the spans of requests at a given rate, on two threads.
//!
//! `paced RING EVENTS_PER_SECOND SECONDS`

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tracing::{info, info_span};

/// The number of threads that record.
const THREADS: u64 = 2;
/// The events of a request: four spans are made, entered, left and closed, one gets another value, and a log record.
const EVENTS_OF_REQUEST: u64 = 18;
/// The pause between two bursts.
const PAUSE: Duration = Duration::from_millis(1);

fn request(number: u64) {
    let request =
        info_span!("request", method = "GET", path = "/items", customer = number, status = tracing::field::Empty);
    let _request = request.enter();
    info_span!("read").in_scope(|| black_box(number));
    info_span!("query", sql = "SELECT name, stock FROM items WHERE id = ?1").in_scope(|| {
        info_span!("sqlite", rows = 1_u64).in_scope(|| black_box(number));
    });
    request.record("status", 200_u64);
    info!(number, "answered");
}

/// Makes requests at a rate for some time. Returns how many it has made.
fn requests(per_second: u64, time: Duration) -> u64 {
    let begin = Instant::now();
    let mut made = 0;
    while begin.elapsed() < time {
        let due = (begin.elapsed().as_nanos() * u128::from(per_second) / 1_000_000_000) as u64;
        (made..due).for_each(request);
        made = due.max(made);
        std::thread::sleep(PAUSE);
    }
    made
}

fn main() {
    let mut words = std::env::args().skip(1);
    let ring = words.next().expect("the ring");
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
    let (rate, time) = (number(), Duration::from_secs(number()));
    let recorder = PerfRecorder::builder().config(&ring).build().expect("a recorder");
    tracing::subscriber::set_global_default(RecorderSubscriber::new(recorder)).expect("no other subscriber");
    let begin = Instant::now();
    let of_thread = rate / EVENTS_OF_REQUEST / THREADS;
    let threads: Vec<_> = (0..THREADS).map(|_| std::thread::spawn(move || requests(of_thread, time))).collect();
    let made: u64 = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    let seconds = begin.elapsed().as_secs_f64();
    let rate = (made * EVENTS_OF_REQUEST) as f64 / seconds;
    println!("{made} requests, some {rate:.0} events/s for {seconds:.1} s");
}
