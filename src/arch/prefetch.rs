//! Prefetch of cache lines.

/// Prefetches the cache line at `address + BYTES` for a later write. This is only a hint that accesses no memory, so
/// every address is allowed.
#[inline(always)]
pub(crate) fn for_write<const BYTES: usize>(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(eventring_portable)))]
    // SAFETY: a prefetch never faults, and changes nothing that the program can see. All x86-64 processors decode
    // PREFETCHW; some execute it as a no-op.
    unsafe {
        std::arch::asm!("prefetchw [{} + {}]", in(reg) address, const BYTES, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(eventring_portable))))]
    let _ = address;
}
