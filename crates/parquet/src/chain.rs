//! The tables of execution events as blocks: `blocks`, `transactions`, `logs`, `call_frames`, `accesses`. Each row has
//! the block's number and hash, and the rows of transactions have the transaction's hash. Bytes are hex with `0x`, and
//! numbers that may be larger than 64 bits are decimal texts.

use crate::columns::{Column, ValueColumn, amount};
use crate::table::{ParquetTable, RowColumns};
use crate::table_sink::TableSink;
use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use eventring::schema::Hex;
use eventring_capture::{CaptureFile, CapturedRing};
use eventring_exec::{AccountAccess, Block, Blocks, CommitState, LastStates, StorageAccess, Txn, Wanted};
use serde_json::Value;
use std::fmt::Display;
use std::io;

/// The column by which rows are sorted: when the block was executed.
const TIME: &str = "start_ns";

/// A column: its name and its type.
type Described = (&'static str, DataType);

/// The columns with which each row begins.
const OF_BLOCK: [Described; 4] = [
    (TIME, DataType::Int64),
    ("block_number", DataType::UInt64),
    ("block_hash", DataType::Utf8),
    ("block_id", DataType::Utf8),
];
const OF_TXN: [Described; 2] = [("txn_index", DataType::UInt64), ("txn_hash", DataType::Utf8)];

/// Returns the names of the table of log records, and of that of the logs of blocks. Without spans the name `logs` is
/// that of blocks.
pub(super) fn names_of_logs(capture: &CaptureFile) -> (&'static str, &'static str) {
    let has = |is_it: fn(&CapturedRing) -> bool| capture.rings().iter().any(is_it);
    if has(CapturedRing::is_exec) && !has(CapturedRing::is_perf) {
        ("log_records", "logs")
    } else {
        ("logs", "txn_logs")
    }
}

fn text(value: &impl Display) -> Value {
    Value::String(value.to_string())
}

fn hex(bytes: &[u8]) -> Value {
    Value::String(format!("0x{}", Hex(bytes)))
}

/// Columns that are described by a list.
struct ChainColumns(Vec<ChainColumn>);

struct ChainColumn {
    name: &'static str,
    values: ValueColumn,
}

impl Column for ChainColumn {
    fn fields(&mut self, name: &str) -> Vec<Field> {
        self.values.builder().fields(name)
    }

    fn take(&mut self) -> io::Result<Vec<ArrayRef>> {
        self.values.builder().take()
    }
}

impl RowColumns for ChainColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        self.0.iter_mut().map(|column| (column.name, column as &mut dyn Column)).collect()
    }
}

/// A table, and what its rows begin with.
struct ChainTable(ParquetTable<ChainColumns>);

impl ChainTable {
    fn create(name: &str, described: &[&[Described]], out: &mut dyn TableSink) -> io::Result<Self> {
        let column = |(name, ty): &Described| ChainColumn { name, values: ValueColumn::new(ty) };
        let columns = described.iter().copied().flatten().map(column).collect();
        ParquetTable::create(ChainColumns(columns), name, TIME, out).map(Self)
    }

