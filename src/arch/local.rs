//! Additions to a word by one instruction without a lock prefix, which no signal handler of the thread can interrupt
//! half way. Only one thread may store to the word, because the addition is not atomic for other threads.

// Models have no such operations, so these are always the atomics of `std`.
use std::arch::asm;
use std::sync::atomic::AtomicU64;

/// Adds `value` and returns the old value.
#[inline(always)]
pub(crate) fn fetch_add(word: &AtomicU64, value: u64) -> u64 {
    let mut old = value;
    // SAFETY: the address is that of a live, aligned u64. The word is an atomic, so a shared reference permits stores
    // to it. To other threads, the instruction is a relaxed load and a relaxed store.
    unsafe {
        asm!("xadd [{word}], {old}", word = in(reg) word.as_ptr(), old = inout(reg) old, options(nostack));
    }
    old
}

/// Adds `value`.
#[inline(always)]
pub(crate) fn add(word: &AtomicU64, value: u64) {
    // SAFETY: as in `fetch_add`.
    unsafe {
        asm!("add qword ptr [{word}], {value}", word = in(reg) word.as_ptr(), value = in(reg) value, options(nostack));
    }
}
