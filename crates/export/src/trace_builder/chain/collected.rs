//! The events of an open block, by transaction.

use eventring::exec::BlockInfo;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::exec::ExecEvent;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The estimated size of what is kept for a transaction, and for an event that is drawn, beside its payload.
const PART_BYTES: u64 = 768;
const HELD_BYTES: u64 = 256;

/// The events of a block so far.
#[derive(Default)]
pub(super) struct Collected {
    /// The flow tag.
    pub(super) tag: u64,
    /// What the capture knows of a block whose BLOCK_START was not read.
    pub(super) known: Option<Arc<BlockInfo>>,
    /// What belongs to the block, and to none of its transactions.
    pub(super) own: Part,
    /// The transactions by index.
    pub(super) txns: BTreeMap<u64, Part>,
    /// An estimate of the bytes that all this takes.
    pub(super) bytes: u64,
}

/// The events of a transaction, or those of a block outside of its transactions.
#[derive(Default)]
pub(super) struct Part {
    pub(super) first_seqno: u64,
    /// The earliest and the latest time of an event.
    pub(super) first_nanos: u64,
    pub(super) last_nanos: u64,
    /// The times at which the EVM began and ended, as far as events say so.
    pub(super) enter_nanos: Option<u64>,
    pub(super) exit_nanos: Option<u64>,
    pub(super) events: u64,
    pub(super) logs: u64,
    pub(super) call_frames: u64,
    pub(super) accounts: u64,
    pub(super) slots: u64,
    /// The events that are drawn one by one.
    pub(super) held: Vec<PendingEvent>,
}

/// An event that becomes an instant.
pub(super) struct PendingEvent {
    pub(super) descriptor: Descriptor,
    /// `None` if the payload was lost.
    pub(super) payload: Option<Box<[u8]>>,
    pub(super) meaning: Option<ExecEvent>,
}

impl Collected {
    pub(super) fn new(tag: u64) -> Self {
        Self { tag, bytes: PART_BYTES, ..Self::default() }
    }

    /// Adds an event. One that lies in a span is drawn there.
    pub(super) fn take(
        &mut self,
        descriptor: &Descriptor,
        meaning: Option<ExecEvent>,
        payload: PayloadRead<'_>,
        is_in_span: bool,
    ) {
        use ExecEvent as E;
        let is_of_block = matches!(
            meaning,
            Some(E::BlockStart | E::BlockReject | E::BlockPerfEvmEnter | E::BlockPerfEvmExit | E::BlockEnd)
        );
        let part = match descriptor.content_ext[1].checked_sub(1).filter(|_| !is_of_block) {
            None => &mut self.own,
            Some(index) => self.txns.entry(index).or_insert_with(|| {
                self.bytes += PART_BYTES;
                Part::default()
            }),
        };
        part.count(descriptor, meaning);
        if is_drawn(meaning) && !is_in_span {
            let payload: Option<Box<[u8]>> = payload.valid().map(Into::into);
            self.bytes += HELD_BYTES + payload.as_ref().map_or(0, |bytes| bytes.len() as u64);
            part.held.push(PendingEvent { descriptor: *descriptor, payload, meaning });
        }
    }

    /// Returns the number of events, those of transactions included.
    pub(super) fn events(&self) -> u64 {
        self.own.events + self.events_of_txns()
    }

    pub(super) fn events_of_txns(&self) -> u64 {
        self.txns.values().map(|part| part.events).sum()
    }

    /// Returns the earliest and the latest time of an event.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        let parts = || self.txns.values().chain([&self.own]).filter(|part| part.events > 0);
        let first = parts().map(|part| part.first_nanos).min()?;
        Some((first, parts().map(|part| part.last_nanos).max()?))
    }
}

impl Part {
    fn count(&mut self, descriptor: &Descriptor, meaning: Option<ExecEvent>) {
        use ExecEvent as E;
        let nanos = descriptor.record_epoch_nanos;
        if self.events == 0 {
            (self.first_seqno, self.first_nanos) = (descriptor.seqno, nanos);
        }
        self.events += 1;
        (self.first_nanos, self.last_nanos) = (self.first_nanos.min(nanos), self.last_nanos.max(nanos));
        match meaning {
            Some(E::BlockPerfEvmEnter | E::TxnPerfEvmEnter) => _ = self.enter_nanos.get_or_insert(nanos),
            Some(E::BlockPerfEvmExit | E::TxnPerfEvmExit) => _ = self.exit_nanos.get_or_insert(nanos),
            Some(E::TxnLog) => self.logs += 1,
            Some(E::TxnCallFrame) => self.call_frames += 1,
            Some(E::AccountAccess) => self.accounts += 1,
            Some(E::StorageAccess) => self.slots += 1,
            _ => {}
        }
    }
}

/// Returns true if events of this kind are drawn one by one. An unknown event may be anything.
fn is_drawn(meaning: Option<ExecEvent>) -> bool {
    use ExecEvent as E;
    matches!(meaning, None | Some(E::TxnLog | E::TxnCallFrame | E::RecordError | E::EvmError | E::TxnReject))
}
