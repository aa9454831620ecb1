//! The filter of a running capture. It filters the events of each recorder separately.

use crate::engine::sources::{CopiedRing, Sources};
use crate::format::columns::BlockRecords;
use crate::format::ring::process_key;
use crate::select::batch_filter::{BatchFilter, ContentFilter, OpenSpans, SpanTrees, TreeVerdict, no_open_spans};
use eventring::reader::Cursor;
use std::collections::{HashMap, HashSet};

/// A filter at work on the rings of a capture.
pub(crate) struct RunningFilter {
    filter: BatchFilter,
    /// The part of the filter that is about one recorder, by the index of the recorder's shard 0.
    recorders: HashMap<usize, RecorderFilter>,
    /// By the index of the ring.
    places: Vec<RingPlace>,
    /// The open spans of each program, by its key.
    open: HashMap<u64, OpenSpans>,
}

/// The recorder that a ring belongs to, and the recorders of whose spans the ring has events.
struct RingPlace {
    recorder: usize,
    /// The recorders of spans: its own, or for typed events those of the same program; and the place of the ring among
    /// the rings of each.
    spans: Vec<(usize, usize)>,
}

/// A filter at work on the rings of one recorder.
struct RecorderFilter {
    /// The indices of the rings: the shards, and for spans also the rings of typed events that were recorded in them.
    rings: Vec<usize>,
    content: ContentFilter,
    /// A number that tells its program from others; 0 if there is none.
    process_key: u64,
}

impl RunningFilter {
    /// Makes a filter for a capture. It has no rings yet.
    pub(crate) fn new(filter: &BatchFilter) -> Self {
        Self { filter: filter.clone(), recorders: HashMap::new(), places: Vec::new(), open: HashMap::new() }
    }

    /// Begins another pass over the rings of the capture, among which may be new ones.
    pub(crate) fn begin_pass(&mut self, sources: &Sources) {
        self.add_rings(sources);
        // A recorder whose rings were all let go is over.
        let is_live = |ring: &usize| sources.rings[*ring].input.is_some();
        self.recorders.retain(|_, recorder| recorder.rings.iter().any(is_live));
        self.span_trees().for_each(|(trees, _)| trees.begin_pass());
    }

    /// Adds the rings that the capture has found since the last call.
    pub(crate) fn add_rings(&mut self, sources: &Sources) {
        let rings = &sources.rings;
        let first_new = self.places.len();
        for index in first_new..rings.len() {
            self.add_ring(index, sources.recorder_of(index), rings);
        }
        for (trees, of_recorder) in self.span_trees() {
            if of_recorder.iter().any(|ring| *ring >= first_new) {
                trees.judge_past(&cursors(of_recorder, rings));
            }
        }
    }

    /// Returns the trees of all recorders of spans, and the indices of their rings.
    fn span_trees(&mut self) -> impl Iterator<Item = (&mut SpanTrees, &[usize])> {
        self.recorders.values_mut().filter_map(|recorder| match &mut recorder.content {
            ContentFilter::Spans(trees) => Some((&mut **trees, &*recorder.rings)),
            ContentFilter::Typed(_) => None,
        })
    }

    fn add_ring(&mut self, index: usize, recorder: usize, rings: &[CopiedRing]) {
        self.places.push(RingPlace { recorder, spans: Vec::new() });
        if let Some(shard0) = rings[recorder].input.as_ref().filter(|_| recorder == index) {
            let process_key = process_key(&shard0.reader);
            let open = self.open.entry(process_key).or_insert_with(no_open_spans).clone();
            let content = ContentFilter::new(&self.filter, &shard0.reader, open);
            self.recorders.insert(index, RecorderFilter { rings: Vec::new(), content, process_key });
        }
        let Some(RecorderFilter { rings: of_recorder, content, process_key }) = self.recorders.get_mut(&recorder)
        else {
            return;
        };
        let (place, program) = (of_recorder.len(), *process_key);
        of_recorder.push(index);
        match content {
            ContentFilter::Spans(trees) => {
                trees.add_shard(rings[index].input.as_ref().map(|input| &input.cursor));
                self.places[index].spans.push((recorder, place));
                if recorder == index {
                    let asking: Vec<usize> = self.of_program(program, ContentFilter::asks_for_spans).collect();
                    asking.into_iter().for_each(|typed| self.add_asking_ring(recorder, typed, rings));
                }
            }
            ContentFilter::Typed(_) => {
                if content.asks_for_spans() {
                    let of_spans: Vec<usize> = self.of_program(program, ContentFilter::has_spans).collect();
                    of_spans.into_iter().for_each(|recorder| self.add_asking_ring(recorder, index, rings));
                }
            }
        }
    }

