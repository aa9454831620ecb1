//! The events that a capture into batches leaves out. They become gaps with a cause of their own, so the account stays
//! exact.
//!
//! Each recorder of the capture is filtered by itself: its types, call sites and spans are its own.
//!
//! | file | idea |
//! |---|---|
//! | `event_test` | a condition that the caller brings along |
//! | `rule` | what a span's id and call site say about it |
//! | `trees` | spans are kept or left out by trees |
//! | `scout` | spans that begin ahead of what was copied, or that began before |

mod event_test;
mod rule;
mod scout;
mod trees;
#[cfg(test)]
mod trees_tests;

use crate::condition::Truth;
use crate::format::columns::{BlockRecords, PlacedGap};
use crate::format::ring::ALL_PER_MILLION;
pub use event_test::{EventCondition, EventTest};
use eventring::files::CONTENT_TYPE_PERF;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead, Reader};
use eventring::schema::ExtWords;
use eventring::schema::perf::CallSiteLevel;
use rule::SpanRule;
use std::collections::{HashMap, HashSet};
pub(crate) use trees::{SpanTrees, TreeVerdict};

/// The events that a forwarder sends.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct BatchFilter {
    types: Vec<String>,
    level: CallSiteLevel,
    spans: Vec<String>,
    sampled_per_million: u32,
    condition: Option<EventCondition>,
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
        Self { types, level: CallSiteLevel::Trace, spans, sampled_per_million: ALL_PER_MILLION, condition: None }
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

    /// Keeps only spans of this name and everything inside them, besides those of earlier calls. The name may begin
    /// with the target: `shop::web::query`.
    pub fn span(mut self, name: impl Into<String>) -> Self {
        self.spans.push(name.into());
        self
    }

    /// Keeps this many of a million trees of spans, each with all its spans and log records. Which ones depends on the
    /// id of the root, so each forwarder keeps the same. Log records outside of spans are kept.
    pub fn sampled_per_million(self, trees: u32) -> Self {
        Self { sampled_per_million: trees.min(ALL_PER_MILLION), ..self }
    }

    /// Keeps only spans that fulfil a condition when they begin, with everything inside them, and log records, marks
    /// and typed events that fulfil it.
    pub fn condition(self, condition: EventCondition) -> Self {
        Self { condition: Some(condition), ..self }
    }

    /// Returns the rate of [`Self::sampled_per_million`].
    pub(crate) fn rate_per_million(&self) -> u32 {
        self.sampled_per_million
    }

    /// Returns true if the filter asks in which spans events of this ring were recorded, and these are in other rings.
    pub fn asks_other_rings(&self, ring: &Reader) -> bool {
        ContentFilter::new(self, ring).asks_for_spans()
    }

    /// Returns true if the filter keeps all events.
    pub(crate) fn keeps_all(&self) -> bool {
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
        let rate = f64::from(self.sampled_per_million) / f64::from(ALL_PER_MILLION);
        let sample = is_sampled.then(|| format!("sample={rate}"));
        let condition = self.condition.as_ref().map(|condition| format!("where={}", condition.text()));
        f.write_str(&types.chain(level).chain(spans).chain(sample).chain(condition).collect::<Vec<_>>().join(" "))
    }
}

/// The meaning of the filter for the events of a recorder.
pub(crate) enum ContentFilter {
    Typed(TypedFilter),
    Spans(Box<SpanTrees>),
}

/// The meaning of the filter for typed events.
pub(crate) struct TypedFilter {
    /// The codes of the wanted types; `None` if all are wanted.
    codes: Option<HashSet<u16>>,
    /// What the events must fulfil, unless the span does in which they were recorded.
    test: Option<Box<dyn EventTest>>,
    /// True if events are wanted only in spans of some names.
    is_by_span: bool,
    /// True if events say in which span they were recorded.
    has_span: bool,
}

impl TypedFilter {
    pub(crate) fn keeps_all(&self) -> bool {
        self.codes.is_none() && self.test.is_none() && !self.is_by_span
    }

    /// Returns true if the filter asks in which spans events were recorded.
    pub(crate) fn asks_for_spans(&self) -> bool {
        self.has_span && (self.test.is_some() || self.is_by_span)
    }

    /// Returns the span in which an event was recorded, if the filter asks for it.
    pub(crate) fn span_of(&self, event: &Descriptor) -> Option<u64> {
        let span = event.content_ext[ExtWords::SPAN_INDEX];
        (self.asks_for_spans() && span != 0).then_some(span)
    }

    /// Returns true if the filter keeps this event. `spans` are the verdicts of the spans that are known.
    pub(crate) fn keeps(
        &mut self,
        event: &Descriptor,
        payload: PayloadRead<'_>,
        spans: &HashMap<u64, TreeVerdict>,
    ) -> bool {
        let span = self.span_of(event).and_then(|span| spans.get(&span));
        self.codes.as_ref().is_none_or(|codes| codes.contains(&event.event_type))
            && (!self.is_by_span || span.is_some_and(|span| span.is_named))
            && (span.is_some_and(|span| span.is_found)
                || self.test.as_mut().is_none_or(|test| test.holds(event, payload) != Truth::No))
    }
}

impl ContentFilter {
    pub(crate) fn has_spans(&self) -> bool {
        matches!(self, Self::Spans(_))
    }

    /// Returns true if these are typed events of which the filter asks in which spans they were recorded.
    pub(crate) fn asks_for_spans(&self) -> bool {
        matches!(self, Self::Typed(typed) if typed.asks_for_spans())
    }

    /// Makes the filter for the recorder with this ring.
    pub(crate) fn new(filter: &BatchFilter, ring: &Reader) -> Self {
        if ring.info().content_type == CONTENT_TYPE_PERF {
            let test = filter.condition.as_ref().map(|condition| condition.test(ring));
            return Self::Spans(Box::new(SpanTrees::new(SpanRule::new(filter, ring), test)));
        }
        let model = ring.schema().ok();
        let code = |name: &String| model.as_deref().and_then(|model| model.event_by_name(name)).map(|it| it.code());
        // A number stands for a type that the schema does not name.
        let codes = filter.types.iter().filter_map(|name| code(name).or(name.parse().ok())).collect();
        let test = filter.condition.as_ref().map(|condition| condition.test(ring));
        let codes = (!filter.types.is_empty()).then_some(codes);
        let is_by_span = !filter.spans.is_empty();
        Self::Typed(TypedFilter { codes, test, is_by_span, has_span: ring.ext_words().has_span() })
    }
}

impl BlockRecords {
    /// Removes the events that are not wanted. Their seqnos become gaps.
    pub(crate) fn filter(&mut self, mut keeps: impl FnMut(&Descriptor, PayloadRead<'_>) -> bool) {
        let mut known = std::mem::take(&mut self.gaps).into_iter().peekable();
        let (mut gaps, mut index, mut events_before) = (Vec::new(), 0, 0);
        self.events.retain(|event, payload| {
            while let Some(placed) = known.next_if(|placed| placed.events_before <= index) {
                gaps.push(PlacedGap { events_before, gap: placed.gap });
            }
            index += 1;
            if keeps(event, payload) {
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
    use eventring::reader::EventBatch;

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
        records.filter(|event, _| event.seqno == 4 || event.seqno == 9);
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
        assert_eq!(filter.to_string(), "type=A level=info span=request sample=0.01");
    }
}
