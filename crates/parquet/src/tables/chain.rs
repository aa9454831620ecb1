//! Blocks, built from execution events, as the tables `blocks`, `transactions`, `logs`, `call_frames` and `accesses`.
//! Each row has the number and hash of its block. A row that belongs to a transaction also has the transaction's hash.
//! Bytes are hex with `0x`. Numbers that may exceed 64 bits are decimal texts.
//!
//! The values come from the JSON of the block ([`eventring_exec::json`]). This module lists, for each column, the JSON
//! pointer of its value.

use crate::columns::row_columns::{RowColumns, TableSetup};
use crate::tables::table::ParquetTable;
use crate::tables::table_sink::TableSink;
use eventring_capture::{CaptureFile, CapturedRing};
use eventring_exec::{Block, Blocks, LastStates, Wanted, json};
use eventring_export::rows::{Cell, Column, Columns, InJson, Row};
use serde_json::Value;
use std::borrow::Cow;
use std::io;

/// The column by which rows are sorted: when the block was executed.
const TIME: &str = "start_ns";

/// The type of a column.
#[derive(Clone, Copy)]
enum Type {
    /// A number of up to 64 bits, or the length of a list.
    Number,
    /// The time in which a block was executed.
    Time,
    Bool,
    Text,
}

use Type::{Bool, Number, Text, Time};

/// A column: its name, its type, and the pointer to its value in the JSON, unless the name is its key.
type Described = (&'static str, Type, &'static str);

/// The columns with which each row begins: those of the block, and those of the transaction.
const OF_BLOCK: [Described; 4] =
    [(TIME, Time, ""), ("block_number", Number, "/number"), ("block_hash", Text, "/hash"), ("block_id", Text, "/id")];
const OF_TXN: [Described; 2] = [("txn_index", Number, "/index"), ("txn_hash", Text, "/hash")];

const BLOCKS: &[Described] = &[
    ("round", Number, ""),
    ("timestamp", Number, ""),
    ("gas_used", Number, ""),
    ("gas_limit", Number, ""),
    ("base_fee_per_gas", Text, ""),
    ("beneficiary", Text, ""),
    ("parent_hash", Text, ""),
    ("state_root", Text, ""),
    ("state", Text, ""),
    ("complete", Bool, ""),
    ("reexecution", Bool, ""),
    ("problems", Number, ""),
    ("transactions", Number, ""),
    ("duration_ns", Number, ""),
];
const TRANSACTIONS: &[Described] = &[
    ("sender", Text, ""),
    ("to", Text, ""),
    ("contract_address", Text, ""),
    ("status", Number, ""),
    ("gas_used", Number, ""),
    ("cumulative_gas_used", Number, ""),
    ("effective_gas_price", Text, ""),
    ("type", Number, ""),
    ("nonce", Number, ""),
    ("value", Text, ""),
    ("gas_limit", Number, ""),
    ("max_fee_per_gas", Text, ""),
    ("max_priority_fee_per_gas", Text, ""),
    ("input", Text, ""),
    ("logs", Number, ""),
    ("call_frames", Number, ""),
    ("evm_ns", Number, ""),
];
const LOGS: &[Described] = &[
    ("log_index", Number, "/index"),
    ("block_log_index", Number, "/block_index"),
    ("address", Text, ""),
    ("topic0", Text, "/topics/0"),
    ("topic1", Text, "/topics/1"),
    ("topic2", Text, "/topics/2"),
    ("topic3", Text, "/topics/3"),
    ("data", Text, ""),
];
const CALL_FRAMES: &[Described] = &[
    ("frame_index", Number, "/index"),
    ("depth", Number, ""),
    ("opcode", Number, ""),
    ("caller", Text, ""),
    ("call_target", Text, ""),
    ("value", Text, ""),
    ("gas", Number, ""),
    ("gas_used", Number, ""),
    ("evmc_status", Text, ""),
    ("input", Text, ""),
    ("return", Text, ""),
];
/// An account, and then what an account has, and a storage slot.
const ACCESSES: &[Described] = &[
    ("access_index", Number, "/account/index"),
    ("address", Text, "/account/address"),
    ("context", Text, ""),
    ("balance", Text, ""),
    ("balance_after", Text, ""),
    ("nonce", Number, ""),
    ("nonce_after", Number, ""),
    ("key", Text, ""),
    ("is_transient", Bool, ""),
    ("before", Text, ""),
    ("after", Text, ""),
];

/// Returns the names of the table of log records, and of that of the logs of blocks. Without spans the name `logs` is
/// that of blocks.
pub(crate) fn names_of_logs(capture: &CaptureFile) -> (&'static str, &'static str) {
    let has = |is_it: fn(&CapturedRing) -> bool| capture.rings().iter().any(is_it);
    if has(CapturedRing::is_exec) && !has(CapturedRing::is_perf) {
        ("log_records", "logs")
    } else {
        ("logs", "txn_logs")
    }
}

/// A row: values of JSON with the columns that they have.
struct ChainRow<'v> {
    parts: [(&'v Value, &'static [Described]); 3],
}

impl Row for ChainRow<'_> {
    fn put_columns(&self, to: &mut impl Columns) -> io::Result<()> {
        for (value, columns) in self.parts {
            for (name, ty, place) in columns {
                let value = if place.is_empty() { value.get(name) } else { value.pointer(place) };
                let value = value.unwrap_or(&Value::Null);
                to.put(Column { name, in_json: InJson::Always }, cell(*ty, value))?;
            }
        }
        Ok(())
    }
}

