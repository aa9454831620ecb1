//! A block as a line for people, or for programs.

use crate::args::limit::Part;
use crate::output::json_line;
use crate::text::format::{counted, duration, grouped};
use crate::text::paint::{BOLD, DIM, WARNING};
use eventring::schema::exec::{Address, Bytes32};
use eventring_exec::{Block, CommitState, Txn, json};
use std::io::{self, Write};
use std::time::Duration;

/// The number of problems of a block that people see.
const PROBLEMS_SHOWN: usize = 3;

/// The choice of transactions, and the counts of what was written.
pub(super) struct Shown<'a> {
    is_json: bool,
    addresses: &'a [Address],
    topics: &'a [Bytes32],
    part: Part,
    pub(super) written: u64,
    pub(super) incomplete: u64,
}

impl<'a> Shown<'a> {
    pub(super) fn new(is_json: bool, addresses: &'a [Address], topics: &'a [Bytes32], part: Part) -> Self {
        Self { is_json, addresses, topics, part, written: 0, incomplete: 0 }
    }

    /// Returns true if no further block is written.
    pub(super) fn is_over(&self) -> bool {
        self.part.is_over()
    }

    /// Writes what was cut, if that is asked for.
    ///
    /// # Errors
    /// As those of [`Part::end`], or it cannot be written.
    pub(super) fn end(&self, is_live: bool) -> anyhow::Result<()> {
        if self.part.is_asked_for {
            let end = self.part.end(is_live && self.is_over(), "no block has this id")?;
            json_line(&end)?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, out: &mut impl Write, block: &Block, state: CommitState) -> io::Result<()> {
        let is_part = !self.addresses.is_empty() || !self.topics.is_empty();
        let wanted: Vec<bool> = block.transactions.iter().map(|txn| self.wants(txn)).collect();
        if is_part && !wanted.contains(&true) {
            return Ok(());
        }
        // A block that is executed again has other numbers of events.
        let id =
            if self.part.is_asked_for { format!("{}:{}", block.tag().id, block.start_seqno) } else { String::new() };
        if self.is_json {
            let mut shown = json::block(block, Some(state));
            if is_part {
                let mut wanted = wanted.iter();
                shown.transactions.retain(|_| wanted.next() == Some(&true));
            }
            let line = serde_json::to_string(&shown)? + "\n";
            if self.takes(line.len(), &id, block) {
                out.write_all(line.as_bytes())?;
            }
            return Ok(());
        }
        if !self.takes(0, &id, block) {
            return Ok(());
        }
        let kept: Vec<&Txn> =
            block.transactions.iter().zip(&wanted).filter(|(_, is_wanted)| **is_wanted).map(|(txn, _)| txn).collect();
        let logs: usize = kept.iter().map(|txn| txn.logs.len()).sum();
        let gas = block.end().map_or_else(|| "–".to_owned(), |end| grouped(end.gas_used));
        let took = Duration::from_nanos(block.end_epoch_nanos.saturating_sub(block.start_epoch_nanos));
        let again = if block.is_reexecution { " again" } else { "" };
        writeln!(
            out,
            "{BOLD}{}{BOLD:#} {state}{again}  {}  {}  {gas} gas  {}  {DIM}{}{DIM:#}",
            block.number(),
            counted(kept.len() as u64, "transaction", "transactions"),
            counted(logs as u64, "log", "logs"),
            duration(took),
            block.tag().id
        )?;
        for problem in block.problems.iter().take(PROBLEMS_SHOWN) {
            writeln!(out, "    {WARNING}{problem}{WARNING:#}")?;
        }
        match block.problems.len().saturating_sub(PROBLEMS_SHOWN) {
            0 => Ok(()),
            more => writeln!(out, "    {WARNING}{} more{WARNING:#}", counted(more as u64, "problem", "problems")),
        }
    }

    /// Returns true if the block is in the part that is wanted, and counts it then.
    fn takes(&mut self, bytes: usize, id: &str, block: &Block) -> bool {
        let takes = !self.part.is_asked_for || self.part.takes(bytes, id);
        self.written += u64::from(takes);
        self.incomplete += u64::from(takes && !block.is_complete);
        takes
    }

    /// Returns true if a transaction is of a wanted address, and has a wanted topic.
    fn wants(&self, txn: &Txn) -> bool {
        let start = txn.start.as_ref();
        let is_of = |address: &Address| {
            start.is_some_and(|start| {
                let header = &start.header;
                start.sender == *address || (header.to == *address && !header.is_contract_creation)
            }) || txn.receipt.is_some_and(|receipt| receipt.contract_address == Some(*address))
                || txn.logs.iter().any(|log| log.address == *address)
        };
        let has = |topic: &Bytes32| txn.logs.iter().any(|log| log.topics.contains(topic));
        (self.addresses.is_empty() || self.addresses.iter().any(is_of))
            && (self.topics.is_empty() || self.topics.iter().any(has))
    }
}
