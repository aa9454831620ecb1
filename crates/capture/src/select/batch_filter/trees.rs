//! The trees of spans of one perf recorder. What holds for the root of a tree holds for all spans in it, on whatever
//! threads and shards they are.
//!
//! A shard may be copied before the one with the parent of a span. Then scouts read ahead in all shards: a parent was
//! recorded before its children. A forwarder may begin after another one, and spans may be open then. So the trees
//! begin with what the rings still say about the time before.

use super::event_test::EventTest;
use super::rule::SpanRule;
use super::scout::{Scout, read_past};
use crate::condition::Truth;
use eventring::reader::{Cursor, Descriptor, EventBatch, PayloadRead};
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt};
use std::collections::{HashMap, HashSet, VecDeque};

/// The number of spans whose tree is remembered at most. Beyond it, those that are closed are forgotten. If that is not
/// enough, all are, and those that are still open are judged as if they were roots.
const SPANS_MAX: usize = 1 << 20;
/// The number of closed spans beyond which no ring should wait to be copied.
const CLOSED_MAX: usize = SPANS_MAX / 4;

/// The verdict on a span, by its tree.
#[derive(Clone, Copy)]
pub(crate) struct TreeVerdict {
    is_sampled: bool,
    /// True if the span or one above it has a wanted name, or if every name is wanted.
    pub(super) is_named: bool,
    /// True if the span or one above it fulfils the condition, or if there is none.
    pub(super) is_found: bool,
    /// True if the span could not be tested, because its fields were lost. Its own events are kept, and nothing in it.
    is_untested: bool,
    has_level: bool,
}

/// A span of which the beginning was read, in a block or further on in a shard.
struct FoundSpan {
    parent: u64,
    call_site: u32,
    /// The beginning, if it is to be tested. That waits until the spans above are known: a condition may be about them.
    begin: Option<Box<(Descriptor, Option<Vec<u8>>)>>,
}

impl FoundSpan {
    /// Returns a span and its id. `payload` is that of its beginning, if it is to be tested.
    fn new(event: &Descriptor, payload: Option<PayloadRead<'_>>) -> (u64, Self) {
        let ext = PerfExt::from_words(event.content_ext);
        let begin = payload.map(|payload| Box::new((*event, payload.valid().map(<[u8]>::to_vec))));
        (ext.span_id, Self { parent: ext.related, call_site: ext.call_site_id, begin })
    }
}

/// The beginning of a span that is tested now.
type Begin<'b> = Option<(&'b Descriptor, PayloadRead<'b>)>;

/// The knowledge of the time before the copying began, from the shards.
#[derive(Default)]
struct Past {
    spans: HashMap<u64, FoundSpan>,
    closed: HashSet<u64>,
    buffer: Vec<u8>,
}

impl Past {
    fn see(&mut self, event: &Descriptor, is_tested: bool, cursor: &Cursor) {
        if self.spans.len().max(self.closed.len()) >= SPANS_MAX {
            let closed = std::mem::take(&mut self.closed);
            self.spans.retain(|span, _| !closed.contains(span));
            if self.spans.len() >= SPANS_MAX {
                self.spans.clear();
            }
        }
        if event.event_type == PerfEvent::SpanNew.code() {
            let (id, span) = FoundSpan::new(event, is_tested.then(|| cursor.payload(event, &mut self.buffer)));
            self.spans.insert(id, span);
        } else {
            self.closed.insert(PerfExt::from_words(event.content_ext).span_id);
        }
    }
}

/// A shard of the recorder, or another ring whose events ask for spans of the recorder.
struct FilteredShard {
    /// `None` for a shard that could not be opened, and for another ring.
    scout: Option<Scout>,
    /// The last pass in which everything was copied that the shard had.
    copied_in: u64,
}

