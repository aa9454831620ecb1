//! Bits in the header of a block. They show a reader that the block has no event of a type, call site or thread.

/// Bits for the event types, the call sites and the threads of a block. Several types or ids can share a bit. So a bit
/// that is not set says that the block has no such event, and a bit that is set says nothing. (For the ids, this is a
/// Bloom filter with two hashes.)
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FilterBits {
    pub(crate) types: u64,
    pub(crate) call_sites: [u64; 4],
    pub(crate) threads: [u64; 2],
}

impl FilterBits {
    /// Notes that the block has gaps. No event has type 0, so its bit is free.
    pub(crate) fn add_gaps(&mut self) {
        self.add_type(0);
    }

    pub(crate) fn may_have_gaps(&self) -> bool {
        self.types & 1 == 1
    }

    pub(crate) fn may_have_type(&self, event_type: u16) -> bool {
        self.types >> (event_type % 64) & 1 == 1
    }

    pub(crate) fn add_type(&mut self, event_type: u16) {
        self.types |= 1 << (event_type % 64);
    }

    #[inline]
    pub(crate) fn add_call_site(&mut self, id: u32) {
        add(&mut self.call_sites, id);
    }

    #[inline]
    pub(crate) fn add_thread(&mut self, id: u32) {
        add(&mut self.threads, id);
    }

    pub(crate) fn may_have_call_site(&self, id: u32) -> bool {
        has(&self.call_sites, id)
    }

    pub(crate) fn may_have_thread(&self, id: u32) -> bool {
        has(&self.threads, id)
    }
}

/// Returns the two bits of an id, in a filter of this many bits (a power of two, 256 at most).
#[inline]
fn bits_of(id: u32, bits: usize) -> [usize; 2] {
    let hash = id.wrapping_mul(0x9e37_79b1);
    [hash >> 24, hash >> 16 & 0xff].map(|hash| hash as usize % bits)
}

#[inline]
fn add(words: &mut [u64], id: u32) {
    for bit in bits_of(id, 64 * words.len()) {
        words[bit / 64] |= 1 << (bit % 64);
    }
}

fn has(words: &[u64], id: u32) -> bool {
    bits_of(id, 64 * words.len()).into_iter().all(|bit| words[bit / 64] >> (bit % 64) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_and_most_other_ids_are_not() {
        let mut bits = FilterBits::default();
        (1..=20).for_each(|id| bits.add_call_site(id));
        (1..=4).for_each(|id| bits.add_thread(id));
        bits.add_type(9);
        assert!(bits.may_have_type(9) && !bits.may_have_type(8) && !bits.may_have_gaps());
        bits.add_gaps();
        assert!(bits.may_have_gaps());
        assert!((1..=20).all(|id| bits.may_have_call_site(id)) && (1..=4).all(|id| bits.may_have_thread(id)));
        let found = |has: &dyn Fn(u32) -> bool| (1000..2000).filter(|id| has(*id)).count();
        assert!(found(&|id| bits.may_have_call_site(id)) < 100 && found(&|id| bits.may_have_thread(id)) < 100);
    }
}
