//! Prefetch of cache lines.

/// Prefetches the cache line at `address + BYTES` in a state that can be written. This is a hint: every address is
/// allowed, and no memory is accessed.
#[inline(always)]
pub(crate) fn for_write<const BYTES: usize>(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(eventring_portable)))]
    // SAFETY: a prefetch never faults and changes nothing the program can see; all x86-64 processors decode PREFETCHW,
    // some as a no-op.
    unsafe {
        std::arch::asm!("prefetchw [{} + {}]", in(reg) address, const BYTES, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(eventring_portable))))]
    let _ = address;
}
