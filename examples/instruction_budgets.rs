//! A program that executes the same instructions in each run, so that their number can have budgets (docs/BUDGETS.md):
//!
//! ```console
//! $ cargo build --release --example instruction_budgets
//! $ eventring icount -o base.evc -- target/release/examples/instruction_budgets
//! $ eventring budget update budgets.toml base.evc
//! $ examples/instruction_budgets.sh budgets.toml counted base.evc -- target/release/examples/instruction_budgets
//! ```
//!
//! The program does not depend on time, addresses or random numbers. Its argument is the number of turns of the inner
//! loop (default 100).

use std::hint::black_box;
use tracing::info_span;

fn main() {
    if let Err(error) = eventring::tracing::try_init("instruction_budgets") {
        eprintln!("{error}");
    }
    let turns = std::env::args().nth(1).and_then(|turns| turns.parse().ok()).unwrap_or(100);
    let mut sum = 0_u64;
    for order in 0..50 {
        let _order = info_span!("order").entered();
        for item in 0..4 {
            sum = sum.wrapping_add(info_span!("price").in_scope(|| price(order * 4 + item, turns)));
        }
    }
    println!("all orders together: {sum}");
}

fn price(item: u64, turns: u32) -> u64 {
    (0..turns).fold(item, |price, _| black_box(price.wrapping_mul(31).wrapping_add(7)))
}
