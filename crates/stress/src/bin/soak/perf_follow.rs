//! The reader that follows all shards of the perf ring, merged by time, from their first events to their end.

use crate::Result;
use crate::follow::{FollowCounts, FollowerThread};
use crate::spans::{Verdict, check};
use eventring::reader::{Gap, SetRing};
use eventring::tracing::{PerfItem, PerfReader, PerfSource};
use std::path::Path;
use std::time::Duration;

/// Starts a follower on the rings that are at `ring` now.
pub(crate) fn start(ring: &Path) -> Result<FollowerThread> {
    let reader = PerfReader::open(ring)?;
    Ok(FollowerThread::spawn(move || follow(reader)))
}

/// The position of the follower in one shard. With this position, the follower notices if the reader skips seqnos and
/// reports no gap for them.
#[derive(Clone, Copy, Default)]
struct ShardPosition {
    /// The next seqno; `None` before the first event or gap.
    next_seqno: Option<u64>,
}

impl ShardPosition {
    /// Moves the position past `count` seqnos from `first_seqno` on. At the first call for a shard, all earlier seqnos
    /// count as lost. At later calls, seqnos that were skipped count as unaccounted.
    fn advance(&mut self, first_seqno: u64, count: u64, counts: &mut FollowCounts) {
        match self.next_seqno {
            None => counts.lost += first_seqno - 1,
            Some(next) => counts.unaccounted += next.abs_diff(first_seqno),
        }
        self.next_seqno = Some(first_seqno + count);
    }
}

fn follow(mut reader: PerfReader) -> FollowCounts {
    let mut counts = FollowCounts::default();
    let mut positions = Vec::<ShardPosition>::new();
    loop {
        match reader.next_timeout(Duration::from_millis(200)) {
            Some(PerfItem::Record(record)) => {
                position(&mut positions, record.shard).advance(record.seqno, 1, &mut counts);
                counts.read += 1;
                match check(&record.content) {
                    Verdict::Whole => {}
                    Verdict::Expired => counts.expired += 1,
                    Verdict::Torn => counts.torn += 1,
                }
            }
            Some(PerfItem::Gap { source: PerfSource::Shard(shard), gap: Gap { first_seqno, count, .. } }) => {
                position(&mut positions, shard).advance(first_seqno, count, &mut counts);
                counts.lost += count;
            }
            Some(_) => {}
            None if reader.has_ended() => break,
            None => {}
        }
    }
    for shard in reader.rings().iter().filter_map(SetRing::reader) {
        let index = shard.info().extension.map_or(0, |extension| extension.shard_index as usize);
        let last = shard.info().last_seqno;
        counts.last_seqno += last;
        counts.laps += last / shard.info().geometry.descriptor_capacity();
        let next = positions.get(index).and_then(|position| position.next_seqno).unwrap_or(1);
        counts.unaccounted += (last + 1).abs_diff(next);
    }
    counts
}

fn position(positions: &mut Vec<ShardPosition>, shard: u32) -> &mut ShardPosition {
    let index = shard as usize;
    if positions.len() <= index {
        positions.resize(index + 1, ShardPosition::default());
    }
    &mut positions[index]
}
