//! The figures of many blocks.

use crate::{Block, BlockUpdate, Outcome};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The longest time that is told from longer ones: an hour.
const NANOS_MAX: u64 = 3_600_000_000_000;

/// The figures of the blocks of a ring or a capture.
#[derive(Clone, Debug)]
pub struct ChainSummary {
    /// The number of executions, also of blocks that were executed again.
    pub blocks: u64,
    /// Those of which everything is there.
    pub complete: u64,
    /// Those that were invalid, or whose execution failed.
    pub rejected: u64,
    /// Executions of blocks that had been executed before.
    pub reexecuted: u64,
    /// The transactions of all these blocks, as far as they are there.
    pub transactions: u64,
    /// The gas that the executed blocks used.
    pub gas_used: u64,
    /// The transactions that accessed a storage slot that an earlier transaction of their block had changed. Counted only
    /// if accesses are read.
    pub conflicts: u64,
    /// The number and the transactions of the block with the most transactions.
    pub largest: Option<(u64, u64)>,
    /// The times from BLOCK_START to the end, in nanoseconds.
    pub block_nanos: Histogram<u64>,
    /// The times of the EVM for transactions, in nanoseconds.
    pub txn_nanos: Histogram<u64>,
    first_nanos: u64,
    last_nanos: u64,
}

impl Default for ChainSummary {
    fn default() -> Self {
        let histogram = || Histogram::new_with_bounds(1, NANOS_MAX, 3).expect("these bounds are allowed");
        Self {
            blocks: 0,
            complete: 0,
            rejected: 0,
            reexecuted: 0,
            transactions: 0,
            gas_used: 0,
            conflicts: 0,
            largest: None,
            block_nanos: histogram(),
            txn_nanos: histogram(),
            first_nanos: u64::MAX,
            last_nanos: 0,
        }
    }
}

impl ChainSummary {
    /// Sums up the executions among the news.
    pub fn of(updates: impl IntoIterator<Item = BlockUpdate>) -> Self {
        let mut summary = Self::default();
        let mut last = 0;
        for update in updates {
            let block = match update {
                BlockUpdate::Changed(update) => update.block,
                BlockUpdate::Reexecuted(block) => Some(block),
                BlockUpdate::Problem(_) => None,
            };
            // A block is told again when its state changes.
            if let Some(block) = block.filter(|block| block.start_seqno > last) {
                last = block.start_seqno;
                summary.add(&block);
            }
        }
        summary
    }

    /// Adds an execution.
    pub fn add(&mut self, block: &Block) {
        self.blocks += 1;
        self.complete += u64::from(block.is_complete);
        self.reexecuted += u64::from(block.is_reexecution);
        self.rejected += u64::from(matches!(block.outcome, Outcome::Rejected { .. } | Outcome::Failed { .. }));
        let transactions = block.transactions.len() as u64;
        self.transactions += transactions;
        self.gas_used = self.gas_used.saturating_add(block.end().map_or(0, |end| end.gas_used));
        if self.largest.is_none_or(|(_, most)| transactions > most) {
            self.largest = Some((block.number(), transactions));
        }
        self.block_nanos.saturating_record(block.end_epoch_nanos.saturating_sub(block.start_epoch_nanos));
        self.first_nanos = self.first_nanos.min(block.start_epoch_nanos);
        self.last_nanos = self.last_nanos.max(block.end_epoch_nanos);
        let mut changed = HashSet::new();
        for txn in &block.transactions {
            if let (Some(enter), Some(exit)) = (txn.enter_epoch_nanos, txn.exit_epoch_nanos) {
                self.txn_nanos.saturating_record(exit.saturating_sub(enter));
            }
            let accesses = txn.accesses.iter().flatten();
            let slots: Vec<_> = accesses.flat_map(|access| &access.storage).collect();
            self.conflicts += u64::from(slots.iter().any(|slot| changed.contains(&(slot.address, slot.key))));
            changed.extend(slots.iter().filter(|slot| slot.modified).map(|slot| (slot.address, slot.key)));
        }
    }

    /// Returns the time from the first block's start to the last one's end, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.last_nanos.saturating_sub(self.first_nanos) as f64 / 1e9
    }

    /// Returns a number for each second of [`Self::seconds`]; `None` without time.
    #[must_use]
    pub fn per_second(&self, number: u64) -> Option<f64> {
        Some(number as f64 / self.seconds()).filter(|rate| rate.is_finite())
    }

    /// Returns the figures as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let times = |nanos: &Histogram<u64>| {
            json!({
                "count": nanos.len(), "p50_ns": nanos.value_at_quantile(0.5), "p90_ns": nanos.value_at_quantile(0.9),
                "p99_ns": nanos.value_at_quantile(0.99), "max_ns": nanos.max(),
            })
        };
        json!({
            "blocks": self.blocks, "complete": self.complete, "rejected": self.rejected, "reexecuted": self.reexecuted,
            "transactions": self.transactions, "gas_used": self.gas_used, "conflicts": self.conflicts,
            "seconds": self.seconds(), "transactions_per_second": self.per_second(self.transactions),
            "gas_per_second": self.per_second(self.gas_used),
            "largest": self.largest.map(|(number, transactions)| json!({ "number": number, "transactions": transactions })),
            "block_times": times(&self.block_nanos), "transaction_times": times(&self.txn_nanos),
        })
    }
}
