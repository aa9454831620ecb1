//! The least work that a call like `Cursor::next` can do, in memory that nobody writes to: the ring is not reached
//! through a pointer, and its mapping cannot be truncated.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The words of a descriptor.
type Words = [u64; 8];

/// Loads four vectors, by instructions that the compiler cannot take apart. (The compiler turns a plain copy into two
/// copies, one of them in memory.)
///
/// # Safety
/// `words` points to 64 readable bytes that nobody stores to.
#[inline(always)]
unsafe fn load(words: *const u64) -> Words {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__m128i;
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: the caller's promise.
        unsafe {
            std::arch::asm!(
                "movdqu {a}, [{from}]", "movdqu {b}, [{from} + 16]", "movdqu {c}, [{from} + 32]", "movdqu {d}, [{from} + 48]",
                from = in(reg) words, a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
                options(nostack, preserves_flags, readonly),
            );
        }
        // SAFETY: 64 bytes; every bit pattern is eight words.
        unsafe { std::mem::transmute([a, b, c, d]) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise; every bit pattern is eight words.
    unsafe {
        words.cast::<Words>().read()
    }
}

/// A position in descriptors, as small as possible.
pub struct FloorCursor {
    start: *const u64,
    slot_mask: u64,
    next_seqno: u64,
}

impl FloorCursor {
    /// Makes a cursor that stands before descriptor `place`. The number of `descriptors` is a power of two.
    pub fn new(descriptors: &'static [u8], place: u64) -> Self {
        let slots = descriptors.len() as u64 / 64;
        assert!(slots.is_power_of_two() && place < slots && descriptors.as_ptr().cast::<u64>().is_aligned());
        Self { start: descriptors.as_ptr().cast(), slot_mask: slots - 1, next_seqno: place + 1 }
    }

    /// Loads the seqno before and after the words, with the orderings that this needs; returns the words by value, and
    /// goes one step on. Returns `None` at the end, and is at the first event again.
    #[inline(always)]
    pub fn next(&mut self) -> Option<Words> {
        let seqno = self.next_seqno;
        let slot = (seqno - 1) & self.slot_mask;
        // SAFETY: a slot of the slice that the pointer is from.
        let words = unsafe { self.start.add(slot as usize * 8) };
        // SAFETY: readable for ever, only loaded.
        let word = unsafe { AtomicU64::from_ptr(words.cast_mut()) };
        if word.load(Ordering::Acquire) != seqno {
            self.rewind();
            return None;
        }
        // SAFETY: eight words that nobody stores to.
        let descriptor = unsafe { load(words) };
        fence(Ordering::Acquire);
        if word.load(Ordering::Relaxed) != seqno {
            self.rewind();
            return None;
        }
        self.next_seqno = seqno + 1;
        Some(descriptor)
    }

    /// Goes back to the first event. The function is not inlined, because the work of a reader at the end of a ring
    /// cannot be inlined. So the position is in memory.
    #[cold]
    #[inline(never)]
    fn rewind(&mut self) {
        self.next_seqno = 1;
    }
}
