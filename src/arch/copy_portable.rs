//! Copies to and from shared memory by relaxed atomic accesses: single bytes up to the first aligned word of the shared
//! memory, whole words, and the remaining bytes.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Returns the number of bytes from `address` to the next multiple of 8, but at most `bytes`, the length of the copy.
fn head_bytes(address: usize, bytes: usize) -> usize {
    (address.wrapping_neg() & 7).min(bytes)
}

/// A copier for shared memory. This portable version has no fields, because it copies in the same way on every
/// processor.
#[derive(Clone, Copy)]
pub(crate) struct Copier;

impl Copier {
    /// Creates the copier.
    pub(crate) fn new() -> Self {
        Self
    }

    /// Returns the same copier. In the x86-64 version, this function limits which copies are inlined into the caller.
    /// This version inlines no copies.
    pub(crate) fn within(self, _: usize) -> Self {
        self
    }

    /// Returns false: this version makes no copies in line.
    #[inline(always)]
    pub(crate) fn copies_in_line(self, _: usize) -> bool {
        false
    }
}

/// Loads eight words of shared memory, in any order. Each load is relaxed.
///
/// # Safety
/// `shared` is aligned to 64 bytes and valid for reads of 64 bytes. Others may write that memory at the same time, but
/// only by atomic or volatile accesses, or from another process.
#[inline(always)]
pub(crate) unsafe fn words_from_shared(shared: *const u64) -> [u64; 8] {
    std::array::from_fn(|index| {
        // SAFETY: index < 8, so the address is inside the 64 bytes that the caller vouches for.
        let word = unsafe { shared.add(index) };
        // SAFETY: a readable, aligned word; only loaded.
        let cell = unsafe { AtomicU64::from_ptr(word.cast_mut()) };
        cell.load(Ordering::Relaxed)
    })
}

impl Copier {
    /// Copies `bytes` bytes into shared memory.
    ///
    /// # Safety
    /// - `source` is valid for reads of `bytes` bytes, and nobody writes to them during the copy.
    /// - `shared` is valid for writes of `bytes` bytes. Others may access that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline]
    pub(crate) unsafe fn write_shared(self, shared: *mut u8, source: *const u8, bytes: usize) {
        let head = head_bytes(shared.addr(), bytes);
        let mut at = 0;
        while at < bytes {
            let aligned = at >= head && bytes - at >= 8;
            // SAFETY: at < bytes, so the address is inside the range that the caller vouches for.
            let from = unsafe { source.add(at) };
            // SAFETY: as above.
            let to = unsafe { shared.add(at) };
            if aligned {
                // SAFETY: eight readable bytes remain at `from`. This read accepts any alignment.
                let word = unsafe { from.cast::<u64>().read_unaligned() };
                // SAFETY: eight writable bytes remain at `to`. `to` is a multiple of 8, because `shared + head` is one,
                // and each step from there to `to` had 8 bytes. The caller vouches for how others access these bytes.
                let cell = unsafe { AtomicU64::from_ptr(to.cast()) };
                cell.store(word, Ordering::Relaxed);
                at += 8;
            } else {
                // SAFETY: one readable byte.
                let byte = unsafe { from.read() };
                // SAFETY: one writable byte; others use atomics.
                let cell = unsafe { AtomicU8::from_ptr(to) };
                cell.store(byte, Ordering::Relaxed);
                at += 1;
            }
        }
    }

    /// Copies `bytes` bytes out of shared memory. If others write there during the copy, the result may mix old and
    /// new bytes. So validate the result afterwards.
    ///
    /// # Safety
    /// - `target` is valid for writes of `bytes` bytes, and nobody else accesses it during the copy.
    /// - `shared` is valid for reads of `bytes` bytes. Others may write that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline]
    pub(crate) unsafe fn read_shared(self, target: *mut u8, shared: *const u8, bytes: usize) {
        let head = head_bytes(shared.addr(), bytes);
        let mut at = 0;
        while at < bytes {
            let aligned = at >= head && bytes - at >= 8;
            // SAFETY: at < bytes, so the address is inside the range that the caller vouches for.
            let from = unsafe { shared.add(at) };
            // SAFETY: as above.
            let to = unsafe { target.add(at) };
            if aligned {
                // SAFETY: eight readable bytes remain at `from`, and the address is a multiple of 8. The atomic load
                // of a machine word is a plain load instruction, so it also works in a read-only mapping.
                let cell = unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) };
                let word = cell.load(Ordering::Relaxed);
                // SAFETY: eight writable bytes remain at `to`. This write accepts any alignment.
                unsafe { to.cast::<u64>().write_unaligned(word) };
                at += 8;
            } else {
                // SAFETY: one readable byte; only loaded.
                let cell = unsafe { AtomicU8::from_ptr(from.cast_mut()) };
                let byte = cell.load(Ordering::Relaxed);
                // SAFETY: one writable byte.
                unsafe { to.write(byte) };
                at += 1;
            }
        }
    }
}
