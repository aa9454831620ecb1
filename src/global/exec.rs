//! Execution events on the exec recorder: which flow tags they carry, and scopes that set them.

use super::flow::{AmbientExt, ambient_ext};
use super::{ActiveRecorder, GlobalRecorder, RecordsTo};
use crate::schema::exec::{BlockStart, ExecEvent, flow};
use crate::schema::{EventPayload, EventType};

impl RecordsTo for ExecEvent {
    #[inline(always)]
    fn slot() -> &'static GlobalRecorder {
        &super::EXEC
    }

    /// The ambient flow tags that the published schema gives to this event, and the id of the current span.
    #[inline(always)]
    fn default_ext(self) -> [u64; 4] {
        let [block, txn, account, span] = ambient_ext();
        match tags(self) {
            Tags::None => [0, 0, 0, span],
            Tags::Block => [block, 0, 0, span],
            Tags::Transaction => [block, txn, 0, span],
            Tags::Account => [block, txn, account, span],
        }
    }
}

/// Which flow tags an event carries; each row includes those above.
enum Tags {
    None,
    Block,
    Transaction,
    Account,
}

#[inline(always)]
const fn tags(event: ExecEvent) -> Tags {
    match event {
        ExecEvent::BlockStart | ExecEvent::BlockQc | ExecEvent::BlockFinalized | ExecEvent::BlockVerified => Tags::None,
        ExecEvent::BlockReject | ExecEvent::BlockPerfEvmEnter | ExecEvent::BlockPerfEvmExit | ExecEvent::BlockEnd => {
            Tags::Block
        }
        ExecEvent::StorageAccess => Tags::Account,
        _ => Tags::Transaction,
    }
}

/// The calling thread works on a block: until this is dropped, execution events of this thread carry its block tag.
///
/// Scopes, and the guards that they give, may be dropped in any order: each takes its own tag away, and of several that still live
/// the one that was made last shows.
///
/// ```
/// use eventring::global::{BlockScope, EXEC};
/// use eventring::record;
/// use eventring::recorder::{ContentDescription, Recorder};
/// use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent};
///
/// let recorder = Recorder::builder(ContentDescription::of::<ExecEvent>()).anonymous().build()?;
/// let _guard = EXEC.override_with(recorder);
///
/// let block = BlockScope::start(&BlockStart::default());
/// {
///     let _txn = block.transaction(0);
///     record!(ExecEvent::TxnHeaderEnd); // carries block and transaction
/// }
/// record!(ExecEvent::BlockEnd, &BlockEnd::default()); // carries the block
/// assert_eq!(block.seqno(), 1);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
#[derive(Debug)]
#[must_use = "the tag is taken away when this is dropped"]
pub struct BlockScope {
    seqno: u64,
    _tag: AmbientExt,
}

impl BlockScope {
    /// Records BLOCK_START, tagged with its own seqno, and enters the block. While the exec recorder is off, the tag is 0.
    pub fn start(block_start: &BlockStart) -> Self {
        let active = super::EXEC.active_for::<ExecEvent>();
        let seqno = active.map_or(0, |active| record_block_start(&active, block_start));
        Self::enter(seqno)
    }

    /// Enters a block whose BLOCK_START has that seqno: on further threads that work on it.
    pub fn enter(block_start_seqno: u64) -> Self {
        Self { seqno: block_start_seqno, _tag: AmbientExt::set(flow::BLOCK_SEQNO, block_start_seqno) }
    }

    /// The seqno of the block's BLOCK_START.
    pub fn seqno(&self) -> u64 {
        self.seqno
    }

    /// The calling thread works on the transaction with this index (from 0), until the guard is dropped. Its events carry the index plus
    /// one, so that 0 means none; the largest index cannot be told from the one before.
    pub fn transaction(&self, index: u64) -> AmbientExt {
        AmbientExt::set(flow::TXN_ID, index.saturating_add(1))
    }

    /// The calling thread works on the account with this index (from 0), until the guard is dropped.
    pub fn account(&self, index: u64) -> AmbientExt {
        AmbientExt::set(flow::ACCOUNT_INDEX, index)
    }
}

fn record_block_start(active: &ActiveRecorder, block_start: &BlockStart) -> u64 {
    block_start.with_bytes(|bytes| {
        let ext = ExecEvent::BlockStart.default_ext();
        // Reserved by hand, because the tag is the seqno that the reservation brings.
        let Some(mut reservation) = active.reserve(ExecEvent::BlockStart.code(), ext, bytes.len() as u64) else {
            return 0;
        };
        reservation.append(bytes);
        reservation.set_content_ext(flow::BLOCK_SEQNO, reservation.seqno());
        reservation.commit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_transaction_index_does_not_overflow() {
        let block = BlockScope::enter(5);
        let _txn = block.transaction(u64::MAX);
        assert_eq!(ambient_ext()[..2], [5, u64::MAX]);
    }

    #[test]
    fn scopes_may_end_in_any_order() {
        let first = BlockScope::enter(5);
        let txn = first.transaction(0);
        let second = BlockScope::enter(9);
        drop(first);
        assert_eq!(ambient_ext()[..2], [9, 1]);
        drop(second);
        assert_eq!(ambient_ext()[..2], [0, 1]);
        drop(txn);
        assert_eq!(ambient_ext(), [0; 4]);
    }
}
