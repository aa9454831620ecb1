//! The machine's tick counter: a register that counts at a constant rate and that user code may read.
//!
//! On x86-64 this is the time stamp counter, on aarch64 the virtual count register. On other machines, in Miri and with
//! `--cfg eventring_portable`, [`EXISTS`] is false, and [`ticks`] is never called.

/// True if this build knows a tick counter.
pub(crate) const EXISTS: bool = imp::EXISTS;

/// Reads the counter in the cheapest way. The processor may execute this read a few instructions earlier or later than
/// the program says.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    imp::ticks()
}

/// Reads the count after every earlier load has completed.
///
/// Use this function to compare the counter with another clock. The result of the comparison depends on the order in
/// which the two clocks are read.
#[inline(always)]
pub(crate) fn ticks_after_loads() -> u64 {
    imp::ticks_after_loads()
}

/// Returns true if the machine promises that the counter runs at one rate in every power and sleep state.
pub(crate) fn is_invariant() -> bool {
    imp::is_invariant()
}

/// Returns true if the operating system lets this thread read the counter without a fault.
pub(crate) fn is_permitted() -> bool {
    imp::is_permitted()
}

#[cfg(all(target_arch = "x86_64", not(eventring_portable), not(miri)))]
mod imp {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    pub(super) const EXISTS: bool = true;

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory. Where the operating system forbids
        // RDTSC, `is_permitted` returns false, and no clock uses the counter.
        unsafe { _rdtsc() }
    }

    #[inline(always)]
    pub(super) fn ticks_after_loads() -> u64 {
        // SAFETY: LFENCE is part of SSE2, which every x86-64 processor has; it touches no memory.
        unsafe { _mm_lfence() };
        ticks()
    }

    /// Returns true if CPUID reports that the counter is invariant: leaf 0x8000_0007 "advanced power management", EDX
    /// bit 8 "TscInvariant" (AMD APM vol. 3, E.4.6; Intel SDM vol. 3B, 18.17.1 "Invariant TSC").
    pub(super) fn is_invariant() -> bool {
        const LARGEST_EXTENDED_LEAF: u32 = 0x8000_0000;
        const POWER_MANAGEMENT_LEAF: u32 = 0x8000_0007;
        const INVARIANT_BIT: u32 = 1 << 8;
        cpuid(LARGEST_EXTENDED_LEAF).eax >= POWER_MANAGEMENT_LEAF
            && cpuid(POWER_MANAGEMENT_LEAF).edx & INVARIANT_BIT != 0
    }

    // `__cpuid` is an unsafe function with the oldest compiler that we support, and a safe function with newer
    // compilers.
    #[allow(unused_unsafe)]
    fn cpuid(leaf: u32) -> std::arch::x86_64::CpuidResult {
        // SAFETY: CPUID exists on every x86-64 processor, touches no memory, and answers any leaf.
        unsafe { __cpuid(leaf) }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn is_permitted() -> bool {
        let mut mode: libc::c_int = 0;
        // SAFETY: PR_GET_TSC writes one int through its second argument, which is a live, aligned `c_int`.
        let answer = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
        answer != 0 || mode == libc::PR_TSC_ENABLE
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn is_permitted() -> bool {
        true
    }
}

#[cfg(all(target_arch = "aarch64", not(eventring_portable), not(miri)))]
mod imp {
    use std::arch::asm;

    pub(super) const EXISTS: bool = true;

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        let count: u64;
        // SAFETY: CNTVCT_EL0 is readable from user space on Linux (the vDSO depends on it); reading has no effect.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }

    #[inline(always)]
    pub(super) fn ticks_after_loads() -> u64 {
        // SAFETY: ISB only orders instructions. The block is not marked `nomem`, so the compiler moves no earlier load
        // past it.
        unsafe { asm!("isb", options(nostack, preserves_flags)) };
        ticks()
    }

    /// Returns true, because the architecture defines one constant rate for the counter (Arm ARM, D12.1 "the Generic
    /// Timer").
    pub(super) fn is_invariant() -> bool {
        true
    }

    pub(super) fn is_permitted() -> bool {
        true
    }
}

#[cfg(any(eventring_portable, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod imp {
    pub(super) const EXISTS: bool = false;

    #[inline(always)]
    pub(super) fn ticks() -> u64 {
        0
    }

    #[inline(always)]
    pub(super) fn ticks_after_loads() -> u64 {
        0
    }

    pub(super) fn is_invariant() -> bool {
        false
    }

    pub(super) fn is_permitted() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_never_sees_the_counter_run_backwards() {
        if !EXISTS || !is_invariant() || !is_permitted() {
            assert_eq!(EXISTS, imp::EXISTS);
            return;
        }
        let mut last = ticks();
        for _ in 0..1_000_000 {
            let (plain, ordered) = (ticks(), ticks_after_loads());
            assert!(last <= plain && plain <= ordered, "{last} {plain} {ordered}");
            last = ordered;
        }
        assert!(last > 0);
    }
}
