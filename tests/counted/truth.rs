//! The truth: an allocator that counts by labels, which the test sets itself.

use crate::fixtures::*;
use eventring::schema::perf::Allocated;
use std::alloc::{GlobalAlloc, Layout, System};

/// The bytes that a block has more if its live bytes are counted.
fn header(layout: Layout) -> usize {
    layout.align().max(8)
}

/// What the test does now: the label of its innermost span.
pub const LABELS: usize = 8;
/// The label of all that does not count.
pub const NO_LABEL: usize = LABELS - 1;

thread_local! {
    static LABEL: Cell<usize> = const { Cell::new(NO_LABEL) };
    static COUNTS: [Cell<Allocated>; LABELS] = const {
        [const { Cell::new(Allocated { allocations: 0, bytes: 0, frees: 0, freed_bytes: 0 }) }; LABELS]
    };
}

/// Sets the label, and returns the one before.
pub fn set_label(label: usize) -> usize {
    LABEL.replace(label)
}

/// Takes what the thread has counted.
pub fn take() -> [Allocated; LABELS] {
    COUNTS.with(|counts| std::array::from_fn(|label| counts[label].take()))
}

fn count(more: Allocated) {
    COUNTS.with(|counts| {
        let of_label = &counts[LABEL.get()];
        of_label.set(of_label.get().plus(more));
    });
}

fn allocated(bytes: usize) -> Allocated {
    Allocated { allocations: 1, bytes: bytes as u64, ..Allocated::default() }
}

fn freed(bytes: usize) -> Allocated {
    Allocated { frees: 1, freed_bytes: bytes as u64, ..Allocated::default() }
}

/// True while the allocator takes a lock that is recorded.
pub static LOCKS: AtomicBool = AtomicBool::new(false);
static LOCK: eventring::sync::Mutex<u64> = eventring::sync::Mutex::new("allocator", 0);

fn lock() -> Option<impl Sized> {
    LOCKS.load(Ordering::Relaxed).then(|| LOCK.lock())
}

pub struct Truth;

// SAFETY: all functions pass their arguments on to the system's allocator, and return what it returns.
unsafe impl GlobalAlloc for Truth {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _locked = lock();
        count(allocated(layout.size() - header(layout)));
        // SAFETY: the caller keeps to the rules of this function, which are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let _locked = lock();
        count(freed(layout.size() - header(layout)));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _locked = lock();
        count(allocated(layout.size() - header(layout)));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let _locked = lock();
        count(freed(layout.size() - header(layout)).plus(allocated(bytes - header(layout))));
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, bytes) }
    }
}
