//! Counts what each span allocates, and the bytes that stay allocated.
//!
//! ```console
//! $ EVENTRING_KEEP=1 cargo run --release --example allocations --features allocations
//! $ eventring summary --allocations allocations
//! $ eventring capture allocations -o before.evc
//! ```
//!
//! The counts are the same in each run, so `eventring diff before.evc after.evc --fail-if 'allocations(order)>+1%'` finds
//! a change of the program that allocates more. Here, an argument is the number of allocations more in each order.

use eventring::alloc::Counted;
use eventring::scope;
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Counted<System> = Counted::with_live_bytes(System);

fn order(number: usize, more: usize) -> String {
    let _scope = scope!("order");
    let lines: Vec<String> = (0..10 + more).map(|line| format!("{number}:{line}")).collect();
    lines.concat()
}

fn main() {
    if let Err(error) = eventring::tracing::try_init("allocations") {
        eprintln!("{error}");
    }
    let more = std::env::args().nth(1).and_then(|more| more.parse().ok()).unwrap_or(0);
    let mut cache = Vec::new();
    for number in 0..1_000 {
        let order = order(number, more);
        let _scope = scope!("keep");
        // Nothing ever removes it.
        cache.push(order.into_boxed_str());
        if number % 100 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(11));
        }
    }
    println!("{} orders", cache.len());
}
