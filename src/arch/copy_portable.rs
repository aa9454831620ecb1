//! Copies to and from shared memory by relaxed atomic accesses: single bytes up to the first aligned word, then whole
//! words, then the remaining bytes.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Returns the number of leading bytes before the first 8-aligned address.
fn head_bytes(address: usize, bytes: usize) -> usize {
    (address.wrapping_neg() & 7).min(bytes)
}

/// The way to copy on this processor. It has no content, because this version copies in the same way on all processors.
#[derive(Clone, Copy)]
pub(crate) struct Copier;

impl Copier {
    /// Creates the copier.
    pub(crate) fn new() -> Self {
        Self
    }

    /// Returns the same copier: it copies nothing in line, so there is nothing to limit.
    pub(crate) fn within(self, _: usize) -> Self {
        self
    }

    /// Returns false: no length gains from a copy in line.
    #[inline(always)]
    pub(crate) fn copies_in_line(self, _: usize) -> bool {
        false
    }
}

/// Loads eight words of shared memory, each by a relaxed load, in any order.
///
/// # Safety
/// `shared` is aligned to 64 bytes and valid for reads of 64 bytes. Others may write that memory at the same time, but
/// only by atomic or volatile accesses, or from another process.
#[inline(always)]
pub(crate) unsafe fn words_from_shared(shared: *const u64) -> [u64; 8] {
    std::array::from_fn(|index| {
        // SAFETY: index < 8, so the address is inside the range the caller vouches for.
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
    /// - `source` is valid for reads of `bytes` bytes and nobody writes there meanwhile.
    /// - `shared` is valid for writes of `bytes` bytes. Others may access that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline]
    pub(crate) unsafe fn write_shared(self, shared: *mut u8, source: *const u8, bytes: usize) {
        let head = head_bytes(shared.addr(), bytes);
        let mut at = 0;
        while at < bytes {
            let aligned = at >= head && bytes - at >= 8;
            // SAFETY: at < bytes, so that the address is inside the range the caller vouches for.
            let from = unsafe { source.add(at) };
            // SAFETY: as above.
            let to = unsafe { shared.add(at) };
            if aligned {
                // SAFETY: eight readable bytes remain; the read does not ask for alignment.
                let word = unsafe { from.cast::<u64>().read_unaligned() };
                // SAFETY: eight writable bytes remain, the address is a multiple of 8 (at - head is), others use
                // atomics.
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

    /// Copies `bytes` bytes out of shared memory. The result may mix bytes of several moments; validate it afterwards.
    ///
    /// # Safety
    /// - `target` is valid for writes of `bytes` bytes and nobody else accesses it meanwhile.
    /// - `shared` is valid for reads of `bytes` bytes. Others may write that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline]
    pub(crate) unsafe fn read_shared(self, target: *mut u8, shared: *const u8, bytes: usize) {
        let head = head_bytes(shared.addr(), bytes);
        let mut at = 0;
        while at < bytes {
            let aligned = at >= head && bytes - at >= 8;
            // SAFETY: at < bytes, so that the address is inside the range the caller vouches for.
            let from = unsafe { shared.add(at) };
            // SAFETY: as above.
            let to = unsafe { target.add(at) };
            if aligned {
                // SAFETY: eight readable bytes remain, the address is a multiple of 8. An atomic load of the machine's
                // word size is a plain load, which read-only mappings allow.
                let cell = unsafe { AtomicU64::from_ptr(from.cast_mut().cast()) };
                let word = cell.load(Ordering::Relaxed);
                // SAFETY: eight writable bytes remain; the write does not ask for alignment.
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
