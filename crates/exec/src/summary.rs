//! Figures computed from many blocks.

use crate::blocks::BlockUpdate;
use crate::values::{Block, Outcome};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
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
    /// The transactions that accessed a storage slot that an earlier transaction of their block had changed. Counted
    /// only if accesses are read.
    pub conflicts: u64,
    /// The number and the transactions of the block with the most transactions.
    pub largest: Option<(u64, u64)>,
    /// The times from BLOCK_START to the end, in nanoseconds, to three digits.
    pub block_nanos: Histogram<u64>,
    /// The longest of them, exactly.
    pub block_nanos_max: u64,
    /// The times of the EVM for transactions, in nanoseconds, to three digits.
    pub txn_nanos: Histogram<u64>,
    /// The longest of them, exactly.
    pub txn_nanos_max: u64,
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
            block_nanos_max: 0,
            txn_nanos: histogram(),
            txn_nanos_max: 0,
            first_nanos: u64::MAX,
            last_nanos: 0,
        }
    }
}

impl ChainSummary {
    /// Sums up the executions among the news.
    pub fn from_updates(updates: impl IntoIterator<Item = BlockUpdate>) -> Self {
        let mut summary = Self::default();
        for update in updates {
            match update {
                // A block is told again when its state changes.
                BlockUpdate::Changed(update) if update.is_new => {
                    update.block.iter().for_each(|block| summary.add(block))
                }
                BlockUpdate::Reexecuted(block) => summary.add(&block),
                BlockUpdate::Changed(_) | BlockUpdate::Problem(_) => {}
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
        let nanos = block.end_epoch_nanos.saturating_sub(block.start_epoch_nanos);
        self.block_nanos.saturating_record(nanos);
        self.block_nanos_max = self.block_nanos_max.max(nanos);
        self.first_nanos = self.first_nanos.min(block.start_epoch_nanos);
        self.last_nanos = self.last_nanos.max(block.end_epoch_nanos);
        let mut changed = HashSet::new();
        for txn in &block.transactions {
            if let (Some(enter), Some(exit)) = (txn.enter_epoch_nanos, txn.exit_epoch_nanos) {
                let nanos = exit.saturating_sub(enter);
                self.txn_nanos.saturating_record(nanos);
                self.txn_nanos_max = self.txn_nanos_max.max(nanos);
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
    pub fn figures(&self) -> ChainFigures {
        ChainFigures {
            blocks: self.blocks,
            complete: self.complete,
            rejected: self.rejected,
            reexecuted: self.reexecuted,
            transactions: self.transactions,
            gas_used: self.gas_used,
            conflicts: self.conflicts,
            seconds: self.seconds(),
            transactions_per_second: self.per_second(self.transactions),
            gas_per_second: self.per_second(self.gas_used),
            largest: self.largest.map(|(number, transactions)| LargestBlock { number, transactions }),
            block_times: Times::new(&self.block_nanos, self.block_nanos_max),
            transaction_times: Times::new(&self.txn_nanos, self.txn_nanos_max),
        }
    }

    /// Returns the figures as a value of JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self.figures()).unwrap_or_default()
    }
}

/// The figures of a [`ChainSummary`], as JSON has them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChainFigures {
    /// Executions, also of blocks that were executed again.
    blocks: u64,
    /// Those of which everything is there.
    complete: u64,
    /// Those that were invalid, or whose execution failed.
    rejected: u64,
    /// Executions of blocks that had been executed before.
    reexecuted: u64,
    transactions: u64,
    gas_used: u64,
    /// Transactions that accessed a storage slot that an earlier one of their block had changed.
    conflicts: u64,
    /// From the first block's start to the last one's end.
    seconds: f64,
    transactions_per_second: Option<f64>,
    gas_per_second: Option<f64>,
    /// The block with the most transactions.
    largest: Option<LargestBlock>,
    block_times: Times,
    /// The times of the EVM for transactions.
    transaction_times: Times,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct LargestBlock {
    number: u64,
    transactions: u64,
}

/// Times, to three digits; the longest is exact.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Times {
    count: u64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl Times {
    fn new(nanos: &Histogram<u64>, max_ns: u64) -> Self {
        let [p50_ns, p90_ns, p99_ns] = [0.5, 0.9, 0.99].map(|part| nanos.value_at_quantile(part));
        Self { count: nanos.len(), p50_ns, p90_ns, p99_ns, max_ns }
    }
}
