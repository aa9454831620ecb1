//! The blocks of a capture in which an event may fulfil a condition.

use crate::format::header::{BlockKind, BlockRef};
use crate::format::values::block_test::BlockTest;
use crate::format::values::column::BlockValues;
use crate::format::values::losses::BlockLoss;
use crate::read::file::CaptureFile;
use crate::read::workers;
use crate::select::selection::Selection;
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use std::collections::HashMap;
use std::sync::Arc;

/// What [`CaptureFile::keep_blocks`] has found.
#[derive(Clone, Debug, Default)]
pub struct MatchingBlocks {
    /// The number of blocks of events.
    pub blocks: u64,
    /// The number of those that are kept.
    pub kept: u64,
    /// What the other blocks do not have.
    pub losses: Vec<RingLoss>,
}

/// A loss that may have been what somebody looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingLoss {
    /// The index of the ring in the capture.
    pub ring: u32,
    /// The name of the cause; `payload` if the events are there, and have lost their payloads.
    pub cause: &'static str,
    /// The number of events.
    pub count: u64,
    /// The time of the last event before the loss, in nanoseconds since the epoch; 0 if there is none.
    pub from_nanos: u64,
    /// The time of the first event after the loss, or that of the last event of its block if the block ends with it.
    pub to_nanos: u64,
}

impl CaptureFile {
    /// Leaves out the blocks without an event from this time to that one that may fulfil the condition: from now on,
    /// [`Self::events`] does not return their events and losses. A block that says nothing of its values stays. Files
    /// that are read together with this one keep all of theirs.
    #[doc(hidden)]
    pub fn keep_blocks(&mut self, test: &BlockTest, from_nanos: u64, to_nanos: u64) -> MatchingBlocks {
        let blocks: Vec<_> = self.blocks.iter().filter(|block| block.header.kind == BlockKind::Events).collect();
        let of_block = |block: &&BlockRef| self.look_at(block, test, from_nanos, to_nanos);
        let looks: Vec<Look> = match workers::worker_threads() {
            Some(threads) => threads.install(|| blocks.par_iter().map(of_block).collect()),
            None => blocks.iter().map(of_block).collect(),
        };
        let mut found = MatchingBlocks { blocks: blocks.len() as u64, ..MatchingBlocks::default() };
        let (mut kept, mut last_nanos) = (Vec::new(), HashMap::<u32, u64>::new());
        for (block, look) in blocks.iter().zip(looks) {
            let (header, ring) = (&block.header, self.place.first + block.header.ring);
            let before = last_nanos.insert(ring, header.last_nanos).unwrap_or(0);
            match look {
                Look::Kept => kept.push(block.offset),
                Look::LeftOut(losses) => found.losses.extend(losses.iter().filter_map(|loss| {
                    Some(RingLoss {
                        ring,
                        cause: loss.cause_name()?,
                        count: loss.count,
                        from_nanos: if loss.from_nanos == 0 { before } else { loss.from_nanos },
                        to_nanos: loss.to_nanos.min(header.last_nanos),
                    })
                })),
            }
        }
        found.kept = kept.len() as u64;
        found.losses.retain(|loss| loss.from_nanos <= to_nanos && from_nanos <= loss.to_nanos);
        self.kept = Some(Arc::new(kept.into_iter().collect()));
        if (from_nanos, to_nanos) != (0, u64::MAX) {
            let selection = Selection::new().from_epoch_nanos(from_nanos).to_epoch_nanos(to_nanos);
            self.choice = selection.choose(&self.rings, &self.catalogs).ok().map(Arc::new);
        }
        found
    }

    fn look_at(&self, block: &BlockRef, test: &BlockTest, from_nanos: u64, to_nanos: u64) -> Look {
        let header = &block.header;
        if header.first_nanos > to_nanos || header.last_nanos < from_nanos {
            return Look::LeftOut(Vec::new());
        }
        match BlockValues::read(&self.file, block) {
            Some(values) if !test.may_hold(&values) => Look::LeftOut(values.losses),
            _ => Look::Kept,
        }
    }
}

/// What a look at a block has shown.
enum Look {
    Kept,
    LeftOut(Vec<BlockLoss>),
}
