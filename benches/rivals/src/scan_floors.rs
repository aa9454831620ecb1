//! The least work that a call like `Cursor::next` can do. The cursor of this benchmark points directly to descriptors
//! that nobody changes. A real cursor accesses the ring through one more pointer, and must handle a truncated file.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The words of a descriptor.
type Words = [u64; 8];

/// Loads 64 bytes as four vectors. The instructions are inline assembly. For a plain copy in Rust, the compiler would
/// copy the bytes twice, once through memory.
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
    // SAFETY: the caller promises 64 readable bytes that nobody stores to. Every bit pattern is a valid array of eight
    // words.
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
    /// Makes a cursor that reads the descriptor at index `place` next. The number of descriptors in `descriptors`
    /// must be a power of two.
    pub fn new(descriptors: &'static [u8], place: u64) -> Self {
        let slots = descriptors.len() as u64 / 64;
        assert!(slots.is_power_of_two() && place < slots && descriptors.as_ptr().cast::<u64>().is_aligned());
        Self { start: descriptors.as_ptr().cast(), slot_mask: slots - 1, next_seqno: place + 1 }
    }

    /// Reads the next descriptor, as a real reader must: loads its seqno before and after the words, with the
    /// necessary orderings. Returns the words by value and goes one step on. At the end, returns `None` and goes back
    /// to the first event.
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

    /// Goes back to the first event. The function is not inlined, because a real reader has much more work to do at
    /// the end of a ring. As a result the compiler keeps the position in memory, as for a real reader.
    #[cold]
    #[inline(never)]
    fn rewind(&mut self) {
        self.next_seqno = 1;
    }
}