/// The trees of the spans of one recorder. `cursors` are always those that copy its shards and the rings that ask for
/// its spans, in the order in which they were added; `None` stands for a shard that could not be opened.
pub(crate) struct SpanTrees {
    rule: SpanRule,
    /// The condition at work.
    test: Option<Box<dyn EventTest>>,
    verdicts: HashMap<u64, TreeVerdict>,
    /// Spans that were read ahead and not judged yet.
    found: HashMap<u64, FoundSpan>,
    /// Spans that were closed, with the pass in which they were. They are remembered until all other shards were
    /// copied, too, because these may have children of them, and all rings whose events ask for spans.
    closed: VecDeque<(u64, u64)>,
    pass: u64,
    shards: Vec<FilteredShard>,
    past: Past,
}

impl SpanTrees {
    pub(crate) fn new(rule: SpanRule, test: Option<Box<dyn EventTest>>) -> Self {
        Self {
            rule,
            test,
            verdicts: HashMap::new(),
            found: HashMap::new(),
            closed: VecDeque::new(),
            pass: 0,
            shards: Vec::new(),
            past: Past::default(),
        }
    }

    /// Adds a shard. After the last of those that were found together, call [`Self::judge_past`].
    pub(crate) fn add_shard(&mut self, cursor: Option<&Cursor>) {
        self.shards.push(FilteredShard { scout: cursor.map(Scout::new), copied_in: self.pass });
        if let Some(cursor) = cursor.filter(|_| self.rule.is_about_trees()) {
            let is_tested = self.test.is_some();
            read_past(cursor, |event, cursor| self.past.see(event, is_tested, cursor));
        }
    }

    /// Adds a ring of typed events that may have been recorded in spans of this recorder. Then call
    /// [`Self::judge_past`].
    pub(crate) fn add_asking_ring(&mut self, cursors: &[Option<&Cursor>]) {
        // The ring may ask for spans that are forgotten.
        if self.pass > 0 {
            let (past, is_tested) = (&mut self.past, self.test.is_some());
            for (_, cursor) in self.shards.iter().zip(cursors).filter(|(shard, _)| shard.scout.is_some()) {
                cursor.iter().for_each(|cursor| read_past(cursor, |event, cursor| past.see(event, is_tested, cursor)));
            }
        }
        self.shards.push(FilteredShard { scout: None, copied_in: self.pass });
    }

    /// Judges the spans that began before the copying did.
    pub(crate) fn judge_past(&mut self, cursors: &[Option<&Cursor>]) {
        let Past { mut spans, closed, .. } = std::mem::take(&mut self.past);
        spans.retain(|span, _| !self.verdicts.contains_key(span));
        // One look ahead is enough for all: what they need was recorded before them.
        if !spans.is_empty() {
            self.scout(cursors);
        }
        let mut ids: Vec<u64> = spans.keys().copied().collect();
        ids.sort_unstable();
        self.found.extend(spans);
        ids.into_iter().for_each(|span| self.judge_found(span, &[]));
        let closed = closed.into_iter().filter(|span| self.verdicts.contains_key(span));
        self.closed.extend(closed.map(|span| (self.pass, span)));
    }

    /// Begins another pass over the shards. Forgets closed spans that can have no more children.
    pub(crate) fn begin_pass(&mut self) {
        let complete = self.shards.iter().map(|shard| shard.copied_in).min().unwrap_or(0);
        self.forget_closed(complete);
        self.pass += 1;
    }

    /// Forgets the spans that were closed before this pass.
    fn forget_closed(&mut self, before: u64) {
        while let Some((pass, span)) = self.closed.front().copied()
            && pass < before
        {
            self.closed.pop_front();
            self.verdicts.remove(&span);
            if let Some(test) = &mut self.test {
                test.ends(span);
            }
        }
    }

    /// Returns true if many spans are remembered only because some rings wait to be copied.
    pub(crate) fn is_crowded(&self) -> bool {
        self.closed.len() > CLOSED_MAX
    }

    /// Takes note that everything was copied that this shard had at some time in this pass.
    pub(crate) fn see_copied(&mut self, shard: usize) {
        if let Some(shard) = self.shards.get_mut(shard) {
            shard.copied_in = self.pass;
        }
    }