fn cell(ty: Type, value: &Value) -> Cell<'_> {
    let number = || match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.parse().ok(),
        Value::Array(list) => Some(list.len() as u64),
        _ => None,
    };
    match ty {
        Number => Cell::U64(number()),
        Time => Cell::Amount(number()),
        Bool => Cell::Bool(value.as_bool()),
        Text => Cell::Text(match value {
            Value::String(text) => Some(Cow::Borrowed(text)),
            Value::Number(number) => Some(number.to_string().into()),
            _ => None,
        }),
    }
}

/// A table, and the columns of its rows after those of the block.
struct ChainTable {
    table: ParquetTable,
    of_txn: &'static [Described],
    own: &'static [Described],
}

impl ChainTable {
    fn create(
        name: &str,
        of_txn: &'static [Described],
        own: &'static [Described],
        out: &mut dyn TableSink,
    ) -> io::Result<Self> {
        let null = &Value::Null;
        let example = ChainRow { parts: [(null, &OF_BLOCK), (null, of_txn), (null, own)] };
        let columns = RowColumns::new(&example, TableSetup::default());
        Ok(Self { table: ParquetTable::create(columns, name, TIME, out)?, of_txn, own })
    }

    fn push(&mut self, nanos: u64, [block, txn, own]: [&Value; 3], out: &mut dyn TableSink) -> io::Result<()> {
        let row = ChainRow { parts: [(block, &OF_BLOCK), (txn, self.of_txn), (own, self.own)] };
        self.table.push(nanos, &row, out).map(drop)
    }
}

/// The tables.
struct ChainTables {
    blocks: ChainTable,
    transactions: ChainTable,
    logs: ChainTable,
    call_frames: ChainTable,
    accesses: ChainTable,
}

/// Writes the tables.
pub(crate) fn write(capture: &CaptureFile, out: &mut dyn TableSink) -> io::Result<()> {
    let Ok(headers) = Blocks::of_capture(capture, Wanted::HEADERS) else { return Ok(()) };
    let Ok(blocks) = Blocks::of_capture(capture, Wanted::ALL) else { return Ok(()) };
    let mut states = LastStates::from_blocks(headers);
    let mut tables = ChainTables {
        blocks: ChainTable::create("blocks", &[], BLOCKS, out)?,
        transactions: ChainTable::create("transactions", &OF_TXN, TRANSACTIONS, out)?,
        logs: ChainTable::create(names_of_logs(capture).1, &OF_TXN, LOGS, out)?,
        call_frames: ChainTable::create("call_frames", &OF_TXN, CALL_FRAMES, out)?,
        accesses: ChainTable::create("accesses", &OF_TXN, ACCESSES, out)?,
    };
    for (block, state) in blocks.filter_map(|update| states.take(update)) {
        let mut value = serde_json::to_value(json::block(&block, Some(state)))?;
        add_times(&mut value, &block);
        tables.push(block.start_epoch_nanos, &value, out)?;
    }
    let ChainTables { blocks, transactions, logs, call_frames, accesses } = tables;
    [blocks, transactions, logs, call_frames, accesses].iter_mut().try_for_each(|table| table.table.flush(out))
}

/// Adds the times that JSON has not: those from a begin to an end.
fn add_times(value: &mut Value, block: &Block) {
    value["duration_ns"] = block.end_epoch_nanos.saturating_sub(block.start_epoch_nanos).into();
    for (index, txn) in block.transactions.iter().enumerate() {
        let nanos = txn.enter_epoch_nanos.zip(txn.exit_epoch_nanos).map(|(enter, exit)| exit.saturating_sub(enter));
        value["transactions"][index]["evm_ns"] = nanos.into();
    }
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

impl ChainTables {
    fn push(&mut self, nanos: u64, block: &Value, out: &mut dyn TableSink) -> io::Result<()> {
        let null = &Value::Null;
        self.blocks.push(nanos, [block, null, block], out)?;
        for txn in list(block, "transactions") {
            self.transactions.push(nanos, [block, txn, txn], out)?;
            list(txn, "logs").iter().try_for_each(|log| self.logs.push(nanos, [block, txn, log], out))?;
            let mut frames = list(txn, "call_frames").iter();
            frames.try_for_each(|frame| self.call_frames.push(nanos, [block, txn, frame], out))?;
            self.push_accesses(nanos, [block, txn], ("transaction", list(txn, "accesses")), out)?;
        }
        for context in ["prologue", "epilogue"] {
            self.push_accesses(nanos, [block, null], (context, list(block, context)), out)?;
        }
        Ok(())
    }

    /// A row for each account, and one for each of its storage slots.
    fn push_accesses(
        &mut self,
        nanos: u64,
        [block, txn]: [&Value; 2],
        (context, accounts): (&str, &[Value]),
        out: &mut dyn TableSink,
    ) -> io::Result<()> {
        for account in accounts {
            let place = |own: &[&str], from: &Value, is_transient: Option<bool>| {
                let mut row = Value::Null;
                own.iter().for_each(|name| row[*name] = from[*name].clone());
                ["index", "address"].iter().for_each(|name| row["account"][*name] = account[*name].clone());
                row["context"] = context.into();
                row["is_transient"] = is_transient.into();
                row
            };
            let own = ["balance", "balance_after", "nonce", "nonce_after"];
            self.accesses.push(nanos, [block, txn, &place(&own, account, None)], out)?;
            for (name, is_transient) in [("storage", false), ("transient", true)] {
                for slot in list(account, name) {
                    self.accesses.push(
                        nanos,
                        [block, txn, &place(&["key", "before", "after"], slot, Some(is_transient))],
                        out,
                    )?;
                }
            }
        }
        Ok(())
    }
}
