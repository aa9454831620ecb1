//! The block whose events are being read.

use super::open_accounts::OpenAccounts;
use super::open_txn::OpenTxn;
use crate::computed;
use crate::problem::{Part, Problem};
use crate::values::{Block, Outcome, PROBLEMS_MAX};
use crate::wanted::Wanted;
use eventring::reader::Descriptor;
use eventring::schema::exec::{AccessContext, BlockStart, ExecEvent, ExecPayload};

/// The largest index of a transaction, plus one. A block that says it has more is damaged.
const TXNS_MAX: u64 = 1 << 20;
/// What an event takes beside its payload, at most.
const EVENT_BYTES: usize = 256;

/// The block whose events are being read.
#[derive(Debug)]
pub(super) struct OpenBlock {
    block: Block,
    wanted: Wanted,
    /// True if the schema has TXN_HEADER_END, and the lists before it.
    has_header_end: bool,
    txns: Vec<Option<Box<OpenTxn>>>,
    prologue: OpenAccounts,
    epilogue: OpenAccounts,
    /// The room that is left, in bytes.
    room: usize,
    /// True if something was wrong that is not harmless.
    is_damaged: bool,
    has_ended: bool,
}

impl OpenBlock {
    pub(super) fn new(
        event: &Descriptor,
        start: BlockStart,
        wanted: Wanted,
        bytes_max: usize,
        has_header_end: bool,
    ) -> Self {
        let (start_seqno, nanos) = (event.seqno, event.record_epoch_nanos);
        let block = Block {
            start,
            start_seqno,
            end_seqno: start_seqno,
            start_epoch_nanos: nanos,
            end_epoch_nanos: nanos,
            ..Block::default()
        };
        Self {
            block,
            wanted,
            has_header_end,
            txns: Vec::new(),
            prologue: OpenAccounts::default(),
            epilogue: OpenAccounts::default(),
            room: bytes_max,
            is_damaged: false,
            has_ended: false,
        }
    }

