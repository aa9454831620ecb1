//! The events that a capture into batches leaves out. They become gaps with a cause of their own, so the account stays
//! exact.
//!
//! Spans are kept or left out by trees: what holds for the root of a tree holds for all spans in it, on whatever
//! threads and shards they are. A shard may be copied before the one with the parent of a span. Then a scout reads
//! ahead in all shards: a parent was recorded before its children.

use super::batches::process_key;
use super::columns::{BlockRecords, PlacedGap};
use super::sources::CopiedRing;
use crate::layout::header::CONTENT_TYPE_PERF;
use crate::reader::{Cursor, Descriptor, Gap, GapCause, Next, Reader};
use crate::schema::EventType as _;
use crate::schema::SchemaModel;
use crate::schema::perf::{CallSiteLevel, PerfEvent, PerfExt};
use crate::tracing::Catalog;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// The number of spans whose tree is remembered at most. Beyond it, all are forgotten, and those that are still open
/// are judged as if they were roots.
const SPANS_MAX: usize = 1 << 20;
/// The sampling rate at which all trees are kept.
pub(super) const ALL_PER_MILLION: u32 = 1_000_000;

/// The events that a forwarder sends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct BatchFilter {
    types: Vec<String>,
    level: CallSiteLevel,
    spans: Vec<String>,
    sampled_per_million: u32,
}

impl Default for BatchFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchFilter {
    /// Makes a filter that keeps all events.
    pub fn new() -> Self {
        let (types, spans) = (Vec::new(), Vec::new());
        Self { types, level: CallSiteLevel::Trace, spans, sampled_per_million: ALL_PER_MILLION }
    }

    /// Keeps only typed events of this type, besides those of earlier calls. Spans and log records are no typed events.
    pub fn event_type(mut self, name: impl Into<String>) -> Self {
        self.types.push(name.into());
        self
    }

    /// Leaves out spans and log records of more verbose levels than this one.
    pub fn level(self, level: CallSiteLevel) -> Self {
        Self { level, ..self }
    }

    /// Keeps only spans of this name and everything inside them, besides those of earlier calls.
    pub fn span(mut self, name: impl Into<String>) -> Self {
        self.spans.push(name.into());
        self
    }

    /// Keeps this many of a million trees of spans, each with all its spans and log records. Which ones depends on the
    /// id of the root, so each forwarder keeps the same. Log records outside of spans are kept.
    pub fn sampled_per_million(self, trees: u32) -> Self {
        Self { sampled_per_million: trees.min(ALL_PER_MILLION), ..self }
    }

    /// Returns the rate of [`Self::sampled_per_million`].
    pub(super) fn rate_per_million(&self) -> u32 {
        self.sampled_per_million
    }

    /// Returns true if the filter keeps all events.
    pub(super) fn keeps_all(&self) -> bool {
        *self == Self::new()
    }
}

impl std::fmt::Display for BatchFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types = self.types.iter().map(|name| format!("type={name}"));
        let spans = self.spans.iter().map(|name| format!("span={name}"));
        let level = (self.level != CallSiteLevel::Trace).then(|| self.level.name()).flatten();
        let level = level.map(|level| format!("level={}", level.to_lowercase()));
        let is_sampled = self.sampled_per_million < ALL_PER_MILLION;
        let sample = is_sampled.then(|| format!("sample={}/1000000", self.sampled_per_million));
        f.write_str(&types.chain(level).chain(spans).chain(sample).collect::<Vec<_>>().join(" "))
    }
}

/// The verdict on a span, by its tree.
#[derive(Clone, Copy)]
struct TreeVerdict {
    is_sampled: bool,
    /// True if the span or one above it has a wanted name.
    is_named: bool,
    has_level: bool,
}

/// A span of which the beginning was read.
#[derive(Clone, Copy)]
struct FoundSpan {
    parent: u64,
    call_site: u32,
}

impl FoundSpan {
    fn new(ext: &PerfExt) -> Self {
        Self { parent: ext.related, call_site: ext.call_site_id }
    }
}

