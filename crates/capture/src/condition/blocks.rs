//! Turns a condition into a test of a capture's blocks. The test reads a block's values, and shows whether an event of
//! the block can fulfil the condition.

use super::fields::further_names;
use super::node::Node;
use super::term::{Compare, FieldLimit, LEVELS, Term};
use super::{Condition, NameKind, NamePattern};
use crate::format::values::block_test::BlockTest;
use crate::format::values::key::NameKey;

impl Condition {
    /// Returns the test of the blocks of a capture. It holds for each block with an event that fulfils the condition by
    /// what it says itself.
    #[doc(hidden)]
    #[must_use]
    pub fn block_test(&self) -> BlockTest {
        self.root.block_test()
    }
}

impl Node {
    fn block_test(&self) -> BlockTest {
        match self {
            Self::All(parts) => BlockTest::All(parts.iter().map(Self::block_test).collect()),
            Self::Any(parts) => BlockTest::Any(parts.iter().map(Self::block_test).collect()),
            Self::Not(_) => BlockTest::May,
            Self::Term(term) => term.block_test(),
        }
    }
}

impl Term {
    fn block_test(&self) -> BlockTest {
        match self {
            // Blocks know typed events by the names in the schema only.
            Self::Name { kind: NameKind::Event, pattern, .. }
                if pattern.is_source_name() || pattern.code().is_some() =>
            {
                BlockTest::Name(NameKey::of_kind(NameKind::Event))
            }
            Self::Name { kind, is, pattern } => of_pattern(NameKey::of_kind(*kind), *is, pattern),
            Self::Level { compare, level } => {
                let holds = |found: &_| compare.holds((*level as u8).cmp(&(*found as u8)));
                let levels = LEVELS.into_iter().filter(holds).fold(0, |levels, found| levels | 1 << found as u8);
                BlockTest::Levels(levels)
            }
            Self::Field { path, compare, value } => {
                let names = std::iter::once(path.clone()).chain(further_names(path));
                BlockTest::Any(names.map(|name| value.block_test(NameKey::field(&name), *compare)).collect())
            }
            _ => BlockTest::May,
        }
    }
}

impl FieldLimit {
    fn block_test(&self, name: NameKey, compare: Compare) -> BlockTest {
        let (number, narrow) = match self {
            Self::Number(number) => number.floats(),
            Self::Bool(value) if compare == Compare::Equal => return BlockTest::Key { name, key: name.truth(*value) },
            Self::Pattern(pattern) => return of_pattern(name, compare == Compare::Equal, pattern),
            _ => return BlockTest::Name(name),
        };
        // Fields of 32 bits may be equal to this one.
        let narrow = f64::from(narrow);
        // Blocks have the nearest floats of numbers, so both ends belong to the range.
        let (least, most) = match compare {
            Compare::NotEqual => return BlockTest::Name(name),
            Compare::Equal => (number.min(narrow), number.max(narrow)),
            Compare::Less | Compare::LessOrEqual => (f64::NEG_INFINITY, number.max(narrow)),
            Compare::Greater | Compare::GreaterOrEqual => (number.min(narrow), f64::INFINITY),
        };
        let in_range = BlockTest::Number { name, least, most };
        let key = |number| BlockTest::Key { name, key: name.number(number) };
        match compare {
            Compare::Equal if narrow == number => BlockTest::All(vec![in_range, key(number)]),
            Compare::Equal => BlockTest::All(vec![in_range, BlockTest::Any(vec![key(number), key(narrow)])]),
            _ => in_range,
        }
    }
}

/// Returns the test for a name that fits a pattern, or with `is` false for one that does not.
fn of_pattern(name: NameKey, is: bool, pattern: &NamePattern) -> BlockTest {
    match pattern.exact() {
        Some(text) if is => BlockTest::Key { name, key: name.text(text) },
        _ => BlockTest::Name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_floats_of_both_widths_that_are_shown_as_its_end() {
        // Two floats are shown as 0.1: the one of 32 bits is larger than the one of 64 bits. For 0.7, it is smaller.
        let [narrow, wide] = [[0.1_f32, 0.7].map(f64::from), [0.1_f64, 0.7]];
        assert!(narrow[0] > wide[0] && narrow[1] < wide[1]);
        for (text, range) in [
            ("field.x<=0.1", (f64::NEG_INFINITY, narrow[0])),
            ("field.x<=0.7", (f64::NEG_INFINITY, wide[1])),
            ("field.x>=0.1", (wide[0], f64::INFINITY)),
            ("field.x>=0.7", (narrow[1], f64::INFINITY)),
        ] {
            let condition: Condition = text.parse().unwrap();
            let BlockTest::Any(names) = condition.block_test() else { panic!("{text}") };
            let BlockTest::Number { least, most, .. } = names[0] else { panic!("{text}") };
            assert_eq!((least, most), range, "{text}");
        }
    }
}
