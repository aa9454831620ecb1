//! The losses of a block: events in gaps, and lost payloads.

use crate::format::block_records::{BlockRecords, RecordRange};
use eventring::reader::GapCause;

/// The cause of a loss of payloads, where an event has lost nothing else. The other causes are those of gaps.
const PAYLOADS: u8 = 16;

/// Events of a block, or payloads, that were lost for the same reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockLoss {
    pub(crate) cause: u8,
    pub(crate) count: u64,
    /// The times of the events before the first one and after the last one; 0 if the event before is in another block,
    /// and `u64::MAX` if the event after is.
    pub(crate) from_nanos: u64,
    pub(crate) to_nanos: u64,
}

impl BlockLoss {
    /// Returns the name of the cause.
    pub(crate) fn cause_name(&self) -> Option<&'static str> {
        match self.cause {
            PAYLOADS => Some("payload"),
            cause => GapCause::OF_RINGS.get(usize::from(cause)).map(|cause| cause.name()),
        }
    }
}

/// Returns the losses of a part, one for each cause.
pub(super) fn of_part(records: &BlockRecords, part: &RecordRange) -> Vec<BlockLoss> {
    let mut losses: Vec<BlockLoss> = Vec::new();
    let mut add = |loss: BlockLoss| match losses.iter_mut().find(|known| known.cause == loss.cause) {
        Some(known) => {
            known.count = known.count.saturating_add(loss.count);
            known.from_nanos = known.from_nanos.min(loss.from_nanos);
            known.to_nanos = known.to_nanos.max(loss.to_nanos);
        }
        None => losses.push(loss),
    };
    let descriptors = records.events.descriptors();
    let nanos = |event: usize| part.events.contains(&event).then(|| descriptors[event].record_epoch_nanos);
    for placed in records.gaps[part.gaps.clone()].iter().filter(|placed| placed.gap.is_loss()) {
        let before = placed.events_before.checked_sub(1).and_then(nanos);
        add(BlockLoss {
            cause: placed.gap.cause as u8,
            count: placed.gap.count,
            from_nanos: before.unwrap_or(0),
            to_nanos: nanos(placed.events_before).unwrap_or(u64::MAX),
        });
    }
    if !records.events.has_all_payloads() {
        for event in part.events.clone().filter(|event| records.events.payload(*event).valid().is_none()) {
            let nanos = descriptors[event].record_epoch_nanos;
            add(BlockLoss { cause: PAYLOADS, count: 1, from_nanos: nanos, to_nanos: nanos });
        }
    }
    losses
}
