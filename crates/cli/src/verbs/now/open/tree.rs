//! The open spans as a tree.

use super::shape;
use eventring::tracing::{CallSite, IdMap};
use eventring_capture::recording::both;
use eventring_export::SharedNames;
use eventring_live::{LiveState, OpenList, OpenSpan, SeriesKind};

/// A span in the tree. There may be a million.
pub(super) struct OpenNode {
    /// The place of the span in the order of age.
    at: u32,
    pub(super) depth: u32,
    /// The number of spans in it, of all depths.
    pub(super) inner: u32,
    pub(super) may_have_closed: bool,
    /// True if the span and all spans in it may have been closed.
    pub(super) is_doubtful: bool,
    /// A number that spans have in common if they and the spans in them look the same.
    pub(super) shape: u64,
}

/// The open spans, each before the spans in it. Of neighbours, those come first that are surely open, or in which a
/// span surely is; those that may have been closed come after them. Both are in the order of age, oldest first.
pub(super) struct OpenTree<'s> {
    spans: OpenList<'s>,
    /// The begin of each span, and its place in the list, oldest first.
    order: Vec<(u64, u32)>,
    pub(super) nodes: Vec<OpenNode>,
    /// The names of spans that several targets share.
    pub(super) shared: SharedNames,
    /// True if a span was opened before the window.
    pub(super) has_older: bool,
    /// True if the program of a span has ended.
    pub(super) has_ended: bool,
}

/// No span.
const NONE: u32 = u32::MAX;

impl<'s> OpenTree<'s> {
    /// Makes the tree of all spans of this age. A span whose parent is not among them is a root.
    pub(super) fn new(state: LiveState<'s>, min_age_nanos: u64) -> Self {
        let spans = state.open_spans().list();
        let is_old_span = |span: &OpenSpan<'_>| min_age_nanos == 0 || super::may_be_of_age(span, min_age_nanos);
        let mut looks: IdMap<usize, (u64, Option<&CallSite>)> = IdMap::default();
        let (mut shapes, mut may_have_closed) = (vec![0; spans.len()], vec![false; spans.len()]);
        let (mut has_older, mut has_ended) = (false, false);
        // A million spans are put in order beside the rest of the work.
        let look_at_all = || {
            for at in 0..spans.len() {
                let span = spans.get(at);
                let site = span.call_site();
                let key = site.map_or(0, |site| std::ptr::from_ref(site).addr());
                let (look, _) = *looks.entry(key).or_insert_with(|| (shape::look(site), site));
                may_have_closed[at] = span.may_have_closed();
                shapes[at] = shape::with(look, u64::from(span.is_entered()) | u64::from(may_have_closed[at]) << 1);
                has_older |= span.is_opened_before_window() && is_old_span(&span);
                has_ended |= span.age_max_nanos().is_some() && is_old_span(&span);
            }
            spans.parents()
        };
        let (order, parents) = both(|| spans.order(), look_at_all);
        // From here on, spans are known by their places in the order of age: neighbours lie beside each other.
        let mut ranks = vec![0; spans.len()];
        order.iter().zip(0..).for_each(|((_, place), at)| ranks[*place as usize] = at);
        let in_order = || order.iter().map(|(_, place)| *place as usize);
        let parents: Vec<u32> = in_order().map(|place| ranks[parents[place] as usize]).collect();
        let shapes: Vec<u64> = in_order().map(|place| shapes[place]).collect();
        let may_have_closed: Vec<bool> = in_order().map(|place| may_have_closed[place]).collect();
        let is_old = |at: u32| min_age_nanos == 0 || is_old_span(&spans.get(order[at as usize].1 as usize));
        let is_doubtful = doubtful(&may_have_closed, &parents);
        // The first span in each span and in each program, and the next neighbour of each span. The last neighbours are
        // put in first: those that are surely open come before all others.
        let mut first = vec![NONE; spans.len() + state.programs().len()];
        let mut next = vec![NONE; spans.len()];
        for doubtful in [true, false] {
            for at in (0..order.len() as u32).rev().filter(|at| is_doubtful[*at as usize] == doubtful && is_old(*at)) {
                let parent = parents[at as usize];
                let is_root = parent == at || !is_old(parent);
                let program = || spans.get(order[at as usize].1 as usize).program_index();
                let outer = if is_root { spans.len() + program() } else { parent as usize };
                next[at as usize] = std::mem::replace(&mut first[outer], at);
            }
        }
        let mut is_placed = vec![false; spans.len()];
        let (mut nodes, mut rest) = (Vec::with_capacity(spans.len()), Vec::new());
        // In a damaged ring a span can be its own ancestor. Such spans are in no tree of a root, so they follow.
        for start in first[spans.len()..].iter().copied().chain((0..order.len() as u32).filter(|at| is_old(*at))) {
            rest.push((start, 0));
            while let Some((at, depth)) = rest.pop() {
                let place = at as usize;
                if at == NONE || std::mem::replace(&mut is_placed[place], true) {
                    continue;
                }
                rest.extend([(next[place], depth), (first[place], depth + 1)]);
                let (may_have_closed, is_doubtful) = (may_have_closed[place], is_doubtful[place]);
                nodes.push(OpenNode { at, depth, inner: 0, may_have_closed, is_doubtful, shape: shapes[place] });
            }
        }
        shape::complete(nodes.iter_mut().map(|node| (node.depth, &mut node.inner, &mut node.shape)));
        let open = looks.values().filter_map(|(_, site)| site.map(|site| (&*site.name, &*site.target)));
        let closed = state.series().filter(|series| series.kind() == SeriesKind::Spans);
        let shared = SharedNames::from_names(open.chain(closed.map(|series| (series.name(), series.target()))));
        Self { spans, order, nodes, shared, has_older, has_ended }
    }

    /// Returns the span of a node.
    #[inline]
    pub(super) fn span(&self, node: &OpenNode) -> OpenSpan<'s> {
        self.spans.get(self.order[node.at as usize].1 as usize)
    }

    /// Returns the age of the span of a node, in nanoseconds.
    #[inline]
    pub(super) fn age_nanos(&self, node: &OpenNode) -> u64 {
        self.span(node).age_since(self.order[node.at as usize].0)
    }
}

/// Returns, for each span, whether it and all spans in it may have been closed. A root is its own parent.
fn doubtful(may_have_closed: &[bool], parents: &[u32]) -> Vec<bool> {
    let mut is_doubtful = may_have_closed.to_vec();
    for at in (0..may_have_closed.len()).filter(|at| !may_have_closed[*at]) {
        // A span that is surely open keeps its parents open. The way up ends where another child has gone it before.
        let mut outer = parents[at] as usize;
        while is_doubtful[outer] {
            is_doubtful[outer] = false;
            outer = parents[outer] as usize;
        }
    }
    is_doubtful
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_with_a_span_in_it_that_is_surely_open_is_not_doubtful() {
        // 0 is in no span; 1 in 0; 2 in 1 and surely open; 3 in 0; 4 and 5 in each other.
        let parents = [0, 0, 1, 0, 5, 4];
        let found = doubtful(&[true, true, false, true, true, true], &parents);
        assert_eq!(found, [false, false, false, true, true, true]);
        assert_eq!(doubtful(&[true; 6], &parents), [true; 6]);
    }
}
