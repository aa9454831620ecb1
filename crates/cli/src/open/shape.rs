//! Shapes of spans: spans that look the same have the same.

use eventring::tracing::CallSite;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Returns, for each span of a tree, how many spans are in it, and its shape. Each span comes before those in it, with
/// its call site, two things that its line shows (whether a thread is in it, and whether it may have been closed), and
/// its depth.
pub(super) fn shapes<'c>(spans: impl Iterator<Item = (Option<&'c CallSite>, [bool; 2], usize)>) -> Vec<(usize, u64)> {
    let mut shapes: Vec<(usize, u64)> = Vec::new();
    let mut depths = Vec::new();
    for (call_site, marks, depth) in spans {
        let mut hash = DefaultHasher::new();
        call_site.map(|site| (&site.name, &site.target)).hash(&mut hash);
        marks.hash(&mut hash);
        shapes.push((0, hash.finish()));
        depths.push(depth);
    }
    // From the end, each span is complete before the one that it is in. The sum does not depend on the order of the
    // spans in it.
    let mut outer: Vec<usize> = Vec::new();
    let mut parents = vec![None; shapes.len()];
    for (at, depth) in depths.iter().enumerate() {
        outer.truncate(*depth);
        parents[at] = outer.last().copied();
        outer.push(at);
    }
    for at in (0..shapes.len()).rev() {
        let Some(parent) = parents[at] else { continue };
        let (inner, shape) = shapes[at];
        let mut hash = DefaultHasher::new();
        shape.hash(&mut hash);
        let of_parent: &mut (usize, u64) = &mut shapes[parent];
        of_parent.0 += inner + 1;
        of_parent.1 = of_parent.1.wrapping_add(hash.finish());
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_look_the_same_if_the_spans_in_them_do_in_any_order() {
        // Entered or not stands for different names.
        let spans =
            [(true, 0), (true, 1), (false, 1), (true, 0), (false, 1), (true, 1), (true, 0), (true, 1), (true, 2)];
        let shapes = shapes(spans.into_iter().map(|(is_entered, depth)| (None, [is_entered, false], depth)));
        let inner: Vec<usize> = shapes.iter().map(|(inner, _)| *inner).collect();
        assert_eq!(inner, [2, 0, 0, 2, 0, 0, 2, 1, 0]);
        assert_eq!(shapes[0], shapes[3]);
        assert_ne!(shapes[0], shapes[6]);
        assert_eq!((shapes[1], shapes[2]), (shapes[5], shapes[4]));
        let marked =
            super::shapes([[false, false], [false, true], [true, false]].map(|marks| (None, marks, 0)).into_iter());
        assert!(marked[0] != marked[1] && marked[1] != marked[2] && marked[0] != marked[2]);
    }
}
