//! The checksum of an event's type, tags (the first three extension words), payload size and payload. It also covers
//! the seqno, if the writer got the seqno before it wrote the payload.

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// State of the checksum while the parts of an event are added.
#[derive(Clone, Copy)]
pub(crate) struct Checksum {
    state: u64,
    /// Bytes that were added since the last full word of eight.
    rest: u64,
    rest_bytes: u32,
    bytes: u64,
}

impl Checksum {
    /// Begins the checksum of an event. `tags` are the first three extension words. `seqno` is 0 if the writer did not
    /// know the seqno before it wrote the payload.
    pub(crate) fn new(event_type: u16, tags: [u64; 3], seqno: u64) -> Self {
        let state = [event_type.into(), tags[0], tags[1], tags[2], seqno].into_iter().fold(SEED, mix);
        Self { state, rest: 0, rest_bytes: 0, bytes: 0 }
    }

    /// Adds bytes of the payload. Several calls give the same checksum as one call with all bytes.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        while self.rest_bytes > 0 && !bytes.is_empty() {
            self.push(bytes[0]);
            bytes = &bytes[1..];
        }
        let (words, rest) = bytes.as_chunks::<8>();
        self.state = words.iter().fold(self.state, |state, word| mix(state, u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.push(*byte));
    }

    fn push(&mut self, byte: u8) {
        self.rest |= u64::from(byte) << (8 * self.rest_bytes);
        self.rest_bytes += 1;
        if self.rest_bytes == 8 {
            self.state = mix(self.state, self.rest);
            (self.rest, self.rest_bytes) = (0, 0);
        }
    }

    /// Returns the checksum, which is never 0.
    pub(crate) fn finish(self) -> u64 {
        mix(mix(self.state, self.rest), self.bytes) | 1
    }
}

/// Mixes `word` into `state`, so that a change of either changes many bits of the result.
fn mix(state: u64, word: u64) -> u64 {
    let product = (state ^ word).wrapping_mul(FACTOR);
    (product ^ product >> 32).rotate_left(23).wrapping_add(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum_of(event_type: u16, tags: [u64; 3], seqno: u64, parts: &[&[u8]]) -> u64 {
        let mut sum = Checksum::new(event_type, tags, seqno);
        parts.iter().for_each(|part| sum.add(part));
        sum.finish()
    }

    #[test]
    fn every_change_of_an_event_changes_the_checksum_and_its_division_into_parts_does_not() {
        let bytes: Vec<u8> = (0..100).collect();
        let sum = checksum_of(18, [1, 2, 3], 4, &[&bytes]);
        for cut in 0..100 {
            assert_eq!(checksum_of(18, [1, 2, 3], 4, &[&bytes[..cut], &bytes[cut..]]), sum, "{cut}");
        }
        for at in 0..100 {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert_ne!(checksum_of(18, [1, 2, 3], 4, &[&changed]), sum, "{at}");
        }
        for other in [
            checksum_of(19, [1, 2, 3], 4, &[&bytes]),
            checksum_of(18, [2, 2, 3], 4, &[&bytes]),
            checksum_of(18, [1, 2, 0], 4, &[&bytes]),
            checksum_of(18, [1, 2, 3], 5, &[&bytes]),
            checksum_of(18, [1, 2, 3], 4, &[&bytes[..99]]),
            checksum_of(18, [1, 2, 3], 4, &[&bytes, &[0]]),
        ] {
            assert_ne!(other, sum);
        }
        assert_ne!(checksum_of(18, [1, 2, 3], 0, &[]), checksum_of(18, [1, 2, 3], 0, &[&[0]]));
    }
}
