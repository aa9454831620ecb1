//! A column of numbers. [`put_ints`] chooses the form that takes the fewest bytes.
//!
//! Two forms write numbers of *w* bytes as *w* planes: first the lowest byte of every number, then the second byte, and
//! so on. The high bytes of numbers differ little, so a plane of high bytes compresses well.

use crate::format::varint::{put_varint, take_varint, unzigzag, zigzag};

/// All numbers are equal. Data: the number.
const CONSTANT: u8 = 1;
/// Each number is the one before plus the same step. Data: the first number and the step (zigzag).
const STEPS: u8 = 2;
/// Data: the smallest number, then planes of each number less the smallest.
const OFFSETS: u8 = 3;
/// Data: the first number, then planes of the differences (zigzag) of each other number from the one before.
const DIFFERENCES: u8 = 4;
/// There are at most 256 different numbers. Data: how many, these numbers, then one byte for each number of the column:
/// its index.
const DICTIONARY: u8 = 5;

/// The form of a column: one of the constants above in the low four bits, and a width in bytes in the high bits.
type Form = u8;

/// The largest number of different numbers in a dictionary.
const DICTIONARY_MAX: usize = 256;
/// The number of slots of the table in which different numbers are looked up while a dictionary is made.
const SLOTS: usize = 1024;

/// The memory that making a column needs, kept from one column to the next.
#[derive(Default)]
pub(super) struct IntsScratch {
    /// Each slot holds the index of a number in `distinct`, plus one, or 0.
    slots: Vec<u16>,
    distinct: Vec<u64>,
    codes: Vec<u8>,
    numbers: Vec<u64>,
}

/// The form of a column that was appended, and the size of each of its planes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PutForm {
    pub(super) form: Form,
    pub(super) plane_bytes: usize,
}

impl PutForm {
    /// Makes the result for a column without planes.
    pub(super) fn plain(form: Form) -> Self {
        Self { form, plane_bytes: 0 }
    }

    /// Returns the number of planes.
    pub(super) fn planes(self) -> usize {
        usize::from(self.form >> 4)
    }
}

/// Appends a column, and returns its form.
pub(super) fn put_ints(values: &[u64], out: &mut Vec<u8>, scratch: &mut IntsScratch) -> PutForm {
    let Some((first, rest)) = values.split_first() else { return PutForm::plain(CONSTANT) };
    let step = rest.first().map_or(0, |second| second.wrapping_sub(*first));
    let (mut min, mut max, mut differences, mut has_steps) = (*first, *first, 0_u64, true);
    let mut before = *first;
    for value in rest {
        let difference = value.wrapping_sub(before);
        before = *value;
        has_steps &= difference == step;
        differences |= zigzag(difference);
        min = min.min(*value);
        max = max.max(*value);
    }
    if has_steps {
        put_varint(out, *first);
        if step == 0 {
            return PutForm::plain(CONSTANT);
        }
        put_varint(out, zigzag(step));
        return PutForm::plain(STEPS);
    }
    let (offset_width, difference_width) = (width(max - min), width(differences));
    if offset_width.min(difference_width) >= 2 && find_dictionary(values, scratch) {
        put_varint(out, scratch.distinct.len() as u64);
        scratch.distinct.iter().for_each(|value| put_varint(out, *value));
        out.extend_from_slice(&scratch.codes);
        return PutForm::plain(DICTIONARY);
    }
    scratch.numbers.clear();
    if difference_width < offset_width {
        put_varint(out, *first);
        let pairs = values.windows(2);
        scratch.numbers.extend(pairs.map(|pair| zigzag(pair[1].wrapping_sub(pair[0]))));
        put_planes(&scratch.numbers, difference_width, out);
        return PutForm { form: DIFFERENCES | difference_width << 4, plane_bytes: scratch.numbers.len() };
    }
    put_varint(out, min);
    scratch.numbers.extend(values.iter().map(|value| value - min));
    put_planes(&scratch.numbers, offset_width, out);
    PutForm { form: OFFSETS | offset_width << 4, plane_bytes: values.len() }
}

/// Appends the numbers of a column to `values`. The column has exactly `count` numbers. Returns `None` if the bytes are
/// not such a column.
pub(super) fn take_ints(form: Form, mut bytes: &[u8], count: usize, values: &mut Vec<u64>) -> Option<()> {
    if count == 0 {
        return bytes.is_empty().then_some(());
    }
    let first = take_varint(&mut bytes)?;
    let start = values.len();
    let width = usize::from(form >> 4);
    match form & 0xf {
        CONSTANT => {
            values.resize(start + count, first);
            bytes.is_empty().then_some(())
        }
        STEPS => {
            let step = unzigzag(take_varint(&mut bytes)?);
            values.extend((0..count as u64).map(|index| first.wrapping_add(step.wrapping_mul(index))));
            bytes.is_empty().then_some(())
        }
        OFFSETS => {
            take_planes(bytes, width, count, values)?;
            values[start..].iter_mut().for_each(|value| *value = value.wrapping_add(first));
            Some(())
        }
        DIFFERENCES => {
            values.push(first);
            take_planes(bytes, width, count - 1, values)?;
            let mut before = first;
            for value in &mut values[start + 1..] {
                before = before.wrapping_add(unzigzag(*value));
                *value = before;
            }
            Some(())
        }
        DICTIONARY => {
            let distinct = usize::try_from(first).ok().filter(|count| *count <= DICTIONARY_MAX)?;
            let mut table = [0; DICTIONARY_MAX];
            for value in &mut table[..distinct] {
                *value = take_varint(&mut bytes)?;
            }
            let is_whole = bytes.len() == count && bytes.iter().all(|code| usize::from(*code) < distinct);
            values.extend(bytes.iter().map(|code| table[usize::from(*code)]));
            is_whole.then_some(())
        }
        _ => None,
    }
}

