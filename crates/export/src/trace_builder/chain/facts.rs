//! The arguments of blocks, transactions and commit states: values from events, "not seen" for missing events, and
//! counts of events that have no slices.

use super::collected::{Collected, Part};
use crate::args::{ArgValue, Args};
use crate::formats::trace_writer::Alert;
use eventring::reader::Descriptor;
use eventring::schema::exec::{BlockTag, Bytes32};
use eventring_exec::{
    Block, ChainEvent, CommitState, Outcome, PROBLEMS_MAX, Problem, Txn, reject_reason, txn_reject_reason,
};
use std::fmt::Display;

/// The number of problems that an argument lists.
const LISTED_MAX: usize = 8;

fn text(value: impl Display) -> ArgValue {
    ArgValue::Text(value.to_string().into())
}

impl Args {
    /// Says that no event tells the time of this end of a slice.
    pub(super) fn push_not_seen(&mut self, which: &'static str, seen: Option<u64>) {
        if seen.is_none() {
            self.push(which, ArgValue::Text("not seen".into()));
        }
    }

    fn push_reason(&mut self, reason: u32, name: Option<&'static str>) {
        self.push("reason", ArgValue::Uint(reason.into()));
        self.push("reason_name", ArgValue::Text(name.unwrap_or("unknown").into()));
    }

    fn push_problems_of(&mut self, problems: &[&Problem]) {
        let mut listed: Vec<String> = problems.iter().take(LISTED_MAX).map(ToString::to_string).collect();
        if problems.len() > LISTED_MAX {
            let or_more = if problems.len() >= PROBLEMS_MAX { " or more" } else { "" };
            listed.push(format!("and {}{or_more} others", problems.len() - LISTED_MAX));
        }
        if !listed.is_empty() {
            self.push("problems", ArgValue::Text(listed.join("; ").into()));
        }
    }

    fn push_counts(&mut self, part: &Part) {
        let counts = [
            ("logs", part.logs),
            ("call_frames", part.call_frames),
            ("account_accesses", part.accounts),
            ("storage_accesses", part.slots),
        ];
        counts.into_iter().for_each(|(name, count)| self.push(name, ArgValue::Uint(count)));
    }
}

/// Returns the arguments of a block.
pub(super) fn of_block(
    collected: &Collected,
    block: Option<(&Block, bool)>,
    state: impl Fn(BlockTag) -> CommitState,
) -> Args {
    let mut args = Args::default();
    if let Some((block, is_open)) = block {
        push_block(&mut args, block, is_open);
        args.push("state", ArgValue::Text(state(block.tag()).name().into()));
    } else {
        if let Some(known) = &collected.known {
            let tag = BlockTag { id: Bytes32(known.id()), block_number: known.number() };
            args.push("number", ArgValue::Uint(tag.block_number));
            args.push("id", text(tag.id));
            args.push("state", ArgValue::Text(state(tag).name().into()));
        }
        args.push("transactions", ArgValue::Uint(collected.txns.len() as u64));
        args.push("start", ArgValue::Text("not seen".into()));
        args.push("complete", ArgValue::Bool(false));
    }
    args.push("seqno", ArgValue::Uint(collected.tag));
    args.push("events", ArgValue::Uint(collected.events()));
    args.push("events_of_transactions", ArgValue::Uint(collected.events_of_txns()));
    args.push("account_accesses", ArgValue::Uint(collected.own.accounts));
    args.push("storage_accesses", ArgValue::Uint(collected.own.slots));
    args
}

