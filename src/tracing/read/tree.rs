//! All spans of a recording, as a tree.

use super::record::PerfRecord;
use super::replay::SpanReplay;
use super::span::Span;
use crate::tracing::span_id::SpanId;
use std::collections::HashMap;

/// The spans of a recording as a forest: each root span is a tree. All spans are in memory at the same time. For a
/// stream without end, use [`SpanReplay`].
#[derive(Clone, Debug, Default)]
pub struct SpanTree {
    /// The spans, in the order of their creation.
    spans: Vec<Span>,
    index: HashMap<SpanId, usize>,
    children: HashMap<SpanId, Vec<SpanId>>,
    roots: Vec<SpanId>,
}

impl SpanTree {
    /// Replays these records of one recorder.
    pub fn from_records<'r>(records: impl IntoIterator<Item = &'r PerfRecord>) -> Self {
        let mut replay = SpanReplay::new();
        let mut last_epoch_nanos = 0;
        for record in records {
            last_epoch_nanos = record.epoch_nanos.max(last_epoch_nanos);
            replay.push(0, record);
        }
        Self::from_spans(replay.finish(last_epoch_nanos))
    }

    /// Makes a tree of these spans. The children of a span are in the order of their creation, and then of their ids.
    /// A span is a root if it has no parent, or if its parent is not among `spans`.
    #[must_use]
    pub fn from_spans(spans: Vec<Span>) -> Self {
        let mut spans = spans;
        let start = |span: &Span| {
            let first_slice = || span.slices.first().and_then(|slice| slice.entered_epoch_nanos);
            let created = span.created.as_ref().map(|created| created.epoch_nanos);
            (created.or_else(first_slice).unwrap_or(0), span.id)
        };
        spans.sort_by_key(start);
        let index: HashMap<SpanId, usize> = spans.iter().enumerate().map(|(at, span)| (span.id, at)).collect();
        let mut children: HashMap<SpanId, Vec<SpanId>> = HashMap::new();
        let mut roots = Vec::new();
        for span in &spans {
            match span.parent.filter(|parent| index.contains_key(parent)) {
                Some(parent) => children.entry(parent).or_default().push(span.id),
                None => roots.push(span.id),
            }
        }
        Self { spans, index, children, roots }
    }

    /// Returns the span with that id.
    #[must_use]
    pub fn get(&self, id: SpanId) -> Option<&Span> {
        self.index.get(&id).map(|at| &self.spans[*at])
    }

    /// Returns the spans without a parent.
    pub fn roots(&self) -> impl Iterator<Item = &Span> {
        self.roots.iter().filter_map(|id| self.get(*id))
    }

    /// Returns the children of a span.
    pub fn children(&self, id: SpanId) -> impl Iterator<Item = &Span> {
        self.children.get(&id).into_iter().flatten().filter_map(|id| self.get(*id))
    }

    /// Returns all spans, in the order of their creation.
    pub fn iter(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// Returns the number of spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if there are no spans.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the ancestors of a span, nearest first, as far as they are in the tree. In a damaged ring a span can
    /// be its own ancestor. So the iterator ends after as many steps as the tree has spans.
    pub fn ancestors(&self, id: SpanId) -> impl Iterator<Item = &Span> {
        let parent = |span: &&Span| span.parent.and_then(|id| self.get(id));
        std::iter::successors(self.get(id).as_ref().and_then(parent), parent).take(self.spans.len())
    }
}
