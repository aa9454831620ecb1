//! Shapes of spans. Two spans have the same shape if their lines in the output are equal, and the lines of their
//! descendants are equal, too.

use eventring::tracing::CallSite;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Returns a number that call sites have in common if their spans are called the same.
pub(super) fn look(call_site: Option<&CallSite>) -> u64 {
    let mut hash = DefaultHasher::new();
    call_site.map(|site| (&site.name, &site.target)).hash(&mut hash);
    hash.finish()
}

/// Adds something that the line of a span shows to its shape.
#[inline]
pub(super) fn with(shape: u64, mark: u64) -> u64 {
    let mixed = (shape ^ mark.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Counts the spans in each span of a tree, and completes the shapes, which are those of the spans alone. Each span comes
/// before those in it, with its depth.
pub(super) fn complete<'n>(spans: impl DoubleEndedIterator<Item = (u32, &'n mut u32, &'n mut u64)>) {
    // Of the spans at each depth that the next one has in it: how many they are, and a sum, which does not depend on
    // their order. From the end, each span is complete before the one that it is in.
    let mut inside: Vec<(u32, u64)> = Vec::new();
    for (depth, inner, shape) in spans.rev() {
        let depth = depth as usize;
        inside.resize(inside.len().max(depth + 2), (0, 0));
        let (count, sum) = std::mem::take(&mut inside[depth + 1]);
        (*inner, *shape) = (count, shape.wrapping_add(sum));
        let outer = &mut inside[depth];
        *outer = (outer.0 + count + 1, outer.1.wrapping_add(with(*shape, 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(spans: &[(u64, u32)]) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = spans.iter().map(|(mark, _)| (0, with(look(None), *mark))).collect();
        complete(all.iter_mut().zip(spans).map(|((inner, shape), (_, depth))| (*depth, inner, shape)));
        all
    }

    #[test]
    fn spans_look_the_same_if_the_spans_in_them_do_in_any_order() {
        // Marks stand for different names.
        let shapes = shapes(&[(1, 0), (1, 1), (0, 1), (1, 0), (0, 1), (1, 1), (1, 0), (1, 1), (1, 2)]);
        let inner: Vec<u32> = shapes.iter().map(|(inner, _)| *inner).collect();
        assert_eq!(inner, [2, 0, 0, 2, 0, 0, 2, 1, 0]);
        assert_eq!(shapes[0], shapes[3]);
        assert_ne!(shapes[0], shapes[6]);
        assert_eq!((shapes[1], shapes[2]), (shapes[5], shapes[4]));
        let marked = super::tests::shapes(&[(0, 0), (1, 0), (2, 0)]);
        assert!(marked[0] != marked[1] && marked[1] != marked[2] && marked[0] != marked[2]);
    }
}