    /// Judges the spans that begin in a block. After it, all spans are judged that began in a shard before its cursor,
    /// so a scout that reads on from the cursors misses none.
    pub(crate) fn judge_new(&mut self, events: &EventBatch, cursors: &[Option<&Cursor>]) {
        let mut awaiting_parent = Vec::new();
        let new =
            events.descriptors().iter().zip(0..).filter(|(event, _)| event.event_type == PerfEvent::SpanNew.code());
        for (event, index) in new {
            let payload = self.test.is_some().then(|| events.payload(index));
            let PerfExt { span_id, related: parent, call_site_id, .. } = PerfExt::from_words(event.content_ext);
            if self.rule.is_about_trees() && parent != 0 && !self.verdicts.contains_key(&parent) {
                let (id, span) = FoundSpan::new(event, payload);
                self.found.insert(id, span);
                awaiting_parent.push(id);
            } else {
                self.found.remove(&span_id);
                self.judge(span_id, parent, call_site_id, payload.map(|payload| (event, payload)));
            }
        }
        awaiting_parent.into_iter().for_each(|span| self.judge_found(span, cursors));
    }

    /// Returns true if the filter keeps this event of the recorder.
    pub(crate) fn keeps(&mut self, event: &Descriptor, payload: PayloadRead<'_>, cursors: &[Option<&Cursor>]) -> bool {
        let ext = PerfExt::from_words(event.content_ext);
        match PerfEvent::from_code(event.event_type) {
            Some(
                kind @ (PerfEvent::SpanNew
                | PerfEvent::SpanRecord
                | PerfEvent::SpanEnter
                | PerfEvent::SpanExit
                | PerfEvent::SpanFollowsFrom
                | PerfEvent::SpanClose),
            ) => {
                let verdict = self.verdict_of(&ext, cursors);
                if ext.closes_span(kind) {
                    self.closed.push_back((self.pass, ext.span_id));
                }
                verdict.is_sampled && verdict.is_named && (verdict.is_found || verdict.is_untested) && verdict.has_level
            }
            Some(kind @ (PerfEvent::Event | PerfEvent::Marker | PerfEvent::Counter))
                if kind == PerfEvent::Event || self.rule.has_condition() =>
            {
                let (is_in_tree, is_found) = match ext.span_id {
                    0 => (self.rule.keeps_every_name(), !self.rule.has_condition()),
                    _ if !self.rule.is_about_trees() => (true, true),
                    _ => {
                        let verdict = self.verdict_by_id(ext.span_id, cursors);
                        (verdict.is_sampled && verdict.is_named, verdict.is_found)
                    }
                };
                let mut holds = || self.test.as_mut().is_some_and(|test| test.holds(event, payload) != Truth::No);
                let is_wanted = is_found || (kind != PerfEvent::Counter && holds());
                is_in_tree && is_wanted && (kind != PerfEvent::Event || self.rule.has_level(ext.call_site_id))
            }
            // Descriptions. Without a condition, samples and marks, too.
            _ => true,
        }
    }

    /// Returns the verdict of a span that an event is about. The event has the call site of the span.
    fn verdict_of(&mut self, ext: &PerfExt, cursors: &[Option<&Cursor>]) -> TreeVerdict {
        let verdict = self.verdict_by_id(ext.span_id, cursors);
        match self.verdicts.contains_key(&ext.span_id) {
            true => verdict,
            // The beginning of the span was overwritten.
            false => self.judge(ext.span_id, 0, ext.call_site_id, None),
        }
    }

    /// Returns the verdict of a span in which an event of another ring was recorded, if the span is one of this
    /// recorder.
    pub(crate) fn verdict_if_known(&mut self, span: u64, cursors: &[Option<&Cursor>]) -> Option<TreeVerdict> {
        self.verdict_by_id(span, cursors);
        self.verdicts.get(&span).copied()
    }

