//! The values of each name.

use super::integer::Integer;
use super::key::NameKey;
use super::operand::Operand;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The longest text that has a key, in bytes.
const TEXT_BYTES_MAX: usize = 128;
/// One of so many keys is looked at to see how many a name has, about.
const SAMPLE: u64 = 16;

/// The names of a block, each with its values.
#[derive(Default)]
pub(super) struct Names {
    pub(super) list: Vec<NameValues>,
    places: HashMap<u32, usize, BuildHasherDefault<NoHasher>>,
}

/// The values of a name.
pub(super) struct NameValues {
    name: NameKey,
    /// The keys of the values. At the end in ascending order, each once.
    pub(super) keys: Vec<u64>,
    /// The numbers, which get their keys at the end.
    numbers: Vec<f64>,
    /// The smallest and the largest number.
    pub(super) range: Option<(f64, f64)>,
    /// True if there are values without a key.
    pub(super) has_others: bool,
    /// True if a value is no number.
    is_mixed: bool,
}

impl Names {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.places.clear();
    }

    /// Returns the place of a name in the list.
    pub(super) fn place(&mut self, name: NameKey) -> usize {
        *self.places.entry(name.short()).or_insert_with(|| {
            self.list.push(NameValues::new(name));
            self.list.len() - 1
        })
    }

    /// Returns the values of a name.
    pub(super) fn of(&mut self, name: NameKey) -> &mut NameValues {
        let place = self.place(name);
        &mut self.list[place]
    }

    /// Makes the keys of the values, at most `keys_max`: those of names with few values first.
    pub(super) fn finish(&mut self, mut keys_max: usize) {
        let mut names: Vec<_> = self.list.iter_mut().collect();
        names.sort_by_key(|values| values.keys.len() + values.numbers.len());
        for values in names {
            values.finish(keys_max);
            keys_max -= values.keys.len();
        }
    }
}

impl NameValues {
    fn new(name: NameKey) -> Self {
        let (keys, numbers) = (Vec::new(), Vec::new());
        Self { name, keys, numbers, range: None, has_others: false, is_mixed: false }
    }

    /// Returns true if nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.range.is_none() && !self.has_others
    }

    pub(super) fn short(&self) -> u32 {
        self.name.short()
    }

    /// Adds a value with each key and number by which a condition may ask for it.
    #[inline]
    pub(super) fn add(&mut self, value: Operand<'_>) {
        match value {
            Operand::Integer(number) => self.number(number.to_f64()),
            Operand::Float(number) => {
                self.number(number);
                if !number.is_finite() {
                    self.other(self.name.text(&number.to_string()));
                }
            }
            Operand::Float32(number) => self.add(Operand::Float(number.into())),
            Operand::Bool(value) => self.other(self.name.truth(value)),
            Operand::Text(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &str) {
        self.is_mixed = true;
        if text.len() > TEXT_BYTES_MAX {
            self.has_others = true;
        } else {
            self.keys.push(self.name.text(text));
        }
        // Conditions compare texts with numbers and truth values, too.
        let may_be_number = |first: u8| first.is_ascii_digit() || b"+-.iInN".contains(&first);
        if text.bytes().next().is_some_and(may_be_number) {
            if let Ok(number) = text.parse::<Integer>() {
                self.number(number.to_f64());
            } else if let Ok(number) = text.parse() {
                self.number(number);
            }
        } else if let Ok(value) = text.parse() {
            self.keys.push(self.name.truth(value));
        }
    }

    #[inline]
    pub(super) fn number(&mut self, number: f64) {
        if !number.is_nan() {
            self.numbers.push(number);
        }
    }

    fn other(&mut self, key: u64) {
        self.is_mixed = true;
        self.keys.push(key);
    }

    /// Finds the range of the numbers, and makes the keys, each once and in order. Leaves them out if there are more
    /// than `keys_max`, or if the range says nearly as much: of a counter, for example.
    fn finish(&mut self, keys_max: usize) {
        self.range = self.numbers.iter().fold(None, |range, number| {
            let (least, most) = range.unwrap_or((*number, *number));
            Some((number.min(least), number.max(most)))
        });
        // Making and sorting keys takes much longer than this.
        let integers = Integers::new(&self.numbers, self.range);
        // The high bits of a product depend on all bits.
        let mixed = |number: &f64| number.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(8);
        let are_left_out = match &integers {
            Some(integers) => integers.count > keys_max || !self.is_mixed && integers.are_dense(),
            None => self.numbers.len() > keys_max && are_more(self.numbers.iter().map(mixed), keys_max),
        };
        if are_left_out {
            self.numbers.clear();
            self.leave_out();
            self.has_others = true;
            return;
        }
        if let Some(integers) = integers {
            self.numbers.clear();
            self.numbers.extend(integers.iter());
        }
        let name = self.name;
        self.keys.extend(self.numbers.drain(..).map(|number| name.number(number)));
        if self.keys.len() > keys_max && are_more(self.keys.iter().copied(), keys_max) {
            self.leave_out();
        }
        self.keys.sort_unstable();
        self.keys.dedup();
        if self.keys.len() > keys_max {
            self.leave_out();
        }
    }

    /// Leaves the keys out.
    pub(super) fn leave_out(&mut self) {
        self.has_others |= !self.keys.is_empty();
        self.keys = Vec::new();
    }
}

/// Returns true if there are certainly more than so many different numbers among those that look random. Sorting all of
/// them would take long.
fn are_more(numbers: impl Iterator<Item = u64>, keys_max: usize) -> bool {
    let mut sample: Vec<u64> = numbers.filter(|number| *number % SAMPLE == 0).collect();
    sample.sort_unstable();
    sample.dedup();
    sample.len() > 2 * keys_max / SAMPLE as usize
}

/// Integers that lie near each other, each once.
struct Integers {
    least: f64,
    /// The distance from the least to the largest.
    width: f64,
    /// For each integer from the least one on, a bit that says whether it is there.
    have: Vec<u64>,
    count: usize,
}

impl Integers {
    /// Returns `None` if some of the numbers are no integers, or if they lie so far from each other that the bits would
    /// take more room than the numbers.
    fn new(numbers: &[f64], range: Option<(f64, f64)>) -> Option<Self> {
        let (least, most) = range?;
        let width = most - least;
        if width >= 64.0 * numbers.len() as f64 {
            return None;
        }
        let mut have = vec![0_u64; width as usize / 64 + 1];
        for number in numbers {
            if !is_integer(*number) {
                return None;
            }
            let place = (number - least) as usize;
            have[place / 64] |= 1 << (place % 64);
        }
        let count = have.iter().map(|word| word.count_ones() as usize).sum();
        Some(Self { least, width, have, count })
    }

    /// Returns true if nearly every second integer of the range, or more, is there.
    fn are_dense(&self) -> bool {
        2.0 * self.count as f64 > self.width
    }

    fn iter(&self) -> impl Iterator<Item = f64> {
        let least = self.least;
        self.have.iter().zip(0_u64..).flat_map(move |(word, index)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(least + (index * 64 + u64::from(bit)) as f64)
            })
        })
    }
}

