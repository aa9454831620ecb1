//! The trees of spans of one perf recorder. The decision about the root of a tree holds for all spans of the tree, on
//! all threads and shards.
//!
//! A span and its parent may be in different shards. If the span's shard is copied first, the filter reads ahead in all
//! shards to find the parent, which was recorded earlier.
//!
//! Some spans may be open when a capture begins, so the filter first reads the older events in the rings.

use super::lookahead::{Lookahead, read_past};
use super::sample::TreeSample;
use super::span_test::{Answers, Bits, SpanTest};
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
    /// The conditions that the span or one above it fulfils.
    pub(super) fulfils: Bits,
    /// The conditions that could not be tested on the span, because its fields were lost. Its own events are kept, and
    /// nothing in it.
    untested: Bits,
}

/// A span of which the beginning was read, in a block or further on in a shard. It is judged when the spans above it
/// are known.
struct PendingSpan {
    begin: Descriptor,
    /// The payload, if it is asked for and was not lost.
    payload: Option<Vec<u8>>,
}

impl PendingSpan {
    /// Returns a span and its id. `payload` is that of its beginning, if it is to be tested.
    fn new(event: &Descriptor, payload: Option<PayloadRead<'_>>) -> (u64, Self) {
        let payload = payload.map_or(Some(Vec::new()), |payload| payload.valid().map(<[u8]>::to_vec));
        (PerfExt::from_words(event.content_ext).span_id, Self { begin: *event, payload })
    }

    fn parent(&self) -> u64 {
        PerfExt::from_words(self.begin.content_ext).related
    }
}

/// The knowledge of the time before the copying began, from the shards.
#[derive(Default)]
struct Past {
    spans: HashMap<u64, PendingSpan>,
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
            let (id, span) = PendingSpan::new(event, is_tested.then(|| cursor.payload(event, &mut self.buffer)));
            self.spans.insert(id, span);
        } else {
            self.closed.insert(PerfExt::from_words(event.content_ext).span_id);
        }
    }
}

/// A shard of the recorder, or another ring whose events ask for spans of the recorder.
struct FilteredShard {
    /// `None` for a shard that could not be opened, and for another ring.
    lookahead: Option<Lookahead>,
    /// The last pass in which everything was copied that the shard had.
    copied_in: u64,
}

/// The trees of the spans of one recorder. `cursors` are always those that copy its shards and the rings that ask for
/// its spans, in the order in which they were added; `None` stands for a shard that could not be opened.
pub(crate) struct SpanTrees {
    sample: TreeSample,
    /// The codes of the wanted types; `None` if all are wanted.
    codes: Option<HashSet<u16>>,
    /// The conditions at work.
    test: SpanTest,
    /// The time of the last event that was tested, in nanoseconds since the epoch.
    last_nanos: u64,
    verdicts: HashMap<u64, TreeVerdict>,
    /// Spans that were read ahead and not judged yet.
    found: HashMap<u64, PendingSpan>,
    /// Spans that were closed, with the pass in which they were. They are remembered until all other shards were
    /// copied, too, because these may have children of them, and all rings whose events ask for spans.
    closed: VecDeque<(u64, u64)>,
    pass: u64,
    shards: Vec<FilteredShard>,
    past: Past,
}

