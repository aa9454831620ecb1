//! A benchmark: how many events a [`BlockBuilder`] turns into blocks in one second of processor time. It measures three
//! settings of [`Wanted`]: everything, transactions, and headers only.
//!
//! `cargo bench -p eventring-exec -- FILE` builds the blocks of a snapshot many times. The default is the snapshot in
//! `tests/data`.

use eventring::reader::{Next, PayloadRead, Reader, Seek};
use eventring_exec::{BlockBuilder, Wanted};

/// Returns the processor time of this thread in seconds, as the kernel counts it.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("/proc of Linux");
    let nanos: u64 = text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number of nanoseconds");
    nanos as f64 / 1e9
}

fn main() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");
    let file = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or(kept.into());
    let reader = Reader::open(&file).expect("a snapshot");
    let (mut cursor, mut events, mut buffer) = (reader.cursor(), Vec::new(), Vec::new());
    cursor.seek(Seek::Oldest);
    while let Next::Event(event) = cursor.next() {
        let payload = cursor.payload(&event, &mut buffer).valid().unwrap_or_default().to_vec();
        events.push((event, payload));
    }
    // The kernel counts in milliseconds.
    let rounds = 5_000_000_usize.div_ceil(events.len().max(1));
    for (name, wanted) in
        [("everything", Wanted::ALL), ("transactions", Wanted::TRANSACTIONS), ("headers", Wanted::HEADERS)]
    {
        let (mut blocks, mut fastest) = (0, f64::MAX);
        for _ in 0..5 {
            let start = processor_seconds();
            for _ in 0..rounds {
                let mut builder = BlockBuilder::for_ring(&reader, wanted).expect("execution events");
                for (event, payload) in &events {
                    builder.push(event, || PayloadRead::Valid(payload));
                    while builder.pop().is_some() {
                        blocks += 1;
                    }
                }
            }
            fastest = fastest.min(processor_seconds() - start);
        }
        let rate = (rounds * events.len()) as f64 / fastest / 1e6;
        println!("{name:<13} {rate:>7.1} M events/s ({} events, {blocks} blocks and states)", events.len());
    }
}
