//! The open spans as a tree.

use super::shape::shapes;
use eventring::live::{LiveState, OpenSpan};
use eventring::tracing::SpanId;
use std::collections::HashMap;

/// A span in the tree.
pub(super) struct OpenNode<'s> {
    pub(super) span: OpenSpan<'s>,
    pub(super) depth: usize,
    /// The number of spans in it, of all depths.
    pub(super) inner: usize,
    /// A number that spans have in common if they and the spans in them look the same.
    pub(super) shape: u64,
}

/// The open spans, each before the spans in it. Neighbours are in the order of age, oldest first.
pub(super) struct OpenTree<'s> {
    pub(super) nodes: Vec<OpenNode<'s>>,
}

impl<'s> OpenTree<'s> {
    /// Makes the tree of all spans of this age. A span whose parent is not among them is a root.
    pub(super) fn of(state: LiveState<'s>, min_age_nanos: u64) -> Self {
        let mut spans = state.open_spans().to_vec();
        spans.retain(|span| span.age_nanos() >= min_age_nanos);
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
        // The roots of each program come together, in the order of the programs.
        roots.sort_by_key(|at| (spans[*at].program_index(), *at));
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
        let names = order.iter().map(|(at, depth)| (spans[*at].call_site(), spans[*at].thread().is_some(), *depth));
        let shapes = shapes(names);
        let nodes = order.into_iter().zip(shapes);
        let node = |((at, depth), (inner, shape)): ((usize, usize), (usize, u64))| OpenNode {
            span: spans[at],
            depth,
            inner,
            shape,
        };
        Self { nodes: nodes.map(node).collect() }
    }
}
