//! What each span allocates: an allocator that counts.
//!
//! One line in the program counts the allocations of all its spans:
//!
//! ```
//! use eventring::alloc::Counted;
//! use std::alloc::System;
//!
//! #[global_allocator]
//! static ALLOCATOR: Counted<System> = Counted::new(System);
//! # fn main() {}
//! ```
//!
//! Each allocation, and each free, counts for the innermost span of the thread. The counts of a thread are recorded when
//! it enters or leaves a span, so there is no event for each allocation. `eventring summary --allocations` shows them.
//!
//! What recording itself allocates does not count. If a process has several recorders, the counts go to the one that
//! records the next enter or exit of the thread.

use crate::tracing::record::threads::allocated::{count_allocation, count_free};
use crate::tracing::record::threads::live_bytes as live;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

/// An allocator that counts what each span allocates. It passes each call to the allocator `A`, for example
/// [`System`](std::alloc::System) or jemalloc.
///
/// An allocation costs about 1 ns more. The [module](self) has an example.
#[derive(Debug)]
pub struct Counted<A> {
    inner: A,
    is_live: bool,
}

impl<A> Counted<A> {
    /// Makes an allocator that counts the allocations and frees of each span, and their bytes.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner, is_live: false }
    }

    /// Makes an allocator that also counts the *live* bytes by the name of the span that has allocated them: those that
    /// were not freed yet. It samples them as counters, at most every 10 ms: `live bytes: NAME`, and `peak bytes: NAME`
    /// for the largest number so far. `live bytes: (all)` is the sum.
    ///
    /// Each allocation then takes 8 bytes more (or as many as its alignment, if that is more), and about 3 ns more. A
    /// thread that records adds its bytes to the sums when it enters or leaves a span, when they have changed by 16 KiB,
    /// and when it ends; any other thread adds them at once.
    #[must_use]
    pub const fn with_live_bytes(inner: A) -> Self {
        Self { inner, is_live: true }
    }
}

/// The bytes before a block whose live bytes are counted: they hold the slot to which the block counts.
const HEADER_BYTES: usize = 8;

/// Returns the layout of a block with its header, and the offset of the block in it. Returns `None` if that is too
/// large.
fn with_header(layout: Layout) -> Option<(Layout, usize)> {
    let align = layout.align().max(HEADER_BYTES);
    // The offset is a multiple of the alignment, so the block is aligned, too.
    let size = layout.size().checked_add(align)?;
    Some((Layout::from_size_align(size, align).ok()?, align))
}

/// Writes the header of a new block, and returns the address of the block. Returns null if `base` is null.
///
/// # Safety
/// `base` is null, or an allocation of a layout that [`with_header`] has returned together with `offset`.
unsafe fn begin_block(base: *mut u8, offset: usize, bytes: usize) -> *mut u8 {
    if base.is_null() {
        return ptr::null_mut();
    }
    let slot = live::allocated(bytes);
    let block = base.wrapping_add(offset);
    // SAFETY: the 8 bytes before the block belong to the allocation, because `offset` is at least 8. Both `base` and
    // `offset` are multiples of 8, so they are aligned.
    unsafe { header_of(block).write(slot.into()) };
    block
}

/// Returns the address of a block's header.
fn header_of(block: *mut u8) -> *mut u64 {
    block.wrapping_sub(HEADER_BYTES).cast()
}

/// Returns the slot of a block.
///
/// # Safety
/// [`begin_block`] has returned `block`, and it was not freed.
unsafe fn slot_of(block: *mut u8) -> u32 {
    // SAFETY: `begin_block` has written the 8 bytes before the block, which are aligned.
    unsafe { header_of(block).read() as u32 }
}