/// A filter at work on the rings of one recorder.
pub(super) struct RunningFilter {
    filter: BatchFilter,
    /// The codes of the wanted types; `None` if all are wanted, or for a perf ring.
    types: Option<HashSet<u16>>,
    is_perf: bool,
    shard0: Option<Reader>,
    process_key: u64,
    catalog: Catalog,
    spans: HashMap<u64, TreeVerdict>,
    /// Spans that were read and not judged yet.
    found: HashMap<u64, FoundSpan>,
    /// Spans that were closed, with the pass in which they were. They are remembered until all other rings were copied,
    /// too, because these may have children of them.
    closed: VecDeque<(u64, u64)>,
    pass: u64,
    /// For each ring, the last pass in which everything that it had was copied.
    copied_in: Vec<u64>,
    /// A cursor for each ring, ahead of the one that copies; `None` for a ring that could not be opened.
    scouts: Vec<Option<Cursor>>,
}

impl RunningFilter {
    /// Makes a filter for the recorder of this ring.
    pub(super) fn new(filter: &BatchFilter, ring: &Reader) -> Self {
        let info = ring.info();
        let is_perf = info.content_type == CONTENT_TYPE_PERF;
        let text = ring.schema_text();
        let model = SchemaModel::of_ring(info.content_type, info.schema_hash, text.as_deref()).ok();
        let code = |name: &String| model.as_deref().and_then(|model| model.event_by_name(name)).map(|it| it.code());
        // A number stands for a type that the schema does not name.
        let types = filter.types.iter().filter_map(|name| code(name).or(name.parse().ok())).collect();
        Self {
            types: (!is_perf && !filter.types.is_empty()).then_some(types),
            is_perf,
            shard0: is_perf.then(|| ring.clone()),
            process_key: process_key(ring),
            filter: filter.clone(),
            catalog: Catalog::new(),
            spans: HashMap::new(),
            found: HashMap::new(),
            closed: VecDeque::new(),
            pass: 0,
            copied_in: Vec::new(),
            scouts: Vec::new(),
        }
    }

    /// Begins another pass over the rings, of which there are so many. Forgets closed spans that can have no more
    /// children.
    pub(super) fn begin_pass(&mut self, rings: usize) {
        let complete = self.copied_in.iter().copied().min().unwrap_or(0);
        while let Some((pass, span)) = self.closed.front().copied()
            && pass < complete
        {
            self.closed.pop_front();
            self.spans.remove(&span);
        }
        self.copied_in.resize(rings, self.pass);
        self.pass += 1;
    }

    /// Takes note that everything was copied that this ring had at some time in this pass.
    pub(super) fn see_copied(&mut self, ring: usize) {
        if let Some(pass) = self.copied_in.get_mut(ring) {
            *pass = self.pass;
        }
    }

    /// Removes the unwanted events of a block. `rings` are all rings of the capture.
    pub(super) fn apply(&mut self, records: &mut BlockRecords, rings: &[CopiedRing]) {
        if self.is_perf {
            self.judge_new_spans(records.events.descriptors(), rings);
        }
        records.filter(|event| self.keeps(event, rings));
    }

    /// Judges the spans that begin in a block. After it, all spans are judged that began in a ring before its cursor,
    /// so a scout that reads on from the cursors misses none.
    fn judge_new_spans(&mut self, events: &[Descriptor], rings: &[CopiedRing]) {
        let mut awaiting_parent = Vec::new();
        for event in events.iter().filter(|event| event.event_type == PerfEvent::SpanNew.code()) {
            let ext = PerfExt::from_words(event.content_ext);
            if ext.related == 0 || self.spans.contains_key(&ext.related) {
                self.found.remove(&ext.span_id);
                self.judge(ext.span_id, ext.related, ext.call_site_id);
            } else {
                self.found.insert(ext.span_id, FoundSpan::new(&ext));
                awaiting_parent.push(ext.span_id);
            }
        }
        awaiting_parent.into_iter().for_each(|span| self.judge_found(span, rings));
    }

    fn keeps(&mut self, event: &Descriptor, rings: &[CopiedRing]) -> bool {
        if !self.is_perf {
            return self.types.as_ref().is_none_or(|types| types.contains(&event.event_type));
        }
        let ext = PerfExt::from_words(event.content_ext);
        match PerfEvent::from_code(event.event_type) {
            Some(PerfEvent::SpanClose) => {
                let verdict = self.verdict_of(&ext, rings);
                self.closed.push_back((self.pass, ext.span_id));
                verdict.is_sampled && verdict.is_named && verdict.has_level
            }
            Some(
                PerfEvent::SpanNew
                | PerfEvent::SpanRecord
                | PerfEvent::SpanEnter
                | PerfEvent::SpanExit
                | PerfEvent::SpanFollowsFrom,
            ) => {
                let verdict = self.verdict_of(&ext, rings);
                verdict.is_sampled && verdict.is_named && verdict.has_level
            }
            Some(PerfEvent::Event) => {
                let is_in_tree = match ext.span_id {
                    0 => self.filter.spans.is_empty(),
                    _ => {
                        let verdict = self.verdict_by_id(ext.span_id, rings);
                        verdict.is_sampled && verdict.is_named
                    }
                };
                is_in_tree && self.has_level(ext.call_site_id)
            }
            // Descriptions, samples and marks.
            _ => true,
        }
    }