    /// Returns the flow tag of the block's events.
    #[inline]
    pub(super) fn tag(&self) -> u64 {
        self.block.start_seqno
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(super) fn is_executed_again(&mut self, earlier_seqno: u64) {
        self.block.is_reexecution = true;
        self.remark(Problem::Reexecuted { earlier_seqno });
    }

    /// Keeps a problem because of which the block is not complete.
    pub(super) fn report(&mut self, problem: Problem) {
        self.is_damaged = true;
        self.remark(problem);
    }

    /// Keeps a problem that leaves the block complete.
    pub(super) fn remark(&mut self, problem: Problem) {
        if self.block.problems.len() < PROBLEMS_MAX {
            self.block.problems.push(problem);
        }
    }

    /// Returns true if the payload of an event of this kind is to be read.
    #[inline]
    pub(super) fn wants(&self, kind: ExecEvent) -> bool {
        use ExecEvent as E;
        match kind {
            E::RecordError | E::BlockReject | E::BlockEnd | E::TxnReject | E::EvmError => true,
            E::BlockPerfEvmEnter | E::BlockPerfEvmExit => true,
            E::TxnLog => self.wanted.transactions && self.wanted.logs,
            E::TxnCallFrame => self.wanted.transactions && self.wanted.call_frames,
            E::AccountAccessListHeader | E::AccountAccess | E::StorageAccess => {
                self.wanted.transactions && self.wanted.accesses
            }
            _ => self.wanted.transactions,
        }
    }

    /// Takes note of an event of the block, whatever it says.
    #[inline]
    pub(super) fn note(&mut self, event: &Descriptor) {
        self.block.end_seqno = event.seqno;
        self.block.end_epoch_nanos = event.record_epoch_nanos;
    }

    pub(super) fn record_error(&mut self, event: &Descriptor, dropped_type: u16) {
        self.note(event);
        let txn = event.content_ext[1].checked_sub(1);
        self.report(Problem::RecordError { seqno: event.seqno, txn, dropped_type });
    }

    /// Takes an event of the block.
    pub(super) fn take(&mut self, event: &Descriptor, payload: ExecPayload<'_>) {
        self.note(event);
        let (seqno, nanos) = (event.seqno, event.record_epoch_nanos);
        let txn = event.content_ext[1].checked_sub(1);
        let again = |earlier: Option<u64>| earlier.map(|_| Problem::Duplicate { seqno });
        let problem = match (payload, txn) {
            (ExecPayload::BlockEnd(end), _) => {
                self.end(Outcome::Executed(Box::new(end)));
                None
            }
            (ExecPayload::BlockReject(reject), _) => {
                self.end(Outcome::Rejected { reason: reject.reason });
                Some(Problem::Rejected { txn: None, reason: reject.reason })
            }
            (ExecPayload::EvmError(error), txn) => {
                let (domain, status) = (error.domain_id, error.status_code);
                if txn.is_none() {
                    self.end(Outcome::Failed { domain, status });
                }
                Some(Problem::Failed { txn, domain, status })
            }
            (ExecPayload::BlockPerfEvmEnter, _) => again(self.block.evm_enter_epoch_nanos.replace(nanos)),
            (ExecPayload::BlockPerfEvmExit, _) => again(self.block.evm_exit_epoch_nanos.replace(nanos)),
            (payload, Some(index)) => self.take_of_txn(event, index, payload),
            (ExecPayload::AccountAccessListHeader(header), None) => {
                self.list(header.access_context).begin(seqno, header.entry_count)
            }
            (ExecPayload::AccountAccess(account), None) => self.list(account.access_context).add(seqno, account),
            (ExecPayload::StorageAccess(slot), None) => {
                self.list(slot.access_context).add_storage(seqno, event.content_ext[2], slot)
            }
            // An event of a transaction that does not say of which.
            _ => Some(Problem::Malformed { seqno }),
        };
        if let Some(problem) = problem {
            self.report(problem);
        }
    }

    fn take_of_txn(&mut self, event: &Descriptor, index: u64, payload: ExecPayload<'_>) -> Option<Problem> {
        let seqno = event.seqno;
        if index >= self.block.start.eth_block_input.txn_count.min(TXNS_MAX) {
            return Some(Problem::OutOfRange { seqno, what: Part::Transactions, index });
        }
        let bytes = event.payload_size as usize + EVENT_BYTES;
        if bytes > self.room {
            self.room = 0;
            let is_told = self.block.problems.iter().any(|problem| matches!(problem, Problem::TooLarge { .. }));
            return (!is_told).then_some(Problem::TooLarge { seqno });
        }
        self.room -= bytes;
        if let ExecPayload::TxnReject(reject) = payload {
            self.report(Problem::Rejected { txn: Some(index), reason: reject.reason });
        }
        let at = index as usize;
        if at >= self.txns.len() {
            self.txns.resize_with(at + 1, || None);
        }
        self.txns[at].get_or_insert_default().take(event, payload, self.wanted)
    }

    fn list(&mut self, context: AccessContext) -> &mut OpenAccounts {
        match context {
            AccessContext::BlockEpilogue => &mut self.epilogue,
            AccessContext::BlockPrologue | AccessContext::Transaction => &mut self.prologue,
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.block.outcome = outcome;
        self.has_ended = true;
    }

    /// Returns the block, with what is missing of it and what is computed.
    pub(super) fn finish(mut self) -> Block {
        let mut missing = Vec::new();
        let mut report = |problem| missing.push(problem);
        if matches!(self.block.outcome, Outcome::Unknown) {
            report(Problem::Missing { what: Part::BlockEnd, txn: None, expected: 1, found: 0 });
        }
        if self.wanted.transactions && matches!(self.block.outcome, Outcome::Executed(_) | Outcome::Unknown) {
            let expected = self.block.start.eth_block_input.txn_count;
            let found = self.txns.iter().flatten().count() as u64;
            if found != expected {
                report(Problem::Missing { what: Part::Transactions, txn: None, expected, found });
            }
            for (index, txn) in (0..).zip(&self.txns) {
                if let Some(txn) = txn {
                    txn.check(index, self.wanted, self.has_header_end, &mut report);
                }
            }
            if self.wanted.accesses {
                self.prologue.check(None, &mut report);
                self.epilogue.check(None, &mut report);
            }
        }
        missing.into_iter().for_each(|problem| self.report(problem));
        let mut block = self.block;
        let txns = (0..).zip(self.txns).filter_map(|(index, txn)| Some((index, txn?)));
        block.transactions = txns.map(|(index, txn)| txn.finish(index, self.wanted)).collect();
        block.prologue = self.prologue.finish();
        block.epilogue = self.epilogue.finish();
        block.is_complete = !self.is_damaged && matches!(block.outcome, Outcome::Executed(_));
        computed::fill_in(&mut block);
        block
    }
}
