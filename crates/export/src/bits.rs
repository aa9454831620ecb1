//! A set of numbers, one bit for each.

/// A set of numbers. It takes memory for the numbers up to the largest.
#[derive(Default)]
pub(super) struct BitSet {
    words: Vec<u64>,
}

impl BitSet {
    pub(super) fn insert(&mut self, number: u64) {
        let Ok(word) = usize::try_from(number / 64) else { return };
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.words.capacity() as u64 * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_the_numbers_that_were_inserted() {
        let mut set = BitSet::default();
        [3, 64, 1000].into_iter().for_each(|number| set.insert(number));
        let contained: Vec<u64> = (0..2000).filter(|number| set.contains(*number)).collect();
        assert_eq!(contained, [3, 64, 1000]);
        assert!(!set.contains(u64::MAX));
    }
}
