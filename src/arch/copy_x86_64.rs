//! Copies to and from shared memory in x86-64 assembly.
//!
//! Memory that another process writes may not be touched by ordinary Rust reads and writes (a data race is undefined
//! behaviour), and LLVM does not widen atomic ones. Assembly is outside of that model: to the compiler a block is an
//! opaque access, as volatile is, and on the machine each instruction is a relaxed access per naturally aligned part.

use std::arch::asm;

/// From here on the microcoded string move is at least as fast as a loop of 16-byte moves.
const STRING_MOVE_BYTES: usize = 1024;

/// Moves `bytes` bytes, in any order, each at least once.
///
/// # Safety
/// `from` is readable and `to` writable for `bytes` bytes; the two ranges do not overlap.
#[inline(always)]
unsafe fn opaque_copy(to: *mut u8, from: *const u8, bytes: usize) {
    if bytes >= STRING_MOVE_BYTES {
        // SAFETY: the caller vouches for both ranges; the direction flag is clear at every call (System V ABI).
        unsafe {
            asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") bytes => _,
                 options(nostack, preserves_flags));
        }
    } else if bytes >= 16 {
        // SAFETY: moves [0, 16), [16, 32) … below bytes - 16, then the last 16 bytes: all inside both ranges.
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
        // SAFETY: the first and the last eight bytes, which may overlap, are inside both ranges.
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

/// Copies `bytes` bytes into shared memory.
///
/// # Safety
/// - `source` is valid for reads of `bytes` bytes and nobody writes there meanwhile.
/// - `shared` is valid for writes of `bytes` bytes. Others may access that memory at the same time, but only by atomic or
///   volatile accesses, or from another process.
#[inline(always)]
pub(crate) unsafe fn to_shared(shared: *mut u8, source: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; private memory and the mapping cannot overlap.
    unsafe { opaque_copy(shared, source, bytes) }
}

/// Copies `bytes` bytes out of shared memory. The result may mix bytes of several moments; validate it afterwards.
///
/// # Safety
/// - `target` is valid for writes of `bytes` bytes and nobody else accesses it meanwhile.
/// - `shared` is valid for reads of `bytes` bytes. Others may write that memory at the same time, but only by atomic or
///   volatile accesses, or from another process.
#[inline(always)]
pub(crate) unsafe fn from_shared(target: *mut u8, shared: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; private memory and the mapping cannot overlap.
    unsafe { opaque_copy(target, shared, bytes) }
}
