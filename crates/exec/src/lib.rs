//! Blocks, transactions and commit states from the execution events of event rings.
//!
//! A node that executes blocks records some thousand events for each block: the header, every transaction, receipt,
//! log, call frame and access, and later the decisions of consensus.
//!
//! [`BlockBuilder`] makes [`Block`]s from the events. [`CommitTracker`] follows blocks until they are final. [`Blocks`]
//! combines the two for a ring or a file.
//!
//! For faulty events, [`BlockBuilder`] and [`Blocks`] return a [`Problem`], and never panic. A block with missing parts
//! is returned, but not marked as complete.
//!
//! | file | idea |
//! |---|---|
//! | `values/` | the types of a block |
//! | `builder/` | building blocks from events |
//! | `wanted`, `problem`, `names` | the parts of a block that are read, the problems, names of codes |
//! | `dialect` | earlier schemas |
//! | `computed` | cumulative gas, blooms, prices, addresses |
//! | `later_fields`, `rlp` | newer header fields: the header's hash shows whether the header has them |
//! | `commit` | the commit states: proposed, voted, finalized, verified, abandoned |
//! | `source` | the sources of events |
//! | `stream` | blocks for async programs (feature `stream`) |
//! | `blocks/`, `pending` | blocks of a ring or a file, and their last states |
//! | `history/` | files of the published system: EVCAP_01, archives of blocks |
//! | `stand_in` | recording stored events again, as a stand-in for a node |
//! | `json/`, `summary` | a block as JSON, and statistics of many blocks |
//! | `alloy/` | blocks as types of the alloy crates (feature `alloy`) |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(feature = "alloy")]
pub mod alloy;
mod blocks;
mod builder;
mod commit;
mod computed;
mod dialect;
mod history;
pub mod json;
mod later_fields;
mod names;
mod pending;
mod problem;
mod rlp;
mod source;
mod stand_in;
#[cfg(feature = "stream")]
mod stream;
mod summary;
mod values;
mod wanted;

pub use blocks::{BlockUpdate, Blocks, NextUpdate, Start};
pub use builder::{BlockBuilder, ChainEvent};
pub use commit::{CommitState, CommitTracker, Update};
pub use dialect::{Dialect, UnknownSchema};
pub use history::{Archived, Archiver, BlockArchive, Bundle, BundleEvents, EventcapFile, EventcapHeader, write_bundle};
pub use later_fields::LaterFields;
pub use names::{reject_reason, txn_reject_reason};
pub use pending::{LastStates, PendingBlocks};
pub use problem::{Part, Problem};
pub use source::{EventPayload, ExecEvents, NextEvent, is_stored, stored_events};
pub use stand_in::Replay;
#[cfg(feature = "stream")]
pub use stream::BlockStream;
pub use summary::{ChainFigures, ChainSummary};
pub use values::{
    AccessListEntry, AccountAccess, Block, CallFrame, Log, Outcome, PROBLEMS_MAX, Receipt, StorageAccess, Txn, TxnStart,
};
pub use wanted::Wanted;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