fn push_block(args: &mut Args, block: &Block, is_open: bool) {
    let input = &block.start.eth_block_input;
    args.push("number", ArgValue::Uint(block.number()));
    args.push("id", text(block.tag().id));
    if let Some(end) = block.end() {
        args.push("hash", text(end.eth_block_hash));
        args.push("gas_used", ArgValue::Uint(end.gas_used));
    }
    args.push("gas_limit", ArgValue::Uint(input.gas_limit));
    args.push("round", ArgValue::Uint(block.start.round));
    args.push("epoch", ArgValue::Uint(block.start.epoch));
    args.push("transactions", ArgValue::Uint(block.transactions.len() as u64));
    let outcome = match &block.outcome {
        Outcome::Executed(_) => "executed",
        Outcome::Rejected { .. } => "rejected",
        Outcome::Failed { .. } => "failed",
        _ => "unknown",
    };
    args.push("outcome", ArgValue::Text(outcome.into()));
    match &block.outcome {
        Outcome::Rejected { reason } => args.push_reason(*reason, reject_reason(*reason)),
        Outcome::Failed { domain, status } => {
            args.push("error_domain", ArgValue::Uint(*domain));
            args.push("error_status", ArgValue::Int(*status));
        }
        Outcome::Unknown => args.push("end", ArgValue::Text("not seen".into())),
        _ => {}
    }
    if is_open {
        args.push("open", ArgValue::Bool(true));
    }
    if block.is_reexecution {
        args.push("reexecution", ArgValue::Bool(true));
    }
    args.push("complete", ArgValue::Bool(block.is_complete));
    args.push_problems_of(&block.problems.iter().collect::<Vec<_>>());
}

/// Returns the arguments of a transaction.
pub(super) fn of_txn(index: u64, number: Option<u64>, part: &Part, txn: Option<&Txn>, block: Option<&Block>) -> Args {
    let mut args = Args::one("index", ArgValue::Uint(index));
    args.push_some("block", number.map(ArgValue::Uint));
    if let Some(start) = txn.and_then(|txn| txn.start.as_ref()) {
        args.push("hash", text(start.hash));
        args.push("sender", text(start.sender));
        match start.header.is_contract_creation {
            true => args.push("creation", ArgValue::Bool(true)),
            false => args.push("to", text(start.header.to)),
        }
        args.push("nonce", ArgValue::Uint(start.header.nonce));
        args.push("gas_limit", ArgValue::Uint(start.header.gas_limit));
    }
    if let Some(receipt) = txn.and_then(|txn| txn.receipt) {
        args.push("gas_used", ArgValue::Uint(receipt.gas_used));
        args.push("status", ArgValue::Bool(receipt.status));
    }
    if let Some(reason) = txn.and_then(|txn| txn.rejected) {
        args.push_reason(reason, txn_reject_reason(reason));
    }
    args.push_not_seen("start", part.enter_nanos);
    args.push_not_seen("end", part.exit_nanos);
    let problems = block.iter().flat_map(|block| &block.problems);
    args.push_problems_of(&problems.filter(|problem| txn_of(problem) == Some(index)).collect::<Vec<_>>());
    args.push("seqno", ArgValue::Uint(part.first_seqno));
    args.push("events", ArgValue::Uint(part.events));
    args.push_counts(part);
    args
}

/// Returns the transaction with which something is wrong.
fn txn_of(problem: &Problem) -> Option<u64> {
    match problem {
        Problem::Missing { txn, .. }
        | Problem::RecordError { txn, .. }
        | Problem::Rejected { txn, .. }
        | Problem::Failed { txn, .. } => *txn,
        _ => None,
    }
}

pub(super) fn alert_of_block(block: &Block) -> Option<Alert> {
    match &block.outcome {
        Outcome::Rejected { .. } | Outcome::Failed { .. } => Some(Alert::Error),
        _ => (!block.is_complete).then_some(Alert::Warning),
    }
}

pub(super) fn alert_of_txn(txn: &Txn) -> Option<Alert> {
    match txn.rejected {
        Some(_) => Some(Alert::Error),
        None => txn.receipt.filter(|receipt| !receipt.status).map(|_| Alert::Warning),
    }
}

/// Returns the name and the arguments of what consensus says of a block.
pub(super) fn of_consensus(found: &ChainEvent, event: &Descriptor) -> Option<(String, Args)> {
    let mut args = Args::one("seqno", ArgValue::Uint(event.seqno));
    let (state, number) = match found {
        ChainEvent::Voted(qc) => {
            args.push("id", text(qc.block_tag.id));
            args.push("round", ArgValue::Uint(qc.round));
            args.push("epoch", ArgValue::Uint(qc.epoch));
            (CommitState::Voted, qc.block_tag.block_number)
        }
        ChainEvent::Finalized(tag) => {
            args.push("id", text(tag.id));
            (CommitState::Finalized, tag.block_number)
        }
        ChainEvent::Verified(number) => (CommitState::Verified, *number),
        _ => return None,
    };
    args.push("number", ArgValue::Uint(number));
    Some((format!("{state} {number}"), args))
}
