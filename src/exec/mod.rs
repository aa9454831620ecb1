//! Execution events: what a blockchain node does while it executes blocks. The node records them to the global recorder
//! `EXEC`. A `BlockScope` sets the block of a thread's events. A reader learns an event's block from the ring's block
//! table ([`Reader::block_of`](crate::reader::Reader::block_of)), or from earlier events ([`KnownBlocks`]).
//!
//! The types of the events are in [`schema::exec`](crate::schema::exec).

mod block;
mod known_blocks;

pub use block::{BlockInfo, flow_tag};
pub use known_blocks::{KnownBlocks, SavedBlocks};

use crate::global::{ActiveRecorder, AmbientWords, EXEC, ExtScope, GlobalRecorder, RecordsTo};
use crate::schema::exec::{BlockStart, ExecEvent, flow};
use crate::schema::{EventPayload, EventType};

impl RecordsTo for ExecEvent {
    #[inline(always)]
    fn global_recorder() -> &'static GlobalRecorder {
        &EXEC
    }

    #[inline(always)]
    fn with_ambient<R>(f: impl FnOnce(&AmbientWords) -> R) -> R {
        thread_local! {
            static AMBIENT: AmbientWords = const { AmbientWords::new() };
        }
        AMBIENT.with(f)
    }
}

/// A scope in which the calling thread works on a block. Until the scope is dropped, the thread's execution events
/// carry the word `block`: the seqno of the block's BLOCK_START event.
///
/// A block scope sets its word by an [`ExtScope`], so the rules of [`ExtScope`] apply to it.
///
/// BLOCK_START is overwritten some time after the block has started. A ring that was made with
/// [`block_table`](crate::recorder::RecorderBuilder::block_table) keeps what it said of the last 4,096 blocks.
///
/// ```
/// use eventring::exec::BlockScope;
/// use eventring::global::EXEC;
/// use eventring::record;
/// use eventring::recorder::{ContentDescription, Recorder};
/// use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent};
///
/// let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().build()?;
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
#[must_use = "the word is restored when this is dropped"]
pub struct BlockScope {
    seqno: u64,
    _word: ExtScope,
}

impl BlockScope {
    /// Records a BLOCK_START event and enters the block. The word `block` of this event is the event's own seqno. If
    /// the global recorder `EXEC` is off, nothing is recorded and the seqno of the scope is 0.
    pub fn start(block_start: &BlockStart) -> Self {
        let active = EXEC.active_for::<ExecEvent>();
        let seqno = active.map_or(0, |active| record_block_start(&active, block_start));
        Self::enter(seqno)
    }

    /// Enters a block that another thread has started. `block_start_seqno` is the seqno of the block's BLOCK_START
    /// event. One thread calls [`Self::start`]; every other thread that works on the block calls this function.
    pub fn enter(block_start_seqno: u64) -> Self {
        Self { seqno: block_start_seqno, _word: ExtScope::set::<ExecEvent>(flow::BLOCK, block_start_seqno) }
    }

    /// Returns the seqno of the block's BLOCK_START.
    pub fn seqno(&self) -> u64 {
        self.seqno
    }

    /// Returns a scope in which the calling thread works on the transaction with this index (from 0). Events carry the
    /// index plus one, because 0 means no transaction. The addition saturates, so the two largest indices give the
    /// same word.
    pub fn transaction(&self, index: u64) -> ExtScope {
        ExtScope::set::<ExecEvent>(flow::TXN, index.saturating_add(1))
    }

    /// Returns a scope in which the calling thread works on the account with this index (from 0).
    pub fn account(&self, index: u64) -> ExtScope {
        ExtScope::set::<ExecEvent>(flow::ACCOUNT_INDEX, index)
    }
}

fn record_block_start(active: &ActiveRecorder, block_start: &BlockStart) -> u64 {
    block_start.with_bytes(|bytes| {
        let ext = ExecEvent::BlockStart.default_ext();
        // `record!` cannot record this event, because it sets all words before it reserves. The event's word `block`
        // is the event's own seqno, which is known only after the reservation.
        let Some(mut reservation) = active.reserve(ExecEvent::BlockStart.code(), ext, bytes.len() as u64) else {
            return 0;
        };
        reservation.append(bytes);
        reservation.set_content_ext(flow::BLOCK, reservation.seqno());
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
        assert_eq!(ExecEvent::TxnEnd.default_ext(), [5, u64::MAX, 0, 0]);
    }

    #[test]
    fn scopes_may_end_in_any_order() {
        let words = || ExecEvent::StorageAccess.default_ext();
        let first = BlockScope::enter(5);
        let txn = first.transaction(0);
        let account = first.account(3);
        let second = BlockScope::enter(9);
        assert_eq!((ExecEvent::TxnEnd.default_ext(), words()), ([9, 1, 0, 0], [9, 1, 3, 0]));
        assert_eq!((ExecEvent::BlockEnd.default_ext(), ExecEvent::BlockQc.default_ext()), ([9, 0, 0, 0], [0; 4]));
        drop((first, account));
        assert_eq!(words(), [9, 1, 0, 0]);
        drop(second);
        assert_eq!(words(), [0, 1, 0, 0]);
        drop(txn);
        assert_eq!(words(), [0; 4]);
    }
}