/// Returns how many bytes a number up to `max` needs, 1 at least.
fn width(max: u64) -> u8 {
    (8 - (max | 1).leading_zeros() / 8) as u8
}

fn put_planes(numbers: &[u64], width: u8, out: &mut Vec<u8>) {
    for plane in 0..u32::from(width) {
        out.extend(numbers.iter().map(|number| (number >> (8 * plane)) as u8));
    }
}

fn take_planes(bytes: &[u8], width: usize, count: usize, values: &mut Vec<u64>) -> Option<()> {
    if !(1..=8).contains(&width) || bytes.len() != width.checked_mul(count)? {
        return None;
    }
    let start = values.len();
    let (lowest, mut rest) = bytes.split_at(count);
    values.extend(lowest.iter().map(|byte| u64::from(*byte)));
    for plane in 1..width {
        let (bytes, later) = rest.split_at(count);
        rest = later;
        for (value, byte) in values[start..].iter_mut().zip(bytes) {
            *value |= u64::from(*byte) << (8 * plane);
        }
    }
    Some(())
}

/// Collects the different numbers and the index of each number among them. Returns false if there are too many.
fn find_dictionary(values: &[u64], scratch: &mut IntsScratch) -> bool {
    scratch.slots.clear();
    scratch.slots.resize(SLOTS, 0);
    scratch.distinct.clear();
    scratch.codes.clear();
    // A dictionary of numbers that come once or twice would save nothing.
    let distinct_max = DICTIONARY_MAX.min(values.len() / 4);
    for value in values {
        let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        let code = loop {
            match scratch.slots[slot] {
                0 if scratch.distinct.len() == distinct_max => return false,
                0 => {
                    scratch.distinct.push(*value);
                    scratch.slots[slot] = scratch.distinct.len() as u16;
                    break scratch.distinct.len() - 1;
                }
                known if scratch.distinct[usize::from(known) - 1] == *value => break usize::from(known) - 1,
                _ => slot = (slot + 1) % SLOTS,
            }
        };
        scratch.codes.push(code as u8);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form_and_back(values: &[u64]) -> (u8, usize) {
        let mut out = Vec::new();
        let put = put_ints(values, &mut out, &mut IntsScratch::default());
        let form = put.form;
        assert!(put.planes() * put.plane_bytes <= out.len() && (put.planes() == 0) == (put.plane_bytes == 0));
        let mut back = vec![7];
        take_ints(form, &out, values.len(), &mut back).unwrap();
        assert_eq!(back[1..], *values);
        (form, out.len())
    }

    #[test]
    fn each_kind_of_numbers_gets_the_form_that_takes_least() {
        let many = |value: &dyn Fn(u64) -> u64| (0..1000).map(value).collect::<Vec<_>>();
        assert_eq!(form_and_back(&[]), (CONSTANT, 0));
        assert_eq!(form_and_back(&many(&|_| 5)), (CONSTANT, 1));
        assert_eq!(form_and_back(&many(&|n| 1000 + 3 * n)), (STEPS, 3));
        assert_eq!(form_and_back(&many(&|n| u64::MAX - n)), (STEPS, 11));
        assert_eq!(form_and_back(&many(&|n| 300 + n * n % 256)).0, OFFSETS | 1 << 4);
        assert_eq!(form_and_back(&many(&|n| n * 1000 + n % 7)).0, DIFFERENCES | 2 << 4);
        assert_eq!(form_and_back(&many(&|n| (n % 50) << 40)).0, DICTIONARY);
        assert_eq!(form_and_back(&many(&|n| (n * n).wrapping_mul(0x9e37_79b9_7f4a_7c15))).0, OFFSETS | 8 << 4);
    }

    #[test]
    fn bytes_that_are_no_column_are_refused() {
        let mut out = Vec::new();
        let values: Vec<u64> = (0..100).map(|n| (n % 10) << 40).collect();
        let form = put_ints(&values, &mut out, &mut IntsScratch::default()).form;
        let take = |form: u8, bytes: &[u8], count| take_ints(form, bytes, count, &mut Vec::new());
        assert_eq!(form, DICTIONARY);
        assert_eq!(take(form, &out, 100), Some(()));
        assert_eq!(
            (take(form, &out, 99), take(form, &out[..out.len() - 1], 100), take(9, &out, 100)),
            (None, None, None)
        );
        let wrong_code: Vec<u8> = out.iter().rev().skip(1).rev().copied().chain([10]).collect();
        assert_eq!(take(form, &wrong_code, 100), None);
        assert_eq!((take(OFFSETS, &[0, 1], 1), take(OFFSETS | 9 << 4, &[0; 10], 1)), (None, None));
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(values in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..300, Just(u64::MAX)], 0..300)) {
            form_and_back(&values);
        }

        #[test]
        fn any_bytes_are_taken_or_refused(form: u8, bytes in prop::collection::vec(any::<u8>(), 0..60), count in 0_usize..60) {
            let mut values = Vec::new();
            if take_ints(form, &bytes, count, &mut values).is_some() {
                prop_assert_eq!(values.len(), count);
            }
        }
    }
}