impl SpanTrees {
    pub(super) fn new(sample: TreeSample, codes: Option<HashSet<u16>>, test: SpanTest) -> Self {
        Self {
            sample,
            codes,
            test,
            last_nanos: 0,
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
        self.shards.push(FilteredShard { lookahead: cursor.map(Lookahead::new), copied_in: self.pass });
        if let Some(cursor) = cursor.filter(|_| self.is_about_trees()) {
            let is_tested = self.test.reads_payloads();
            read_past(cursor, |event, cursor| self.past.see(event, is_tested, cursor));
        }
    }

    /// Adds a ring of typed events that may have been recorded in spans of this recorder. Then call
    /// [`Self::judge_past`].
    pub(crate) fn add_asking_ring(&mut self, cursors: &[Option<&Cursor>]) {
        // The ring may ask for spans that are forgotten.
        if self.pass > 0 {
            let (past, is_tested) = (&mut self.past, self.test.reads_payloads());
            for (_, cursor) in self.shards.iter().zip(cursors).filter(|(shard, _)| shard.lookahead.is_some()) {
                cursor.iter().for_each(|cursor| read_past(cursor, |event, cursor| past.see(event, is_tested, cursor)));
            }
        }
        self.shards.push(FilteredShard { lookahead: None, copied_in: self.pass });
    }

    /// Judges the spans that began before the copying did.
    pub(crate) fn judge_past(&mut self, cursors: &[Option<&Cursor>]) {
        let Past { mut spans, closed, .. } = std::mem::take(&mut self.past);
        spans.retain(|span, _| !self.verdicts.contains_key(span));
        // One look ahead is enough for all: what they need was recorded before them.
        if !spans.is_empty() {
            self.look_ahead(cursors);
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
            self.test.ends(span, self.last_nanos);
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
    /// so a lookahead that reads on from the cursors misses none.
    pub(crate) fn judge_new(&mut self, events: &EventBatch, cursors: &[Option<&Cursor>]) {
        let mut awaiting_parent = Vec::new();
        for (event, index) in events.descriptors().iter().zip(0..) {
            match PerfEvent::from_code(event.event_type) {
                Some(PerfEvent::SpanNew) => {}
                Some(PerfEvent::CallSite | PerfEvent::ThreadStarted) => {
                    self.test.learn(event, events.payload(index));
                    continue;
                }
                _ => continue,
            }
            let PerfExt { span_id, related: parent, .. } = PerfExt::from_words(event.content_ext);
            if self.is_about_trees() && parent != 0 && !self.verdicts.contains_key(&parent) {
                let payload = self.test.reads_payloads().then(|| events.payload(index));
                let (id, span) = PendingSpan::new(event, payload);
                self.found.insert(id, span);
                awaiting_parent.push(id);
            } else {
                self.found.remove(&span_id);
                self.judge(span_id, parent, event, events.payload(index));
            }
        }
        awaiting_parent.into_iter().for_each(|span| self.judge_found(span, cursors));
    }

    /// Returns true if the filter needs to know the spans above a span.
    fn is_about_trees(&self) -> bool {
        !self.sample.has_all() || self.test.all() != 0
    }

    /// Returns true if the filter keeps this event of the recorder.
    pub(crate) fn keeps(&mut self, event: &Descriptor, payload: PayloadRead<'_>, cursors: &[Option<&Cursor>]) -> bool {
        let ext = PerfExt::from_words(event.content_ext);
        self.last_nanos = self.last_nanos.max(event.record_epoch_nanos);
        let Some(kind) = PerfEvent::from_code(event.event_type) else { return true };
        let is_kept = match kind {
            PerfEvent::SpanNew
            | PerfEvent::SpanRecord
            | PerfEvent::SpanEnter
            | PerfEvent::SpanExit
            | PerfEvent::SpanFollowsFrom
            | PerfEvent::SpanClose => {
                let verdict = self.verdict_of(event, payload, cursors);
                if ext.closes_span(kind) {
                    self.closed.push_back((self.pass, ext.span_id));
                }
                verdict.is_sampled && verdict.fulfils | verdict.untested == self.test.all()
            }
            PerfEvent::Event | PerfEvent::Marker | PerfEvent::Counter => {
                let (is_sampled, fulfils) = match ext.span_id {
                    0 => (true, 0),
                    span if self.is_about_trees() => {
                        let verdict = self.verdict_by_id(span, cursors);
                        (verdict.is_sampled || kind != PerfEvent::Event, verdict.fulfils)
                    }
                    _ => (true, 0),
                };
                let missing = self.test.all() & !fulfils;
                is_sampled
                    && (missing == 0
                        || kind.is_happening() && {
                            let Answers { yes, unknown } = self.test.holds(event, payload, missing, true);
                            yes | unknown == missing
                        })
            }
            // Descriptions, ends, times and allocations of threads, and what says that something is missing.
            PerfEvent::RecordError
            | PerfEvent::ThreadStarted
            | PerfEvent::ThreadEnded
            | PerfEvent::ThreadSwitched
            | PerfEvent::ThreadTime
            | PerfEvent::Allocated
            | PerfEvent::CallSite => {
                return true;
            }
        };
        let is_of_type = self.codes.as_ref().is_none_or(|codes| codes.contains(&event.event_type));
        is_kept && is_of_type && self.test.fits(event, payload, true)
    }

    /// Returns the verdict of a span that an event is about.
    fn verdict_of(&mut self, event: &Descriptor, payload: PayloadRead<'_>, cursors: &[Option<&Cursor>]) -> TreeVerdict {
        let span = PerfExt::from_words(event.content_ext).span_id;
        let verdict = self.verdict_by_id(span, cursors);
        match self.verdicts.contains_key(&span) {
            true => verdict,
            // The beginning of the span was overwritten.
            false => self.judge(span, 0, event, payload),
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
        if !self.verdicts.contains_key(&span) && self.is_about_trees() {
            self.judge_found(span, cursors);
        }
        self.verdicts.get(&span).copied().unwrap_or_else(|| self.as_root(span))
    }

    /// Returns the verdict of a span of which nothing but the id is known.
    fn as_root(&self, span: u64) -> TreeVerdict {
        TreeVerdict { is_sampled: self.sample.has(span), fulfils: 0, untested: 0 }
    }

    /// Judges a span by its parent and by itself, and remembers the verdict. `event` is its beginning, or the first of
    /// its events that is known.
    fn judge(&mut self, span: u64, parent: u64, event: &Descriptor, payload: PayloadRead<'_>) -> TreeVerdict {
        let own = if self.test.all() == 0 { Answers::default() } else { self.test.begins(event, payload) };
        // The siblings of a span whose parent is not known get the same verdict.
        let above = match (parent, self.verdicts.get(&parent)) {
            (0, _) => self.as_root(span),
            (_, Some(known)) => *known,
            (_, None) => self.as_root(parent),
        };
        let fulfils = above.fulfils | own.yes;
        let verdict = TreeVerdict { is_sampled: above.is_sampled, fulfils, untested: own.unknown };
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
    /// what was read so far of that shard; then the lookaheads read on.
    fn judge_found(&mut self, span: u64, cursors: &[Option<&Cursor>]) {
        let (mut path, mut next, mut may_look_ahead) = (Vec::new(), span, true);
        while next != 0 && !self.verdicts.contains_key(&next) {
            // A span that names itself as its own ancestor is taken out of `found` at its first turn, so this ends.
            match self.found.remove(&next) {
                Some(found) => {
                    let parent = found.parent();
                    path.push((next, found));
                    next = parent;
                }
                None if std::mem::take(&mut may_look_ahead) => self.look_ahead(cursors),
                None => break,
            }
        }
        while let Some((span, found)) = path.pop() {
            let payload = found.payload.as_deref().map_or(PayloadRead::Expired, PayloadRead::Valid);
            self.judge(span, found.parent(), &found.begin, payload);
        }
    }

    /// Reads ahead in all shards, up to their present ends. A span that has been read before has all its ancestors
    /// before these ends.
    fn look_ahead(&mut self, cursors: &[Option<&Cursor>]) {
        let (found, is_tested, mut buffer) = (&mut self.found, self.test.reads_payloads(), Vec::new());
        for (shard, cursor) in self.shards.iter_mut().zip(cursors) {
            let (Some(lookahead), Some(cursor)) = (&mut shard.lookahead, cursor) else { continue };
            lookahead.read_on(cursor, |event, cursor| {
                // Spans that were overwritten before they were copied are never asked for.
                if found.len() >= SPANS_MAX {
                    found.clear();
                }
                let (id, span) = PendingSpan::new(event, is_tested.then(|| cursor.payload(event, &mut buffer)));
                found.insert(id, span);
            });
        }
    }
}