    /// Returns the verdict of a span that an event is about. The event has the call site of the span.
    fn verdict_of(&mut self, ext: &PerfExt, rings: &[CopiedRing]) -> TreeVerdict {
        let verdict = self.verdict_by_id(ext.span_id, rings);
        match self.spans.contains_key(&ext.span_id) {
            true => verdict,
            // The span began before this forwarder.
            false => self.judge(ext.span_id, 0, ext.call_site_id),
        }
    }

    fn verdict_by_id(&mut self, span: u64, rings: &[CopiedRing]) -> TreeVerdict {
        if !self.spans.contains_key(&span) {
            self.judge_found(span, rings);
        }
        self.spans.get(&span).copied().unwrap_or_else(|| self.as_root(span))
    }

    /// Returns the verdict of a span of which nothing but the id is known.
    fn as_root(&self, span: u64) -> TreeVerdict {
        let mut hasher = XxHash3_64::new();
        hasher.write(&self.process_key.to_le_bytes());
        hasher.write(&span.to_le_bytes());
        let place = (u128::from(hasher.finish()) * u128::from(ALL_PER_MILLION)) >> 64;
        let is_sampled = place < u128::from(self.filter.sampled_per_million);
        TreeVerdict { is_sampled, is_named: self.filter.spans.is_empty(), has_level: true }
    }

    /// Judges a span by its parent and its call site, and remembers the verdict.
    fn judge(&mut self, span: u64, parent: u64, call_site: u32) -> TreeVerdict {
        // The siblings of a span whose parent is not known get the same verdict.
        let above = match (parent, self.spans.get(&parent)) {
            (0, _) => self.as_root(span),
            (_, Some(known)) => *known,
            (_, None) => self.as_root(parent),
        };
        let has_name = !self.filter.spans.is_empty() && self.has_wanted_name(call_site);
        let verdict = TreeVerdict {
            is_sampled: above.is_sampled,
            is_named: above.is_named || has_name,
            has_level: self.has_level(call_site),
        };
        // After losses there are spans of which no end is seen.
        if self.spans.len() >= SPANS_MAX {
            self.spans.clear();
            self.closed.clear();
        }
        self.spans.insert(span, verdict);
        verdict
    }

    fn has_level(&mut self, call_site: u32) -> bool {
        self.filter.level == CallSiteLevel::Trace || {
            self.know(call_site);
            self.catalog.known_call_site(call_site).is_none_or(|it| it.level <= self.filter.level)
        }
    }

    fn has_wanted_name(&mut self, call_site: u32) -> bool {
        self.know(call_site);
        let known = self.catalog.known_call_site(call_site);
        known.is_some_and(|it| self.filter.spans.iter().any(|name| **name == *it.name))
    }

    /// Reads the table of call sites, if it may have one that is not known yet.
    fn know(&mut self, call_site: u32) {
        if let Some(shard0) = self.shard0.as_ref().filter(|_| !self.catalog.knows_call_site(call_site)) {
            self.catalog.update(shard0);
        }
    }

    /// Judges a span that was found, and the spans above it. A parent may have been recorded on another shard, behind
    /// what was read so far of that shard; then a scout reads on.
    fn judge_found(&mut self, span: u64, rings: &[CopiedRing]) {
        let (mut path, mut next, mut may_scout) = (Vec::new(), span, true);
        while next != 0 && !self.spans.contains_key(&next) {
            // A span that names itself as its own ancestor is taken out of `found` at its first turn, so this ends.
            match self.found.remove(&next) {
                Some(found) => {
                    path.push((next, found));
                    next = found.parent;
                }
                None if std::mem::take(&mut may_scout) => self.scout(rings),
                None => break,
            }
        }
        while let Some((span, found)) = path.pop() {
            self.judge(span, found.parent, found.call_site);
        }
    }

