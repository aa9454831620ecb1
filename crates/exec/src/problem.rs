//! The problems that the events of a block can have. Each problem is a value. No function of this module panics.

use crate::names::{reject_reason, txn_reject_reason};
use std::fmt;

/// Something wrong with execution events, or something that they report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// Events are missing: they were overwritten, never committed, or left out by a filter.
    Gap {
        /// The first missing seqno.
        first_seqno: u64,
        /// The number of missing events.
        count: u64,
    },
    /// The payload of an event was overwritten before it was read.
    Expired {
        /// The event.
        seqno: u64,
    },
    /// The payload or the extension words of an event do not fit its type: the file is damaged, or the schema is
    /// another one.
    Malformed {
        /// The event.
        seqno: u64,
    },
    /// An event that was there before: the same seqno once more, which is ignored, or a second one that says the same
    /// of the same thing, of which the first one counts.
    Duplicate {
        /// The event.
        seqno: u64,
    },
    /// An index that is not below what other events say.
    OutOfRange {
        /// The event.
        seqno: u64,
        /// What the index is of.
        what: Part,
        /// The index.
        index: u64,
    },
    /// Parts of the block of which no event came.
    Missing {
        /// What is missing.
        what: Part,
        /// The transaction, if it is one of a transaction.
        txn: Option<u64>,
        /// How many there should be.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// An event could not be recorded; a RECORD_ERROR stands in its place.
    RecordError {
        /// The event.
        seqno: u64,
        /// The transaction of the lost event.
        txn: Option<u64>,
        /// The type of the lost event; 0 if it is not known.
        dropped_type: u16,
    },
    /// The block is invalid.
    Rejected {
        /// The transaction because of which it is, if it is one.
        txn: Option<u64>,
        /// The code of the execution client.
        reason: u32,
    },
    /// The execution failed.
    Failed {
        /// The transaction in which it did, if it was in one.
        txn: Option<u64>,
        /// The domain of the error's code.
        domain: u64,
        /// The error's code.
        status: i64,
    },
    /// A block with the same id has been executed before. The block is as good as any other.
    Reexecuted {
        /// The flow tag of the earlier execution.
        earlier_seqno: u64,
    },
    /// An event of a type that the schema does not have. It is left out.
    Unknown {
        /// The event.
        seqno: u64,
        /// Its type.
        code: u16,
    },
    /// An event of a block that is not open: its BLOCK_START was lost, or lies before the first event that was read.
    NoStart {
        /// The first such event.
        seqno: u64,
        /// The flow tag of the block.
        block_seqno: u64,
    },
    /// Blocks of which the ring has lost events, and which the archive did not get in time.
    Unfilled {
        /// The first number.
        first_number: u64,
        /// The last number.
        last_number: u64,
    },
    /// The block has more bytes than the builder keeps of one ([`BlockBuilder::bytes_max`](crate::BlockBuilder)).
    TooLarge {
        /// The event that found no room.
        seqno: u64,
    },
}

/// A part of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Part {
    /// BLOCK_END, or another end of the block.
    BlockEnd,
    /// Transactions.
    Transactions,
    /// TXN_HEADER_START.
    TxnStart,
    /// TXN_HEADER_END.
    TxnHeaderEnd,
    /// TXN_EVM_OUTPUT.
    TxnOutput,
    /// TXN_END.
    TxnEnd,
    /// Entries of an access list.
    AccessList,
    /// Entries of an authorization list.
    AuthorizationList,
    /// Logs.
    Logs,
    /// Call frames.
    CallFrames,
    /// ACCOUNT_ACCESS_LIST_HEADER.
    AccessHeader,
    /// Accounts that were accessed.
    Accounts,
    /// Storage slots that were accessed.
    Storage,
}

