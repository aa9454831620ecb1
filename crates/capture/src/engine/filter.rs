//! The filter of a capture at work: it leaves out events of each recorder by itself.

use crate::engine::sources::{CopiedRing, Sources};
use crate::format::columns::BlockRecords;
use crate::format::ring::process_key;
use crate::select::batch_filter::{BatchFilter, ContentFilter};
use eventring::reader::Cursor;
use std::collections::{HashMap, HashSet};

/// A filter at work on the rings of a capture.
pub(crate) struct RunningFilter {
    filter: BatchFilter,
    /// The part of the filter that is about one recorder, by the index of the recorder's shard 0.
    recorders: HashMap<usize, RecorderFilter>,
    /// By the index of the ring.
    places: Vec<ShardPlace>,
}

/// The recorder and the shard that a ring belongs to.
struct ShardPlace {
    recorder: usize,
    /// The place of the ring among the shards of the recorder.
    shard: usize,
}

/// A filter at work on the rings of one recorder.
struct RecorderFilter {
    /// The indices of the rings.
    shards: Vec<usize>,
    content: ContentFilter,
    /// A number that tells its program from others; 0 if there is none.
    process_key: u64,
}

impl RunningFilter {
    /// Makes a filter for a capture. It has no rings yet.
    pub(crate) fn new(filter: &BatchFilter) -> Self {
        Self { filter: filter.clone(), recorders: HashMap::new(), places: Vec::new() }
    }

    /// Begins another pass over the rings of the capture, among which may be new ones.
    pub(crate) fn begin_pass(&mut self, sources: &Sources) {
        let rings = &sources.rings;
        let first_new = self.places.len();
        for index in first_new..rings.len() {
            self.add_ring(index, sources.recorder_of(index), rings);
        }
        // A recorder whose rings were all let go is over.
        self.recorders.retain(|_, recorder| recorder.shards.iter().any(|ring| rings[*ring].input.is_some()));
        for RecorderFilter { shards, content, .. } in self.recorders.values_mut() {
            if let ContentFilter::Spans(trees) = content {
                if shards.iter().any(|ring| *ring >= first_new) {
                    trees.judge_past(&cursors(shards, rings));
                }
                trees.begin_pass();
            }
        }
    }

    fn add_ring(&mut self, index: usize, recorder: usize, rings: &[CopiedRing]) {
        if let Some(shard0) = rings[recorder].input.as_ref().filter(|_| recorder == index) {
            let content = ContentFilter::new(&self.filter, &shard0.reader);
            let process_key = process_key(&shard0.reader);
            self.recorders.insert(index, RecorderFilter { shards: Vec::new(), content, process_key });
        }
        let mut shard = 0;
        if let Some(RecorderFilter { shards, content, .. }) = self.recorders.get_mut(&recorder) {
            shard = shards.len();
            shards.push(index);
            if let ContentFilter::Spans(trees) = content {
                trees.add_shard(rings[index].input.as_ref().map(|input| &input.cursor));
            }
        }
        self.places.push(ShardPlace { recorder, shard });
    }

    /// Takes note that everything was copied that this ring had at some time in this pass.
    pub(crate) fn see_copied(&mut self, ring: usize) {
        let Some(ShardPlace { recorder, shard }) = self.places.get(ring) else { return };
        if let Some(ContentFilter::Spans(trees)) = self.recorders.get_mut(recorder).map(|it| &mut it.content) {
            trees.see_copied(*shard);
        }
    }

    /// Removes the unwanted events of a block. `rings` are all rings of the capture.
    pub(crate) fn apply(&mut self, records: &mut BlockRecords, rings: &[CopiedRing]) {
        let place = self.places.get(records.ring as usize);
        let Some(key) = place.map(|place| place.recorder) else { return };
        let wanted_spans = self.wanted_spans(key, records, rings);
        let Some(recorder) = self.recorders.get_mut(&key) else { return };
        match &mut recorder.content {
            ContentFilter::Typed(typed) if typed.keeps_all() => {}
            ContentFilter::Typed(typed) => records.filter(|event, payload| typed.keeps(event, payload, &wanted_spans)),
            ContentFilter::Spans(trees) => {
                let cursors = cursors(&recorder.shards, rings);
                trees.judge_new(&records.events, &cursors);
                records.filter(|event, payload| trees.keeps(event, payload, &cursors));
            }
        }
    }

    /// Returns the spans that fulfil the condition, or are in one that does, of those in which typed events of a block were
    /// recorded. The spans are those of the same program.
    fn wanted_spans(&mut self, key: usize, records: &BlockRecords, rings: &[CopiedRing]) -> HashSet<u64> {
        let mut wanted = HashSet::new();
        let Some(RecorderFilter { content: ContentFilter::Typed(typed), process_key, .. }) = self.recorders.get(&key)
        else {
            return wanted;
        };
        let mut spans: HashSet<u64> =
            records.events.descriptors().iter().filter_map(|event| typed.span_of(event)).collect();
        let program = *process_key;
        for recorder in self.recorders.values_mut().filter(|other| other.process_key == program && program != 0) {
            let ContentFilter::Spans(trees) = &mut recorder.content else { continue };
            let cursors = cursors(&recorder.shards, rings);
            wanted.extend(spans.extract_if(|span| trees.is_found(*span, &cursors)));
        }
        wanted
    }
}

/// Returns the cursors that copy these rings.
fn cursors<'r>(shards: &[usize], rings: &'r [CopiedRing]) -> Vec<Option<&'r Cursor>> {
    shards.iter().map(|ring| rings[*ring].input.as_ref().map(|input| &input.cursor)).collect()
}
