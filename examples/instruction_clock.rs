//! A program whose spans take the same number of instructions in each run. It sorts, formats, and runs four threads
//! that do not allocate.
//!
//! ```console
//! $ cargo build --release --example instruction_clock
//! $ eventring icount -- target/release/examples/instruction_clock
//! ```
//!
//! Without QEMU the program does the same work, but its events carry no counts of instructions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use tracing::{info, info_span};

/// The numbers that each thread mixes.
const ROUNDS: u64 = 100_000;

fn main() {
    let _recording = eventring::tracing::init("instruction-clock");
    // The first use of a span's place in the source registers it. If several threads raced to do so, the winner would
    // execute more instructions. So the main thread does everything once before.
    work("warm-up");
    mix_in_span(0);

    work("work");
    let threads: Vec<_> = (1..=4).map(|thread| std::thread::spawn(move || mix_in_span(thread))).collect();
    let mixed: Vec<u64> = threads.into_iter().map(|thread| thread.join().expect("a thread that ends")).collect();
    println!("{mixed:x?}");
}

fn work(what: &str) {
    let _work = info_span!("work", what).entered();
    let mut numbers = info_span!("make").in_scope(|| numbers(10_000));
    info_span!("sort").in_scope(|| numbers.sort_unstable());
    let text = info_span!("format").in_scope(|| format_all(&numbers));
    info!(bytes = text.len(), "formatted");
    info_span!("count").in_scope(|| black_box(letters(&text)));
}

/// Returns numbers in no order, the same ones each time.
fn numbers(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    std::iter::repeat_with(|| next(&mut state)).take(count).collect()
}

fn format_all(numbers: &[u64]) -> String {
    let mut text = String::new();
    for number in numbers {
        writeln!(text, "{number} = {number:#x}").expect("a string takes all text");
    }
    text
}

/// Counts letters. A `HashMap` with its random seed would take another number of instructions in each run.
fn letters(text: &str) -> BTreeMap<char, usize> {
    let mut letters = BTreeMap::new();
    text.chars().for_each(|letter| *letters.entry(letter).or_default() += 1);
    letters
}

/// Mixes numbers in a span, without an allocation.
fn mix_in_span(thread: u64) -> u64 {
    let _mix = info_span!("mix", thread).entered();
    let mut state = thread + 1;
    let first = info_span!("half").in_scope(|| mix(&mut state, ROUNDS / 2));
    let second = info_span!("half").in_scope(|| mix(&mut state, ROUNDS / 2));
    first ^ second
}

fn mix(state: &mut u64, rounds: u64) -> u64 {
    (0..rounds).fold(0, |sum: u64, _| sum.wrapping_add(next(state)))
}

/// Returns the next number of an xorshift generator.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