impl Part {
    /// Returns the name in JSON, for example `call_frames`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BlockEnd => "block_end",
            Self::Transactions => "transactions",
            Self::TxnStart => "txn_header_start",
            Self::TxnHeaderEnd => "txn_header_end",
            Self::TxnOutput => "txn_evm_output",
            Self::TxnEnd => "txn_end",
            Self::AccessList => "access_list",
            Self::AuthorizationList => "authorization_list",
            Self::Logs => "logs",
            Self::CallFrames => "call_frames",
            Self::AccessHeader => "access_list_header",
            Self::Accounts => "accounts",
            Self::Storage => "storage",
        }
    }
}

impl Problem {
    /// Returns the name of the kind in JSON, for example `record_error`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Gap { .. } => "gap",
            Self::Expired { .. } => "expired",
            Self::Malformed { .. } => "malformed",
            Self::Duplicate { .. } => "duplicate",
            Self::OutOfRange { .. } => "out_of_range",
            Self::Missing { .. } => "missing",
            Self::RecordError { .. } => "record_error",
            Self::Rejected { .. } => "rejected",
            Self::Failed { .. } => "failed",
            Self::Reexecuted { .. } => "reexecuted",
            Self::Unknown { .. } => "unknown",
            Self::NoStart { .. } => "no_start",
            Self::Unfilled { .. } => "unfilled",
            Self::TooLarge { .. } => "too_large",
        }
    }

    /// Returns true if events are missing, or payloads of them.
    #[must_use]
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Gap { .. } | Self::Expired { .. })
    }

    /// Returns true if a block with this problem can be complete all the same.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        matches!(self, Self::Reexecuted { .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_txn = |txn: Option<u64>| txn.map(|txn| format!(" of transaction {txn}")).unwrap_or_default();
        match *self {
            Self::Gap { first_seqno, count: 1 } => write!(f, "the event {first_seqno} is missing"),
            Self::Gap { first_seqno, count } => {
                let last = first_seqno.saturating_add(count).saturating_sub(1);
                write!(f, "the events {first_seqno} to {last} are missing")
            }
            Self::Expired { seqno } => write!(f, "the payload of the event {seqno} was overwritten before it was read"),
            Self::Malformed { seqno } => write!(f, "the payload or the words of the event {seqno} do not fit its type"),
            Self::Duplicate { seqno } => write!(f, "the event {seqno} says what an earlier one has said"),
            Self::OutOfRange { seqno, what, index } => {
                write!(f, "the event {seqno} is of {} number {index}, which cannot be", what.name())
            }
            Self::Missing { what, txn, expected, found } => {
                write!(f, "{found} of {expected} {}{} are there", what.name(), of_txn(txn))
            }
            Self::RecordError { seqno, txn, dropped_type } => {
                write!(f, "the event {seqno}{} of type {dropped_type} could not be recorded", of_txn(txn))
            }
            Self::Rejected { txn: Some(txn), reason } => {
                let name = txn_reject_reason(reason).unwrap_or("unknown");
                write!(f, "transaction {txn} is invalid: reason {reason} ({name})")
            }
            Self::Rejected { txn: None, reason } => {
                write!(f, "the block is invalid: reason {reason} ({})", reject_reason(reason).unwrap_or("unknown"))
            }
            Self::Failed { txn, domain, status } => {
                write!(f, "the execution{} failed: status {status} of domain {domain}", of_txn(txn))
            }
            Self::Reexecuted { earlier_seqno } => {
                write!(f, "the block has been executed before, from event {earlier_seqno} on")
            }
            Self::Unknown { seqno, code } => write!(f, "the event {seqno} has the unknown type {code}"),
            Self::NoStart { seqno, block_seqno } => {
                write!(f, "the event {seqno} is of the block that began with event {block_seqno}, which was not read")
            }
            Self::Unfilled { first_number, last_number } if first_number == last_number => {
                write!(f, "block {first_number} is neither in the ring nor in the archive")
            }
            Self::Unfilled { first_number, last_number } => {
                write!(f, "the blocks {first_number} to {last_number} are neither in the ring nor in the archive")
            }
            Self::TooLarge { seqno } => {
                write!(f, "the block is too large: no room for the event {seqno} and later ones")
            }
        }
    }
}
