//! Allocators that count: eventring's, those of hotpath and dial9, and the bare allocator of the system.

use crate::Medians;
use crate::interleave::{Cases, fastest};
use dial9::memory::{Dial9Allocator, MemoryProfiler, MemoryProfilingConfig};
use dial9::{MemoryBuffer, RecorderPipelineExt, recorder};
use eventring::alloc::Counted;
use hotpath::CountingAllocator;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

/// Blocks that are allocated, and then freed, at a time: few enough for the caches.
const BLOCKS: usize = 256;
const LAYOUT: Layout = Layout::new::<[u64; 8]>();

pub fn measure(rounds: usize) -> Medians {
    static SYSTEM: System = System;
    static EVENTRING: Counted<System> = Counted::new(System);
    static LIVE: Counted<System> = Counted::with_live_bytes(System);
    static HOTPATH: CountingAllocator<System> = CountingAllocator::with(System);
    static DIAL9: Dial9Allocator = Dial9Allocator::system();
    let sampled = recorder(MemoryBuffer::new(1 << 20).unwrap()).with_custom_pipeline(|pipe| pipe).build();
    // As dial9 samples by default.
    let config = MemoryProfilingConfig::builder().build();
    let profiler = MemoryProfiler::from_config(config).install(sampled.handle().clone());
    let _profiler = profiler.expect("dial9 needs RUSTFLAGS=\"-C force-frame-pointers=yes\"");
    let mut cases = Cases::default();
    let blocks = RefCell::new([std::ptr::null_mut(); BLOCKS]);
    add(&mut cases, "system", &SYSTEM, &blocks);
    add(&mut cases, "eventring", &EVENTRING, &blocks);
    add(&mut cases, "eventring_live", &LIVE, &blocks);
    add(&mut cases, "hotpath", &HOTPATH, &blocks);
    add(&mut cases, "dial9", &DIAL9, &blocks);
    let mut medians = cases.measure(rounds);
    for name in ["eventring", "eventring_live", "hotpath", "dial9"] {
        for what in ["alloc", "free"] {
            let [with, without] = [name, "system"].map(|name| format!("{what}_{name}"));
            let over = format!("{with}_over_system");
            for (of, over) in [(with.clone(), over.clone()), (fastest(&with), fastest(&over))] {
                let bare = if of == with { without.clone() } else { fastest(&without) };
                medians.insert(over, medians[&of] - medians[&bare]);
            }
        }
    }
    medians
}

/// Adds a case for the allocations of an allocator, and one for the frees.
fn add<'a, A: GlobalAlloc>(
    cases: &mut Cases<'a>,
    name: &str,
    allocator: &'static A,
    blocks: &'a RefCell<[*mut u8; BLOCKS]>,
) {
    // SAFETY: the layout is not empty.
    let allocate = move || blocks.borrow_mut().iter_mut().for_each(|block| *block = unsafe { allocator.alloc(LAYOUT) });
    // SAFETY: `allocate` has filled all places.
    let free = move || blocks.borrow().iter().for_each(|block| unsafe { allocator.dealloc(black_box(*block), LAYOUT) });
    for (what, is_alloc) in [("alloc", true), ("free", false)] {
        cases.add_batch(format!("{what}_{name}"), 400 * BLOCKS as u64, move |operations| {
            let mut sum = std::time::Duration::ZERO;
            for _ in 0..operations / BLOCKS as u64 {
                let begun = Instant::now();
                allocate();
                let allocated = Instant::now();
                free();
                sum += if is_alloc { allocated - begun } else { allocated.elapsed() };
            }
            sum
        });
    }
}
