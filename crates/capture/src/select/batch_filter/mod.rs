//! The filter decides which events a capture leaves out. These events become gaps with a cause of their own, so the
//! counts of events stay exact.
//!
//! Each recorder of the capture is filtered separately, because types, call sites and spans belong to one recorder.
//!
//! | file | idea |
//! |---|---|
//! | `sample` | the trees of spans that are in a sample |
//! | `span_test` | testing conditions on the events of a recorder |
//! | `trees` | keeping or leaving out whole trees of spans |
//! | `lookahead` | first events of spans, ahead of the copied events or before them |

mod lookahead;
mod sample;
mod span_test;
mod trees;
#[cfg(test)]
pub(crate) mod trees_tests;

use crate::format::columns::{BlockRecords, PlacedGap};
use crate::format::ring::ALL_PER_MILLION;
use crate::select::events::EventSelection;
use eventring::files::CONTENT_TYPE_PERF;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead, Reader};
use eventring::schema::ExtWords;
use sample::TreeSample;
use span_test::{Answers, SpanTest};
pub(crate) use span_test::{OpenSpans, no_open_spans};
use std::collections::{HashMap, HashSet};
pub(crate) use trees::{SpanTrees, TreeVerdict};

/// The filter of a capture into a file or into batches: it decides which events the capture leaves out.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct BatchFilter {
    events: EventSelection,
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
        Self { events: EventSelection::default(), sampled_per_million: ALL_PER_MILLION }
    }

    /// Keeps only events of this selection. A span is tested when it begins.
    pub fn events(self, events: EventSelection) -> Self {
        Self { events, ..self }
    }

    /// Keeps this many of a million trees of spans, each with all its spans and log records. Which ones depends on the
    /// id of the root, so each forwarder keeps the same. Log records outside of spans are kept.
    pub fn sampled_per_million(self, trees: u32) -> Self {
        Self { sampled_per_million: trees.min(ALL_PER_MILLION), ..self }
    }

    /// Returns the rate of [`Self::sampled_per_million`].
    pub(crate) fn rate_per_million(&self) -> u32 {
        self.sampled_per_million
    }

    /// Returns true if the filter asks in which spans events of this ring were recorded, and these are in other rings.
    pub fn asks_other_rings(&self, ring: &Reader) -> bool {
        ContentFilter::new(self, ring, no_open_spans()).asks_for_spans()
    }

    /// Returns true if the filter keeps all events.
    pub(crate) fn keeps_all(&self) -> bool {
        *self == Self::new()
    }
}

impl std::fmt::Display for BatchFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rate = f64::from(self.sampled_per_million) / f64::from(ALL_PER_MILLION);
        let sample = (self.sampled_per_million < ALL_PER_MILLION).then(|| format!("sample={rate}"));
        let events = Some(self.events.to_string()).filter(|events| !events.is_empty());
        f.write_str(&events.into_iter().chain(sample).collect::<Vec<_>>().join(" "))
    }
}

/// The meaning of the filter for the events of a recorder.
pub(crate) enum ContentFilter {
    Typed(Box<TypedFilter>),
    Spans(Box<SpanTrees>),
}

/// The meaning of the filter for typed events.
pub(crate) struct TypedFilter {
    /// The codes of the wanted types; `None` if all are wanted.
    codes: Option<HashSet<u16>>,
    /// What the events must fulfil, unless the span does in which they were recorded.
    test: SpanTest,
    /// True if events say in which span they were recorded.
    has_span: bool,
}

impl TypedFilter {
    pub(crate) fn keeps_all(&self) -> bool {
        self.codes.is_none() && self.test.is_empty()
    }

    /// Returns true if the filter asks in which spans events were recorded.
    pub(crate) fn asks_for_spans(&self) -> bool {
        self.has_span && self.test.all() != 0
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
        let fulfils = self.span_of(event).and_then(|span| spans.get(&span)).map_or(0, |span| span.fulfils);
        let missing = self.test.all() & !fulfils;
        self.codes.as_ref().is_none_or(|codes| codes.contains(&event.event_type))
            && self.test.fits(event, payload, false)
            && {
                let Answers { yes, unknown } = self.test.holds(event, payload, missing, false);
                yes | unknown == missing
            }
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

    /// Makes the filter for the recorder with this ring. `open` are the open spans of its program.
    pub(crate) fn new(filter: &BatchFilter, ring: &Reader, open: OpenSpans) -> Self {
        let test = SpanTest::new(&filter.events, ring, open);
        let codes = filter.events.codes(ring.schema().ok().as_deref());
        if ring.info().content_type == CONTENT_TYPE_PERF {
            let sample = TreeSample::new(filter.sampled_per_million, ring);
            return Self::Spans(Box::new(SpanTrees::new(sample, codes, test)));
        }
        Self::Typed(Box::new(TypedFilter { codes, test, has_span: ring.ext_words().has_span() }))
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
    fn typed_events_have_no_thread_target_or_level_that_a_filter_may_ask_for() {
        use eventring::recorder::{ContentDescription, Recorder};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        let builder = Recorder::builder(ContentDescription::new(300, "X")).config(path.to_str().unwrap());
        let _recorder = builder.prefault(false).build().unwrap();
        let ring = Reader::open(path).unwrap();
        let keeps = |events: EventSelection| {
            let filter = BatchFilter::new().events(events);
            let ContentFilter::Typed(mut typed) = ContentFilter::new(&filter, &ring, no_open_spans()) else { panic!() };
            typed.keeps(
                &Descriptor { event_type: 2, ..Descriptor::default() },
                PayloadRead::Valid(&[]),
                &HashMap::new(),
            )
        };
        let (all, name) = (EventSelection::default, || vec!["2".to_owned()]);
        assert!(keeps(all()) && keeps(EventSelection { types: name(), ..all() }));
        let level = Some(eventring::schema::perf::CallSiteLevel::Trace);
        assert!(!keeps(EventSelection { level, ..all() }) && !keeps(EventSelection { threads: name(), ..all() }));
        assert!(!keeps(EventSelection { targets: name(), ..all() }));
    }

    #[test]
    fn a_filter_says_in_words_what_it_keeps() {
        let filter = BatchFilter::new();
        assert!(filter.keeps_all() && filter.to_string().is_empty());
        let (types, spans) = (vec!["A".to_owned()], vec!["request".to_owned()]);
        let level = Some(eventring::schema::perf::CallSiteLevel::Info);
        let events = EventSelection { types, level, spans, ..EventSelection::default() };
        let filter = filter.events(events).sampled_per_million(10_000);
        assert_eq!(filter.to_string(), "type=A level=info span=request sample=0.01");
    }
}