// SAFETY: each method returns what the same method of `inner` returns for the same layout, or null. With a header, it
// returns a block inside the allocation of a larger layout: the block has the size and alignment of `layout`, because the
// offset is a multiple of the alignment. The size of the header depends only on the alignment, which is the same for the
// allocation, each reallocation, and the free of a block. No method panics: counting only adds to cells.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = match self.is_live {
            // SAFETY: the caller keeps the contract of `alloc`.
            false => unsafe { self.inner.alloc(layout) },
            true => {
                let Some((outer, offset)) = with_header(layout) else { return ptr::null_mut() };
                // SAFETY: `outer` is not empty.
                let base = unsafe { self.inner.alloc(outer) };
                // SAFETY: `base` is null or an allocation of `outer`.
                unsafe { begin_block(base, offset, layout.size()) }
            }
        };
        if !block.is_null() {
            count_allocation(layout.size());
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_free(layout.size());
        if !self.is_live {
            // SAFETY: the caller keeps the contract of `dealloc`.
            return unsafe { self.inner.dealloc(block, layout) };
        }
        // The layout had a header when the block was allocated.
        let Some((outer, offset)) = with_header(layout) else { return };
        // SAFETY: `block` was allocated here.
        live::freed(unsafe { slot_of(block) }, layout.size());
        // SAFETY: the block lies at this offset in an allocation of `outer`.
        unsafe { self.inner.dealloc(block.wrapping_sub(offset), outer) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = match self.is_live {
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            false => unsafe { self.inner.alloc_zeroed(layout) },
            true => {
                let Some((outer, offset)) = with_header(layout) else { return ptr::null_mut() };
                // SAFETY: `outer` is not empty.
                let base = unsafe { self.inner.alloc_zeroed(outer) };
                // SAFETY: `base` is null or an allocation of `outer`.
                unsafe { begin_block(base, offset, layout.size()) }
            }
        };
        if !block.is_null() {
            count_allocation(layout.size());
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        let new = match self.is_live {
            // SAFETY: the caller keeps the contract of `realloc`.
            false => unsafe { self.inner.realloc(block, layout, new_bytes) },
            true => {
                let wanted = Layout::from_size_align(new_bytes, layout.align()).ok().and_then(with_header);
                let Some(((outer, offset), (wanted, _))) = with_header(layout).zip(wanted) else {
                    return ptr::null_mut();
                };
                // SAFETY: the block lies at this offset in an allocation of `outer`, and the new size is not too large
                // for its alignment.
                let base = unsafe { self.inner.realloc(block.wrapping_sub(offset), outer, wanted.size()) };
                if base.is_null() {
                    return base;
                }
                let new = base.wrapping_add(offset);
                // The block stays with the span that has allocated it.
                // SAFETY: the header has moved with the block.
                live::resized(unsafe { slot_of(new) }, layout.size(), new_bytes);
                new
            }
        };
        if !new.is_null() {
            count_free(layout.size());
            count_allocation(new_bytes);
        }
        new
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::alloc::System;

    proptest! {
        #[test]
        fn blocks_have_their_alignment_and_keep_their_bytes_with_and_without_headers(
            align in (0_u32..13).prop_map(|shift| 1_usize << shift),
            sizes in prop::collection::vec(1_usize..5_000, 1..10),
            is_live: bool,
            is_zeroed: bool,
        ) {
            let allocator = Counted { inner: System, is_live };
            let mut layout = Layout::from_size_align(sizes[0], align).unwrap();
            let allocate = if is_zeroed { GlobalAlloc::alloc_zeroed } else { GlobalAlloc::alloc };
            // SAFETY: the size is not 0.
            let mut block = unsafe { allocate(&allocator, layout) };
            for (fill, size) in (1..).zip(&sizes) {
                prop_assert!(block.addr().is_multiple_of(align));
                // SAFETY: the block has this many bytes.
                let bytes = unsafe { std::slice::from_raw_parts_mut(block, layout.size()) };
                prop_assert!(!is_zeroed || fill > 1 || bytes.iter().all(|byte| *byte == 0));
                bytes.fill(fill);
                let kept = layout.size().min(*size);
                // SAFETY: the block has this layout, and the new size is not 0.
                block = unsafe { allocator.realloc(block, layout, *size) };
                layout = Layout::from_size_align(*size, align).unwrap();
                // SAFETY: the block has at least this many bytes, which were written.
                let bytes = unsafe { std::slice::from_raw_parts(block, kept) };
                prop_assert!(bytes.iter().all(|byte| *byte == fill));
            }
            // SAFETY: the block has this layout.
            unsafe { allocator.dealloc(block, layout) };
        }
    }

    #[test]
    fn what_is_too_large_is_refused_and_not_counted() {
        for is_live in [false, true] {
            let allocator = Counted { inner: System, is_live };
            let layout = Layout::from_size_align(isize::MAX as usize - 64, 64).unwrap();
            // SAFETY: the size is not 0.
            assert!(unsafe { allocator.alloc(layout) }.is_null());
        }
    }
}
