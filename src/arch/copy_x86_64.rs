//! Copies to and from shared memory in x86-64 assembly.
//!
//! Plain Rust reads and writes of memory that another process writes are a data race, which is undefined behaviour.
//! Relaxed atomic accesses are allowed, but LLVM does not merge them. So this module copies in assembly.
//!
//! To the compiler, an assembly block is an opaque access. To the processor, a wide access is several relaxed accesses:
//! one for each aligned word, and smaller ones for the bytes before and after.

use std::arch::asm;

/// Length from which a copy uses the microcoded string move (`rep movsb`). From this length on, the string move is as
/// fast as a loop of vector moves. For shorter copies the loop is faster: a string move of 4 KiB into a cold ring takes
/// twice as long as the loop.
const STRING_MOVE_BYTES: usize = 1 << 20;

/// A copier for shared memory. It remembers whether the processor has AVX, because asking the processor at each copy
/// would cost instructions.
#[derive(Clone, Copy)]
pub(crate) struct Copier {
    /// True if the processor has AVX.
    has_avx: bool,
    /// The length limit of copies in line, minus 32. A copy of at least 32 bytes is made in line if its length minus 32
    /// is below this number. The number is 0 if the processor has no AVX, so no copy is made in line then.
    in_line_over_32: usize,
}

impl Copier {
    /// Asks the processor whether it has AVX, and creates the copier.
    pub(crate) fn new() -> Self {
        let has_avx = std::arch::is_x86_feature_detected!("avx");
        Self { has_avx, in_line_over_32: if has_avx { STRING_MOVE_BYTES - 32 } else { 0 } }
    }

    /// Returns the same copier with a limit: it copies only lengths below `bytes` in line.
    pub(crate) fn within(self, bytes: usize) -> Self {
        Self { in_line_over_32: self.in_line_over_32.min(bytes.saturating_sub(32)), ..self }
    }

    /// Returns true if a copy of `bytes` bytes is made in line, by AVX moves in the caller's own code. The processor
    /// must have AVX. `bytes` must be at least 32, below a mebibyte, and below the limit of [`Self::within`]. All of
    /// this is one comparison. If a caller calls this function before [`Self::read_shared`], the compiler can drop the
    /// comparisons in `read_shared`.
    #[inline(always)]
    pub(crate) fn copies_in_line(self, bytes: usize) -> bool {
        let is_in_line = bytes.wrapping_sub(32) < self.in_line_over_32;
        if is_in_line {
            // Tells the compiler the range of `bytes`, which it does not derive from the comparison. SAFETY:
            // `in_line_over_32` is at most STRING_MOVE_BYTES - 32, so `bytes - 32` is below STRING_MOVE_BYTES - 32. A
            // `bytes - 32` that has wrapped would be far larger. So it has not wrapped: `bytes` is at least 32. So
            // `bytes` is also below STRING_MOVE_BYTES.
            unsafe { std::hint::assert_unchecked((32..STRING_MOVE_BYTES).contains(&bytes)) };
        }
        is_in_line
    }
}

