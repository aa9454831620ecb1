//! Ids of traces and spans, as bytes of messages. `eventring::tracing::context` explains the ids.

use eventring::tracing::context::{ProcessIds, RemoteTrace};
use eventring::tracing::{Span, SpanId};
use std::collections::{HashMap, VecDeque};

/// The number of closed spans whose trees are remembered, for links to them.
const TREES_MAX: usize = 1 << 16;

/// The tree that a span is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tree {
    pub(super) root: SpanId,
    /// The trace of a remote caller, if the tree is a part of one.
    pub(super) remote: Option<RemoteTrace>,
}

impl Tree {
    pub(super) fn from_span(span: &Span) -> Self {
        Self { root: span.root, remote: span.remote_trace }
    }

    /// Returns the tree of which a span is the root.
    pub(super) fn of_root(root: SpanId) -> Self {
        Self { root, remote: None }
    }

    /// Returns the ids of the trace and of a span in this tree.
    pub(super) fn ids(&self, ids: &ProcessIds, span: SpanId) -> (Vec<u8>, Vec<u8>) {
        let trace_id = ids.trace_of(self.root, self.remote).to_bytes();
        (trace_id.to_vec(), ids.span_id(span, self.remote.is_some()).to_be_bytes().to_vec())
    }
}

/// The trees of spans that were closed lately. A span that is its own root, with no remote trace, is not among them.
#[derive(Default)]
pub(super) struct ClosedTrees {
    trees: HashMap<(usize, SpanId), Tree>,
    oldest: VecDeque<(usize, SpanId)>,
}

impl ClosedTrees {
    pub(super) fn add(&mut self, process: usize, span: &Span) {
        let (id, tree) = (span.id, Tree::from_span(span));
        if tree == Tree::of_root(id) || self.trees.insert((process, id), tree).is_some() {
            return;
        }
        self.oldest.push_back((process, id));
        if self.oldest.len() > TREES_MAX
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.trees.remove(&oldest);
        }
    }

    /// Returns the tree of a span. `known` is the span, if it is not over. If it was closed long ago, nobody knows any
    /// more which tree it was in: then it counts as a root.
    pub(super) fn of(&self, process: usize, id: SpanId, known: Option<&Span>) -> Tree {
        let closed = || self.trees.get(&(process, id)).copied();
        known.map(Tree::from_span).or_else(closed).unwrap_or(Tree::of_root(id))
    }
}
