//! The processor's performance counters that user code may read.
//!
//! On x86-64 the instruction `RDPMC` reads a counter. In builds without `RDPMC`, [`EXISTS`] is false, [`read`] is never
//! called, and the kernel reads the counter.

/// True if this build can read a performance counter without the kernel.
pub(crate) const EXISTS: bool = imp::EXISTS;

/// Reads a performance counter of the processor on which the thread runs. The bits above the counter's width mean
/// nothing.
///
/// # Safety
/// [`EXISTS`] is true, and the kernel has said that this thread may read the counter. Otherwise the instruction ends
/// the process.
#[inline(always)]
pub(crate) unsafe fn read(index: u32) -> u64 {
    // SAFETY: the caller's promise is the same.
    unsafe { imp::read(index) }
}

#[cfg(all(target_arch = "x86_64", not(eventring_portable), not(miri)))]
mod imp {
    pub(super) const EXISTS: bool = true;

    #[inline(always)]
    pub(super) unsafe fn read(index: u32) -> u64 {
        let (low, high): (u32, u32);
        // The block is not marked `nomem`, so the compiler moves no load past it.
        // SAFETY: the caller promises that the thread may execute RDPMC. The instruction touches no memory.
        unsafe {
            std::arch::asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high, options(nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }
}

#[cfg(not(all(target_arch = "x86_64", not(eventring_portable), not(miri))))]
mod imp {
    pub(super) const EXISTS: bool = false;

    #[inline(always)]
    pub(super) unsafe fn read(_: u32) -> u64 {
        0
    }
}
