//! Adding rings and shards to a set.

use super::super::gap::Gap;
use super::super::handle::Reader;
use super::super::wait::{WaitStrategy, Waiter};
use super::RingSet;
use super::item::{RingItem, ShardError};
use super::ring::SetRing;
use super::shards::{OpenedShards, ShardFinder, ShardItem, ShardedRecorder};
use crate::reader::cursors::cursor::Seek;
use std::time::Duration;

/// The pause between two polls of several rings. A shorter pause would gain nothing, because the set holds young
/// events back for a few milliseconds anyway.
const MERGE_PAUSE: Duration = Duration::from_micros(500);

impl RingSet {
    /// Adds a ring, which is read from `start` on. Returns the ring's index in the set. If the ring is shard 0 of a
    /// recorder, the next call of [`Self::find_shards`] or [`Self::next`] adds the recorder's other shards, also from
    /// `start` on.
    pub fn add(&mut self, reader: Reader, start: Seek) -> usize {
        self.add_recorder([reader], start)
    }

    /// Adds a recorder. `shards` are the shards that the caller has opened, in order from shard 0. Returns the index of
    /// shard 0 in the set.
    pub(crate) fn add_recorder(&mut self, shards: impl IntoIterator<Item = Reader>, start: Seek) -> usize {
        let ring = self.rings.len();
        self.rings.extend(shards.into_iter().enumerate().map(|(shard, reader)| {
            let recorder = if shard == 0 { None } else { Some(ring) };
            SetRing::read(reader, recorder, shard as u32, start)
        }));
        if let Some(shard0) = self.rings.get(ring).and_then(SetRing::reader) {
            let finder = ShardFinder::new(shard0, (self.rings.len() - ring) as u32, self.opened.clone());
            if finder.can_find() {
                self.recorders.push(ShardedRecorder { ring, finder, shard_start: start });
            }
        }
        let strategy = if self.is_single() { WaitStrategy::Adaptive } else { WaitStrategy::Sleep(MERGE_PAUSE) };
        self.waiter = Waiter::new(strategy);
        ring
    }

    /// Takes shards from `opened` before it opens them, and adds those that it opens. This is for recorders that are
    /// added after this call.
    pub fn keep_shards(&mut self, opened: &OpenedShards) {
        self.opened = Some(opened.clone());
    }

    /// Opens the shards that recorders have made since the last call, and adds them to the set. [`Self::next`] does
    /// this, too.
    #[inline]
    pub fn find_shards(&mut self) {
        for index in 0..self.recorders.len() {
            while let Some(found) = self.recorders[index].finder.next() {
                let ShardedRecorder { ring, shard_start, .. } = self.recorders[index];
                self.add_shard(ring, found, shard_start);
            }
            // Shards that are made from now on are read from seqno 1 on. If such a shard has already overwritten
            // events, these events count as lost, because the set was being read when they were recorded.
            self.recorders[index].shard_start = Seek::Seqno(1);
        }
    }

    fn add_shard(&mut self, recorder: usize, found: ShardItem, start: Seek) {
        match found {
            // Somebody has added the shard by its own name. One file is one ring of a set.
            ShardItem::Opened { reader, .. } if self.has(&reader) => {}
            ShardItem::Opened { index, reader } => {
                self.rings.push(SetRing::read(reader, Some(recorder), index, start));
            }
            ShardItem::Unreadable { index, error } => {
                self.shard_errors.push(ShardError { recorder, shard: index, error });
            }
            ShardItem::Missed { index, seqnos } => {
                let gap = Gap::of_missed_shard(seqnos);
                self.missed.push_back(RingItem::Gap { ring: self.rings.len(), gap });
                self.rings.push(SetRing::missed(recorder, index, seqnos));
            }
        }
    }

    fn has(&self, reader: &Reader) -> bool {
        self.rings.iter().filter_map(SetRing::reader).any(|ring| ring.file_id() == reader.file_id())
    }

    /// Returns true if a recorder of the set may still make shards, or has made shards that were not found yet.
    pub fn may_grow(&self) -> bool {
        self.recorders.iter().any(|recorder| !recorder.finder.has_ended())
    }
}
