//! The filter of a capture at work: it leaves out events of each recorder by itself.

use crate::engine::sources::{CopiedRing, Sources};
use crate::format::columns::BlockRecords;
use crate::select::batch_filter::{BatchFilter, ContentFilter};
use eventring::reader::Cursor;
use std::collections::HashMap;

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
        for RecorderFilter { shards, content } in self.recorders.values_mut() {
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
            self.recorders.insert(index, RecorderFilter { shards: Vec::new(), content });
        }
        let mut shard = 0;
        if let Some(RecorderFilter { shards, content }) = self.recorders.get_mut(&recorder) {
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
        let Some(recorder) = place.and_then(|place| self.recorders.get_mut(&place.recorder)) else { return };
        match &mut recorder.content {
            ContentFilter::Typed(None, None) => {}
            ContentFilter::Typed(codes, test) => records.filter(|event, payload| {
                codes.as_ref().is_none_or(|codes| codes.contains(&event.event_type))
                    && test.as_mut().is_none_or(|test| test.holds(event, payload))
            }),
            ContentFilter::Spans(trees) => {
                let cursors = cursors(&recorder.shards, rings);
                trees.judge_new(&records.events, &cursors);
                records.filter(|event, payload| trees.keeps(event, payload, &cursors));
            }
        }
    }
}

/// Returns the cursors that copy these rings.
fn cursors<'r>(shards: &[usize], rings: &'r [CopiedRing]) -> Vec<Option<&'r Cursor>> {
    shards.iter().map(|ring| rings[*ring].input.as_ref().map(|input| &input.cursor)).collect()
}
