//! The allocator of this program. It counts what it hands out, and tells one test of each call.

use crate::fixtures::*;
use crate::record_within_the_allocator::{Arena, note};
use std::alloc::{GlobalAlloc, Layout, System};

pub struct Allocator;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes that are handed out.
pub fn heap_bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

// SAFETY: all functions pass their arguments on to the system's allocator or to the arena, and return what it returns.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        note(layout.size());
        if let Some(place) = Arena::take(layout) {
            return place;
        }
        // SAFETY: the caller keeps to the rules of this function, which are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        note(layout.size());
        if !Arena::owns(place) {
            // SAFETY: as above; the place comes from the system's allocator.
            unsafe { System.dealloc(place, layout) }
        }
    }
}