fn is_integer(number: f64) -> bool {
    // Faster than `fract`. A float that is as large as this is an integer.
    number as i64 as f64 == number || number.abs() >= (1_u64 << 53) as f64
}

/// Keys of names are hashes already.
#[derive(Default)]
struct NoHasher(u64);

impl Hasher for NoHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u32(&mut self, number: u32) {
        // The table takes its places from the low bits, and its marks from the high ones.
        self.0 = u64::from(number) << 32 | u64::from(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn finished(numbers: &[f64], keys_max: usize) -> NameValues {
        let mut values = NameValues::new(NameKey::field("number"));
        numbers.iter().for_each(|number| values.number(*number));
        values.finish(keys_max);
        values
    }

    #[test]
    fn each_number_has_its_key_once() {
        let large = (1_u64 << 53) as f64;
        for numbers in [
            &[7.0, 7.0, 100.0, -3.0, 7.0][..],
            &[0.0, -0.0, 90.0],
            &[0.5, 2.0, 0.5],
            &[large, large + 64.0, large + 2.0, large],
            &[f64::INFINITY, f64::INFINITY],
            &[f64::NEG_INFINITY, 3.0],
            &[5.0],
        ] {
            let naive: BTreeSet<u64> = numbers.iter().map(|number| NameKey::field("number").number(*number)).collect();
            let found = finished(numbers, 100);
            assert!(found.keys.into_iter().eq(naive) || found.has_others, "{numbers:?}");
        }
        assert!(finished(&[0.0, 1.0, 2.0, 4.0], 100).keys.is_empty(), "the range says as much");
        assert!(!finished(&[0.0, 90.0], 100).has_others);
    }

    #[test]
    fn too_many_numbers_have_no_keys_and_are_not_taken_for_none() {
        let far = |count: u64| (0..count).map(|number| (number * 1_000_003) as f64).collect::<Vec<f64>>();
        let near = |count: u64| (0..count).map(|number| (number * 3) as f64).collect::<Vec<f64>>();
        for (count, are_kept) in [(1000, true), (1001, false), (5000, false)] {
            for numbers in [far(count), near(count)] {
                let found = finished(&numbers, 1000);
                assert_eq!((found.keys.len(), found.has_others), if are_kept { (1000, false) } else { (0, true) });
            }
        }
    }
}