/// Moves `bytes` bytes, in any order, each at least once.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes. The two ranges do not overlap.
#[inline(always)]
unsafe fn opaque_copy(copier: Copier, to: *mut u8, from: *const u8, bytes: usize) {
    if bytes >= 32 && copier.has_avx {
        if bytes >= STRING_MOVE_BYTES {
            // SAFETY: the caller vouches for both ranges. The string move goes upward, because the ABI keeps the
            // direction flag clear at every call (System V ABI).
            unsafe {
                asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
                     options(nostack, preserves_flags));
            }
            return;
        }
        // SAFETY: the processor has AVX, there are at least 32 bytes, and the caller vouches for both ranges.
        unsafe { opaque_copy_avx(to, from, bytes) }
    } else if bytes >= 16 {
        // SAFETY: the loop moves pieces of 16 bytes: [0, 16), [16, 32) and so on. Each piece begins below bytes - 16,
        // so it ends inside both ranges. Then the last 16 bytes of both ranges are moved.
        unsafe {
            asm!(
                "xor {at:e}, {at:e}",
                "cmp {last}, 0",
                "je 3f",
                "2:",
                "movups {x}, [{from} + {at}]",
                "movups [{to} + {at}], {x}",
                "add {at}, 16",
                "cmp {at}, {last}",
                "jb 2b",
                "3:",
                "movups {x}, [{from} + {last}]",
                "movups [{to} + {last}], {x}",
                at = out(reg) _, last = in(reg) bytes - 16, from = in(reg) from, to = in(reg) to,
                x = out(xmm_reg) _,
                options(nostack),
            );
        }
    } else if bytes >= 8 {
        // SAFETY: the first eight bytes and the last eight bytes are inside both ranges. They may overlap each other.
        unsafe {
            asm!(
                "mov {a}, [{from}]", "mov {b}, [{from} + {last}]",
                "mov [{to}], {a}", "mov [{to} + {last}], {b}",
                a = out(reg) _, b = out(reg) _, last = in(reg) bytes - 8, from = in(reg) from, to = in(reg) to,
                options(nostack, preserves_flags),
            );
        }
    } else if bytes >= 4 {
        // SAFETY: as above with four bytes.
        unsafe {
            asm!(
                "mov {a:e}, [{from}]", "mov {b:e}, [{from} + {last}]",
                "mov [{to}], {a:e}", "mov [{to} + {last}], {b:e}",
                a = out(reg) _, b = out(reg) _, last = in(reg) bytes - 4, from = in(reg) from, to = in(reg) to,
                options(nostack, preserves_flags),
            );
        }
    } else {
        for at in 0..bytes {
            // SAFETY: at < bytes: one byte inside both ranges.
            unsafe {
                asm!(
                    "mov {a}, [{from} + {at}]", "mov [{to} + {at}], {a}",
                    a = out(reg_byte) _, at = in(reg) at, from = in(reg) from, to = in(reg) to,
                    options(nostack, preserves_flags),
                );
            }
        }
    }
}

/// Moves bytes like [`opaque_copy`], but 32 bytes at a time. This takes half as many stores as moving 16 bytes at a
/// time. Fewer stores are better, because the next locked instruction waits until all of them are done.
///
/// # Safety
/// The conditions of [`opaque_copy`] hold, `bytes` is at least 32, and the processor has AVX.
#[inline(always)]
unsafe fn opaque_copy_avx(to: *mut u8, from: *const u8, bytes: usize) {
    /// Moves 32 bytes at the offset `at` of both addresses.
    ///
    /// # Safety
    /// `from + at` is valid for reads and `to + at` for writes of 32 bytes. The processor has AVX.
    #[inline(always)]
    unsafe fn move_32(to: *mut u8, from: *const u8, at: usize) {
        // SAFETY: the caller's promise. All of ymm0 is claimed.
        unsafe {
            asm!("vmovups ymm0, [{from} + {at}]", "vmovups [{to} + {at}], ymm0", from = in(reg) from, to = in(reg) to,
                 at = in(reg) at, out("ymm0") _, options(nostack, preserves_flags));
        }
    }
    /// Moves the first 32 bytes.
    ///
    /// # Safety
    /// The conditions of [`move_32`] hold for `at` = 0.
    #[inline(always)]
    unsafe fn move_first_32(to: *mut u8, from: *const u8) {
        // SAFETY: as in `move_32`.
        unsafe {
            asm!("vmovups ymm0, [{from}]", "vmovups [{to}], ymm0", from = in(reg) from, to = in(reg) to,
                 out("ymm0") _, options(nostack, preserves_flags));
        }
    }
    /// Moves bytes 32 to 64.
    ///
    /// # Safety
    /// The conditions of [`move_32`] hold for `at` = 32.
    #[inline(always)]
    unsafe fn move_second_32(to: *mut u8, from: *const u8) {
        // SAFETY: as in `move_32`.
        unsafe {
            asm!("vmovups ymm0, [{from} + 32]", "vmovups [{to} + 32], ymm0", from = in(reg) from, to = in(reg) to,
                 out("ymm0") _, options(nostack, preserves_flags));
        }
    }
    let last = bytes - 32;
    // SAFETY: the first of at least 32 bytes.
    unsafe { move_first_32(to, from) };
    if bytes > 64 {
        // SAFETY: bytes 32 to 64 of more than 64.
        unsafe { move_second_32(to, from) };
        let mut at = 64;
        while at < last {
            // SAFETY: at + 32 < bytes: inside both ranges.
            unsafe { move_32(to, from, at) };
            at += 32;
        }
    }
    // SAFETY: these are the last 32 bytes of both ranges. Some of them may have been moved before.
    unsafe { move_32(to, from, last) };
    // Zeroes the upper halves of the AVX registers. Otherwise later code that was compiled without AVX would run slowly
    // (but correctly). A function that inlines this one may use AVX, and keep values in AVX registers. So the assembly
    // declares all sixteen registers as overwritten.
    #[cfg(not(target_feature = "avx"))]
    // SAFETY: `vzeroupper` changes only registers that are declared as overwritten here.
    unsafe {
        asm!(
            "vzeroupper",
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _, out("ymm6") _,
            out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _, out("ymm12") _, out("ymm13") _,
            out("ymm14") _, out("ymm15") _, options(nostack, preserves_flags),
        );
    }
}