    fn push(&mut self, nanos: u64, row: Vec<Value>, out: &mut dyn TableSink) -> io::Result<()> {
        let mut bytes = 0;
        for (column, cell) in self.0.columns.0.iter_mut().zip(row) {
            bytes += 8;
            match (&mut column.values, cell) {
                (ValueColumn::Int(column), Value::Number(number)) => column.append_option(number.as_u64().map(amount)),
                (ValueColumn::Uint(column), Value::Number(number)) => column.append_option(number.as_u64()),
                (ValueColumn::Bool(column), Value::Bool(value)) => column.append_value(value),
                (ValueColumn::Text(column), Value::String(text)) => {
                    bytes += text.len() as u64;
                    column.append_value(text);
                }
                (column, _) => {
                    let rows = column.builder().len();
                    column.pad(rows + 1);
                }
            }
        }
        self.0.end_row(nanos, bytes, out)
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
pub(super) fn write(capture: &CaptureFile, out: &mut dyn TableSink) -> io::Result<()> {
    let Ok(headers) = Blocks::of_capture(capture, Wanted::HEADERS) else { return Ok(()) };
    let Ok(blocks) = Blocks::of_capture(capture, Wanted::ALL) else { return Ok(()) };
    let mut states = LastStates::of(headers);
    let mut tables = ChainTables::create(names_of_logs(capture).1, out)?;
    for (block, state) in blocks.filter_map(|update| states.take(update)) {
        tables.push(&block, state, out)?;
    }
    for table in [tables.blocks, tables.transactions, tables.logs, tables.call_frames, tables.accesses].iter_mut() {
        table.0.flush(out)?;
    }
    Ok(())
}

impl ChainTables {
    fn create(logs_name: &str, out: &mut dyn TableSink) -> io::Result<Self> {
        use DataType::{Boolean, UInt64, Utf8};
        let blocks: &[Described] = &[
            ("round", UInt64),
            ("timestamp", UInt64),
            ("gas_used", UInt64),
            ("gas_limit", UInt64),
            ("base_fee_per_gas", Utf8),
            ("beneficiary", Utf8),
            ("parent_hash", Utf8),
            ("state_root", Utf8),
            ("state", Utf8),
            ("complete", Boolean),
            ("reexecution", Boolean),
            ("problems", UInt64),
            ("transactions", UInt64),
            ("duration_ns", UInt64),
        ];
        let transactions: &[Described] = &[
            ("sender", Utf8),
            ("to", Utf8),
            ("contract_address", Utf8),
            ("status", UInt64),
            ("gas_used", UInt64),
            ("cumulative_gas_used", UInt64),
            ("effective_gas_price", Utf8),
            ("type", UInt64),
            ("nonce", UInt64),
            ("value", Utf8),
            ("gas_limit", UInt64),
            ("max_fee_per_gas", Utf8),
            ("max_priority_fee_per_gas", Utf8),
            ("input", Utf8),
            ("logs", UInt64),
            ("call_frames", UInt64),
            ("evm_ns", UInt64),
        ];
        let logs: &[Described] = &[
            ("log_index", UInt64),
            ("block_log_index", UInt64),
            ("address", Utf8),
            ("topic0", Utf8),
            ("topic1", Utf8),
            ("topic2", Utf8),
            ("topic3", Utf8),
            ("data", Utf8),
        ];
        let call_frames: &[Described] = &[
            ("frame_index", UInt64),
            ("depth", UInt64),
            ("opcode", UInt64),
            ("caller", Utf8),
            ("call_target", Utf8),
            ("value", Utf8),
            ("gas", UInt64),
            ("gas_used", UInt64),
            ("evmc_status", Utf8),
            ("input", Utf8),
            ("return", Utf8),
        ];
        let accesses: &[Described] = &[
            ("access_index", UInt64),
            ("address", Utf8),
            ("context", Utf8),
            ("balance", Utf8),
            ("balance_after", Utf8),
            ("nonce", UInt64),
            ("nonce_after", UInt64),
            ("key", Utf8),
            ("is_transient", Boolean),
            ("before", Utf8),
            ("after", Utf8),
        ];
        Ok(Self {
            blocks: ChainTable::create("blocks", &[&OF_BLOCK, blocks], out)?,
            transactions: ChainTable::create("transactions", &[&OF_BLOCK, &OF_TXN, transactions], out)?,
            logs: ChainTable::create(logs_name, &[&OF_BLOCK, &OF_TXN, logs], out)?,
            call_frames: ChainTable::create("call_frames", &[&OF_BLOCK, &OF_TXN, call_frames], out)?,
            accesses: ChainTable::create("accesses", &[&OF_BLOCK, &OF_TXN, accesses], out)?,
        })
    }

    fn push(&mut self, block: &Block, state: CommitState, out: &mut dyn TableSink) -> io::Result<()> {
        let (nanos, input, end) = (block.start_epoch_nanos, &block.start.eth_block_input, block.end());
        let of_block = || {
            let hash = end.map(|end| text(&end.eth_block_hash));
            vec![nanos.into(), block.number().into(), hash.into(), text(&block.tag().id)]
        };
        let mut row = of_block();
        row.extend([
            block.start.round.into(),
            input.timestamp.into(),
            end.map(|end| end.gas_used).into(),
            input.gas_limit.into(),
            text(&input.base_fee_per_gas),
            text(&input.beneficiary),
            text(&block.start.parent_eth_hash),
            end.map(|end| text(&end.state_root)).into(),
            text(&state),
            block.is_complete.into(),
            block.is_reexecution.into(),
            (block.problems.len() as u64).into(),
            (block.transactions.len() as u64).into(),
            block.end_epoch_nanos.saturating_sub(nanos).into(),
        ]);
        self.blocks.push(nanos, row, out)?;
        for txn in &block.transactions {
            let of_txn = || {
                let mut row = of_block();
                row.push(txn.index.into());
                row.push(txn.start.as_ref().map(|start| text(&start.hash)).into());
                row
            };
            self.push_txn(nanos, txn, of_txn, out)?;
        }
        let no_txn = || {
            let mut row = of_block();
            row.extend([Value::Null, Value::Null]);
            row
        };
        for (context, list) in [("prologue", &block.prologue), ("epilogue", &block.epilogue)] {
            list.iter().try_for_each(|access| self.push_access(nanos, access, context, no_txn, out))?;
        }
        Ok(())
    }

    fn push_txn(
        &mut self,
        nanos: u64,
        txn: &Txn,
        of_txn: impl Fn() -> Vec<Value>,
        out: &mut dyn TableSink,
    ) -> io::Result<()> {
        let (start, receipt) = (txn.start.as_ref(), txn.receipt.as_ref());
        let header = start.map(|start| &start.header);
        let mut row = of_txn();
        row.extend([
            start.map(|start| text(&start.sender)).into(),
            header.filter(|header| !header.is_contract_creation).map(|header| text(&header.to)).into(),
            receipt.and_then(|receipt| receipt.contract_address).map(|address| text(&address)).into(),
            receipt.map(|receipt| u8::from(receipt.status)).into(),
            receipt.map(|receipt| receipt.gas_used).into(),
            receipt.and_then(|receipt| receipt.cumulative_gas_used).into(),
            receipt.and_then(|receipt| receipt.effective_gas_price).map(|price| text(&price)).into(),
            header.map(|header| header.txn_type).into(),
            header.map(|header| header.nonce).into(),
            header.map(|header| text(&header.value)).into(),
            header.map(|header| header.gas_limit).into(),
            header.map(|header| text(&header.max_fee_per_gas)).into(),
            header.map(|header| text(&header.max_priority_fee_per_gas)).into(),
            start.map(|start| hex(&start.input)).into(),
            (txn.logs.len() as u64).into(),
            txn.call_frames.as_ref().map(|frames| frames.len() as u64).into(),
            txn.enter_epoch_nanos.zip(txn.exit_epoch_nanos).map(|(enter, exit)| exit.saturating_sub(enter)).into(),
        ]);
        self.transactions.push(nanos, row, out)?;
        for log in &txn.logs {
            let topic = |at: usize| Value::from(log.topics.get(at).map(text));
            let mut row = of_txn();
            row.extend([log.index.into(), log.block_index.into(), text(&log.address)]);
            row.extend((0..4).map(topic));
            row.push(hex(&log.data));
            self.logs.push(nanos, row, out)?;
        }
        for frame in txn.call_frames.iter().flatten() {
            let call = &frame.call;
            let mut row = of_txn();
            row.extend([
                call.index.into(),
                call.depth.into(),
                call.opcode.into(),
                text(&call.caller),
                text(&call.call_target),
                text(&call.value),
                call.gas.into(),
                call.gas_used.into(),
                text(&call.evmc_status),
                hex(&frame.input),
                hex(&frame.return_value),
            ]);
            self.call_frames.push(nanos, row, out)?;
        }
        for access in txn.accesses.iter().flatten() {
            self.push_access(nanos, access, "transaction", &of_txn, out)?;
        }
        Ok(())
    }

    /// A row for the account, and one for each of its storage slots.
    fn push_access(
        &mut self,
        nanos: u64,
        access: &AccountAccess,
        context: &str,
        begin: impl Fn() -> Vec<Value>,
        out: &mut dyn TableSink,
    ) -> io::Result<()> {
        let account = &access.account;
        let of_account = || {
            let mut row = begin();
            row.extend([account.index.into(), text(&account.address), text(&context)]);
            row
        };
        let mut row = of_account();
        row.extend([
            text(&account.prestate.balance),
            account.is_balance_modified.then(|| text(&account.modified_balance)).into(),
            account.prestate.nonce.into(),
            account.is_nonce_modified.then_some(account.modified_nonce).into(),
        ]);
        row.extend((0..4).map(|_| Value::Null));
        self.accesses.push(nanos, row, out)?;
        let mut slots = |slots: &[StorageAccess], is_transient: bool| {
            slots.iter().try_for_each(|slot| {
                let mut row = of_account();
                row.extend((0..4).map(|_| Value::Null));
                row.extend([
                    text(&slot.key),
                    is_transient.into(),
                    text(&slot.start_value),
                    slot.modified.then(|| text(&slot.end_value)).into(),
                ]);
                self.accesses.push(nanos, row, out)
            })
        };
        slots(&access.storage, false)?;
        slots(&access.transient, true)
    }
}