    /// Returns the number of spans whose verdict is known.
    #[cfg(test)]
    pub(crate) fn known(&self) -> usize {
        self.verdicts.len()
    }

    fn verdict_by_id(&mut self, span: u64, cursors: &[Option<&Cursor>]) -> TreeVerdict {
        if !self.verdicts.contains_key(&span) && self.rule.is_about_trees() {
            self.judge_found(span, cursors);
        }
        self.verdicts.get(&span).copied().unwrap_or_else(|| self.as_root(span))
    }

    /// Returns the verdict of a span of which nothing but the id is known.
    fn as_root(&self, span: u64) -> TreeVerdict {
        let (is_sampled, is_named) = (self.rule.has_in_sample(span), self.rule.keeps_every_name());
        let is_found = !self.rule.has_condition();
        TreeVerdict { is_sampled, is_named, is_found, is_untested: false, has_level: true }
    }

    /// Judges a span by its parent and its call site, and remembers the verdict.
    fn judge(&mut self, span: u64, parent: u64, call_site: u32, begin: Begin<'_>) -> TreeVerdict {
        let fits = match (&mut self.test, begin) {
            (Some(test), Some((event, payload))) => test.begins(event, payload),
            _ => Truth::No,
        };
        // The siblings of a span whose parent is not known get the same verdict.
        let above = match (parent, self.verdicts.get(&parent)) {
            (0, _) => self.as_root(span),
            (_, Some(known)) => *known,
            (_, None) => self.as_root(parent),
        };
        let verdict = TreeVerdict {
            is_sampled: above.is_sampled,
            is_named: above.is_named || self.rule.has_wanted_name(call_site),
            is_found: above.is_found || fits == Truth::Yes,
            is_untested: fits == Truth::Unknown,
            has_level: self.rule.has_level(call_site),
        };
        if self.verdicts.len() >= SPANS_MAX {
            self.forget_closed(u64::MAX);
            // After losses there are spans of which no end is seen.
            if self.verdicts.len() >= SPANS_MAX {
                self.verdicts.clear();
            }
        }
        self.verdicts.insert(span, verdict);
        verdict
    }

    /// Judges a span that was found, and the spans above it. A parent may have been recorded on another shard, behind
    /// what was read so far of that shard; then the scouts read on.
    fn judge_found(&mut self, span: u64, cursors: &[Option<&Cursor>]) {
        let (mut path, mut next, mut may_scout) = (Vec::new(), span, true);
        while next != 0 && !self.verdicts.contains_key(&next) {
            // A span that names itself as its own ancestor is taken out of `found` at its first turn, so this ends.
            match self.found.remove(&next) {
                Some(found) => {
                    let parent = found.parent;
                    path.push((next, found));
                    next = parent;
                }
                None if std::mem::take(&mut may_scout) => self.scout(cursors),
                None => break,
            }
        }
        while let Some((span, found)) = path.pop() {
            let begin = found
                .begin
                .as_deref()
                .map(|(event, payload)| (event, payload.as_deref().map_or(PayloadRead::Expired, PayloadRead::Valid)));
            self.judge(span, found.parent, found.call_site, begin);
        }
    }

    /// Reads ahead in all shards, up to their present ends. A span that has been read before has all its ancestors
    /// before these ends.
    fn scout(&mut self, cursors: &[Option<&Cursor>]) {
        let (found, is_tested, mut buffer) = (&mut self.found, self.test.is_some(), Vec::new());
        for (shard, cursor) in self.shards.iter_mut().zip(cursors) {
            let (Some(scout), Some(cursor)) = (&mut shard.scout, cursor) else { continue };
            scout.read_on(cursor, |event, cursor| {
                // Spans that were overwritten before they were copied are never asked for.
                if found.len() >= SPANS_MAX {
                    found.clear();
                }
                let (id, span) = FoundSpan::new(event, is_tested.then(|| cursor.payload(event, &mut buffer)));
                found.insert(id, span);
            });
        }
    }
}