    /// Tells the trees of a recorder's spans that typed events of this ring may have been recorded in them.
    fn add_asking_ring(&mut self, recorder: usize, typed: usize, rings: &[CopiedRing]) {
        let Some(RecorderFilter { rings: of_recorder, content: ContentFilter::Spans(trees), .. }) =
            self.recorders.get_mut(&recorder)
        else {
            return;
        };
        trees.add_asking_ring(&cursors(of_recorder, rings));
        self.places[typed].spans.push((recorder, of_recorder.len()));
        of_recorder.push(typed);
    }

    /// Returns the recorders of a program with such contents.
    fn of_program(&self, program: u64, is_such: fn(&ContentFilter) -> bool) -> impl Iterator<Item = usize> {
        let recorders = self.recorders.iter().filter(move |(_, it)| program != 0 && it.process_key == program);
        recorders.filter(move |(_, it)| is_such(&it.content)).map(|(index, _)| *index)
    }

    /// Takes note that everything was copied that this ring had at some time in this pass.
    pub(crate) fn see_copied(&mut self, ring: usize) {
        let Some(RingPlace { spans, .. }) = self.places.get(ring) else { return };
        for (recorder, place) in spans {
            if let Some(ContentFilter::Spans(trees)) = self.recorders.get_mut(recorder).map(|it| &mut it.content) {
                trees.see_copied(*place);
            }
        }
    }

    /// Returns true if no ring should wait to be copied, because too much is remembered for those that do.
    pub(crate) fn is_crowded(&mut self) -> bool {
        self.span_trees().any(|(trees, _)| trees.is_crowded())
    }

    /// Returns true if the filter asks in which spans events of this ring were recorded.
    pub(crate) fn asks_for_spans(&self, ring: usize) -> bool {
        self.recorders.get(&ring).is_some_and(|it| it.content.asks_for_spans())
    }

    /// Returns true if events of this ring may have been recorded in spans, and no ring has spans of its program.
    pub(crate) fn lacks_spans(&self, ring: usize) -> bool {
        let Some(RecorderFilter { content, process_key, .. }) = self.recorders.get(&ring) else { return false };
        content.asks_for_spans() && self.of_program(*process_key, ContentFilter::has_spans).next().is_none()
    }

    /// Removes the unwanted events of a block. `spans` is what [`Self::verdicts`] returns for it. `rings` are all rings
    /// of the capture.
    pub(crate) fn apply(&mut self, records: &mut BlockRecords, spans: &SpanVerdicts, rings: &[CopiedRing]) {
        let Some(place) = self.places.get(records.ring as usize) else { return };
        let Some(recorder) = self.recorders.get_mut(&place.recorder) else { return };
        match &mut recorder.content {
            ContentFilter::Typed(typed) if typed.keeps_all() => {}
            ContentFilter::Typed(typed) => records.filter(|event, payload| typed.keeps(event, payload, &spans.known)),
            ContentFilter::Spans(trees) => {
                let cursors = cursors(&recorder.rings, rings);
                trees.judge_new(&records.events, &cursors);
                records.filter(|event, payload| trees.keeps(event, payload, &cursors));
            }
        }
    }

    /// Judges the spans in which typed events of a block were recorded. The spans are those of the same program.
    pub(crate) fn verdicts(&mut self, records: &BlockRecords, rings: &[CopiedRing]) -> SpanVerdicts {
        let mut verdicts = SpanVerdicts::default();
        let Some(RingPlace { recorder, spans }) = self.places.get(records.ring as usize) else { return verdicts };
        if let Some(ContentFilter::Typed(typed)) = self.recorders.get(recorder).map(|it| &it.content) {
            verdicts.unknown.extend(records.events.descriptors().iter().filter_map(|event| typed.span_of(event)));
        }
        for (recorder, _) in spans {
            let Some(RecorderFilter { rings: of_recorder, content: ContentFilter::Spans(trees), .. }) =
                self.recorders.get_mut(recorder)
            else {
                continue;
            };
            let cursors = cursors(of_recorder, rings);
            let SpanVerdicts { known, unknown } = &mut verdicts;
            unknown.retain(|span| {
                let verdict = trees.verdict_if_known(*span, &cursors);
                known.extend(verdict.map(|verdict| (*span, verdict)));
                verdict.is_none()
            });
        }
        verdicts
    }
}

/// The verdicts on the spans in which typed events of a block were recorded.
#[derive(Default)]
pub(crate) struct SpanVerdicts {
    known: HashMap<u64, TreeVerdict>,
    /// Spans whose beginnings no ring has that is known.
    pub(crate) unknown: HashSet<u64>,
}

/// Returns the cursors that copy these rings.
fn cursors<'r>(indices: &[usize], rings: &'r [CopiedRing]) -> Vec<Option<&'r Cursor>> {
    indices.iter().map(|ring| rings[*ring].input.as_ref().map(|input| &input.cursor)).collect()
}