    /// Reads ahead in all shards, up to their present ends. A span that has been read before has all its ancestors
    /// before these ends.
    fn scout(&mut self, rings: &[CopiedRing]) {
        for (index, ring) in rings.iter().enumerate() {
            let cursor = ring.input.as_ref().map(|input| &input.cursor);
            if self.scouts.len() <= index {
                self.scouts.push(cursor.cloned());
            }
            let (Some(scout), Some(cursor)) = (&mut self.scouts[index], cursor) else { continue };
            if scout.next_seqno() < cursor.next_seqno() {
                *scout = cursor.clone();
            }
            loop {
                match scout.next() {
                    Next::Event(event) if event.event_type == PerfEvent::SpanNew.code() => {
                        let ext = PerfExt::from_words(event.content_ext);
                        // Spans that were overwritten before they were copied are never asked for.
                        if self.found.len() >= SPANS_MAX {
                            self.found.clear();
                        }
                        self.found.insert(ext.span_id, FoundSpan::new(&ext));
                    }
                    Next::Event(_) | Next::Gap(_) => {}
                    Next::NotReady => break,
                }
            }
        }
    }
}

impl BlockRecords {
    /// Removes the events that are not wanted. Their seqnos become gaps.
    fn filter(&mut self, mut keeps: impl FnMut(&Descriptor) -> bool) {
        let known = std::mem::take(&mut self.gaps);
        let mut known = known.into_iter().peekable();
        let (mut gaps, mut index, mut events_before) = (Vec::new(), 0, 0);
        self.events.retain(|event| {
            while let Some(placed) = known.next_if(|placed| placed.events_before <= index) {
                gaps.push(PlacedGap { events_before, gap: placed.gap });
            }
            index += 1;
            if keeps(event) {
                events_before += 1;
                return true;
            }
            match gaps.last_mut() {
                Some(PlacedGap { events_before: place, gap })
                    if *place == events_before
                        && gap.cause == GapCause::Filtered
                        && gap.first_seqno.saturating_add(gap.count) == event.seqno =>
                {
                    gap.count += 1;
                }
                _ => {
                    let gap = Gap { first_seqno: event.seqno, count: 1, cause: GapCause::Filtered };
                    gaps.push(PlacedGap { events_before, gap });
                }
            }
            false
        });
        gaps.extend(known.map(|placed| PlacedGap { events_before, gap: placed.gap }));
        self.gaps = gaps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{EventBatch, PayloadRead};

    #[test]
    fn each_seqno_stays_an_event_or_in_a_gap_and_payloads_stay_with_their_events() {
        let mut events = EventBatch::new(1 << 20, 100);
        for seqno in [3, 4, 5, 8, 9, 10_u64] {
            let descriptor = Descriptor { seqno, payload_size: 1, ..Descriptor::default() };
            events.push(&descriptor, PayloadRead::Valid(&[seqno as u8]));
        }
        let lost = |events_before, first_seqno, count| PlacedGap {
            events_before,
            gap: Gap { first_seqno, count, cause: GapCause::Overwritten },
        };
        let mut records = BlockRecords { ring: 0, events, gaps: vec![lost(0, 1, 2), lost(3, 6, 2), lost(6, 11, 1)] };
        records.filter(|event| event.seqno == 4 || event.seqno == 9);
        let gaps: Vec<_> =
            records.gaps.iter().map(|it| (it.events_before, it.gap.first_seqno, it.gap.count, it.gap.cause)).collect();
        let (lost, filtered) = (GapCause::Overwritten, GapCause::Filtered);
        let expected = [
            (0, 1, 2, lost),
            (0, 3, 1, filtered),
            (1, 5, 1, filtered),
            (1, 6, 2, lost),
            (1, 8, 1, filtered),
            (2, 10, 1, filtered),
            (2, 11, 1, lost),
        ];
        assert_eq!(gaps, expected);
        let kept: Vec<_> =
            (0..2).map(|index| (records.events.descriptors()[index].seqno, records.events.payload(index))).collect();
        assert_eq!(kept, [(4, PayloadRead::Valid(&[4])), (9, PayloadRead::Valid(&[9]))]);
    }

    #[test]
    fn a_filter_says_in_words_what_it_keeps() {
        let filter = BatchFilter::new();
        assert!(filter.keeps_all() && filter.to_string().is_empty());
        let filter = filter.event_type("A").level(CallSiteLevel::Info).span("request").sampled_per_million(10_000);
        assert_eq!(filter.to_string(), "type=A level=info span=request sample=10000/1000000");
    }
}
