//! The open spans as a tree.

use super::shape::shapes;
use eventring::tracing::SpanId;
use eventring_export::SharedNames;
use eventring_live::{LiveState, OpenSpan, SeriesKind};
use std::collections::HashMap;

/// A span in the tree.
pub(super) struct OpenNode<'s> {
    pub(super) span: OpenSpan<'s>,
    pub(super) may_have_closed: bool,
    /// True if the span and all spans in it may have been closed.
    pub(super) is_doubtful: bool,
    pub(super) depth: usize,
    /// The number of spans in it, of all depths.
    pub(super) inner: usize,
    /// A number that spans have in common if they and the spans in them look the same.
    pub(super) shape: u64,
}

/// The open spans, each before the spans in it. Of neighbours, those come first that are surely open, or in which a
/// span surely is; those that may have been closed come after them. Both are in the order of age, oldest first.
pub(super) struct OpenTree<'s> {
    pub(super) nodes: Vec<OpenNode<'s>>,
    /// The names of spans that several targets share.
    pub(super) shared: SharedNames,
}

impl<'s> OpenTree<'s> {
    /// Makes the tree of all spans of this age. A span whose parent is not among them is a root.
    pub(super) fn new(state: LiveState<'s>, min_age_nanos: u64) -> Self {
        let mut spans = state.open_spans().to_vec();
        spans.retain(|span| super::may_be_of_age(span, min_age_nanos));
        let key = |span: &OpenSpan<'_>, id: SpanId| (span.program_index(), id);
        let index: HashMap<(usize, SpanId), usize> =
            spans.iter().enumerate().map(|(at, span)| (key(span, span.id()), at)).collect();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
        let mut roots = Vec::new();
        for (at, span) in spans.iter().enumerate() {
            match span.open_parent().and_then(|parent| index.get(&key(span, parent))) {
                Some(parent) => children[*parent].push(at),
                None => roots.push(at),
            }
        }
        let may_have_closed: Vec<bool> = spans.iter().map(OpenSpan::may_have_closed).collect();
        let is_doubtful = doubtful(&may_have_closed, &children);
        // The roots of each program come together, in the order of the programs.
        roots.sort_by_key(|at| (spans[*at].program_index(), is_doubtful[*at], *at));
        children.iter_mut().for_each(|children| children.sort_by_key(|at| (is_doubtful[*at], *at)));
        let mut is_placed = vec![false; spans.len()];
        let mut order: Vec<(usize, usize)> = Vec::with_capacity(spans.len());
        // In a damaged ring a span can be its own ancestor. Such spans are in no tree of a root, so they follow.
        for start in roots.into_iter().chain(0..spans.len()) {
            let mut next = vec![(start, 0)];
            while let Some((at, depth)) = next.pop() {
                if std::mem::replace(&mut is_placed[at], true) {
                    continue;
                }
                order.push((at, depth));
                next.extend(children[at].iter().rev().map(|child| (*child, depth + 1)));
            }
        }
        let marks = |at: usize| [spans[at].thread().is_some(), may_have_closed[at]];
        let names = order.iter().map(|(at, depth)| (spans[*at].call_site(), marks(*at), *depth));
        let shapes = shapes(names);
        let nodes = order.into_iter().zip(shapes);
        let node = |((at, depth), (inner, shape)): ((usize, usize), (usize, u64))| OpenNode {
            span: spans[at],
            may_have_closed: may_have_closed[at],
            is_doubtful: is_doubtful[at],
            depth,
            inner,
            shape,
        };
        let names: Vec<_> = spans.iter().map(|span| (span.name(), span.target())).collect();
        let open = names.iter().map(|(name, target)| (name.as_ref(), *target));
        let closed = state.series().filter(|series| series.kind() == SeriesKind::Spans);
        let shared = SharedNames::of(open.chain(closed.map(|series| (series.name(), series.target()))));
        Self { nodes: nodes.map(node).collect(), shared }
    }
}

/// Returns, for each span, whether it and all spans in it may have been closed.
fn doubtful(may_have_closed: &[bool], children: &[Vec<usize>]) -> Vec<bool> {
    let mut parents = vec![None; children.len()];
    for (at, children) in children.iter().enumerate() {
        children.iter().for_each(|child| parents[*child] = Some(at));
    }
    let mut is_doubtful = may_have_closed.to_vec();
    for at in (0..may_have_closed.len()).filter(|at| !may_have_closed[*at]) {
        // A span that is surely open keeps its parents open. The way up ends where another child has gone it before.
        let mut next = parents[at];
        while let Some(parent) = next.filter(|parent| is_doubtful[*parent]) {
            is_doubtful[parent] = false;
            next = parents[parent];
        }
    }
    is_doubtful
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_with_a_span_in_it_that_is_surely_open_is_not_doubtful() {
        // 0 is in no span; 1 in 0; 2 in 1 and surely open; 3 in 0; 4 in itself.
        let children = [vec![1, 3], vec![2], vec![], vec![], vec![4]];
        let found = doubtful(&[true, true, false, true, true], &children);
        assert_eq!(found, [false, false, false, true, true]);
        assert_eq!(doubtful(&[true; 5], &children), [true; 5]);
    }
}