/// Loads eight words of shared memory, in any order. Each load acts as a relaxed load.
///
/// # Safety
/// `shared` is aligned to 64 bytes and valid for reads of 64 bytes. Others may write that memory at the same time, but
/// only by atomic or volatile accesses, or from another process.
#[inline(always)]
pub(crate) unsafe fn words_from_shared(shared: *const u64) -> [u64; 8] {
    use std::arch::x86_64::__m128i;

    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: the caller vouches for 64 readable bytes, aligned to 64. So each 16-byte load is aligned, and acts as two
    // relaxed loads of words.
    unsafe {
        asm!(
            "movdqu {a}, [{from}]", "movdqu {b}, [{from} + 16]", "movdqu {c}, [{from} + 32]", "movdqu {d}, [{from} + 48]",
            from = in(reg) shared, a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
            options(nostack, preserves_flags, readonly),
        );
    }
    // SAFETY: both types have 64 bytes, and any bytes are valid in both.
    unsafe { std::mem::transmute([a, b, c, d]) }
}

impl Copier {
    /// Copies `bytes` bytes into shared memory.
    ///
    /// # Safety
    /// - `source` is valid for reads of `bytes` bytes, and nobody writes to them during the copy.
    /// - `shared` is valid for writes of `bytes` bytes. Others may access that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline(always)]
    pub(crate) unsafe fn write_shared(self, shared: *mut u8, source: *const u8, bytes: usize) {
        // SAFETY: the caller vouches for both ranges. They do not overlap, because `source` is private memory and
        // `shared` is in a mapping.
        unsafe { opaque_copy(self, shared, source, bytes) }
    }

    /// Copies `bytes` bytes out of shared memory. If others write there during the copy, the result may mix old and
    /// new bytes. So validate the result afterwards.
    ///
    /// # Safety
    /// - `target` is valid for writes of `bytes` bytes, and nobody else accesses it during the copy.
    /// - `shared` is valid for reads of `bytes` bytes. Others may write that memory at the same time, but only by
    ///   atomic or volatile accesses, or from another process.
    #[inline(always)]
    pub(crate) unsafe fn read_shared(self, target: *mut u8, shared: *const u8, bytes: usize) {
        if self.copies_in_line(bytes) {
            // SAFETY: the processor has AVX, because without AVX `in_line_over_32` is 0. There are at least 32 bytes,
            // because `copies_in_line` is true only for such lengths. The caller vouches for both ranges. They do not
            // overlap, because `target` is private memory and `shared` is in a mapping.
            return unsafe { opaque_copy_avx(target, shared, bytes) };
        }
        // SAFETY: the caller vouches for both ranges. They do not overlap, because `target` is private memory and
        // `shared` is in a mapping.
        unsafe { opaque_copy(self, target, shared, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_avx_every_byte_is_copied_too_and_no_other() {
        let copier = Copier { has_avx: false, in_line_over_32: 0 };
        crate::arch::copy_tests::every_byte_is_copied_and_no_other(copier);
        assert!([0, 31, 32, 33, STRING_MOVE_BYTES - 1].iter().all(|bytes| !copier.copies_in_line(*bytes)));
    }

    #[test]
    fn with_avx_all_lengths_from_32_bytes_to_a_mebibyte_are_copied_in_line() {
        let copier = Copier::new();
        for (bytes, expected) in [
            (0, false),
            (31, false),
            (32, true),
            (STRING_MOVE_BYTES - 1, true),
            (STRING_MOVE_BYTES, false),
            (usize::MAX, false),
        ] {
            assert_eq!(copier.copies_in_line(bytes), expected && copier.has_avx, "{bytes}");
        }
        for limit in [0, 31, 32, 33, 4096] {
            assert!((0..10_000).all(|bytes| bytes <= limit || !copier.within(limit).copies_in_line(bytes)), "{limit}");
        }
    }
}
