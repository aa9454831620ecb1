//! The tables of blocks in Parquet files, joined by DuckDB, have what `blocks` prints.

use crate::consumers;
use crate::fixtures::*;

/// Two invented blocks with events of every type; the second one is rejected.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");

#[test]
fn tables_of_blocks_joined_by_sql_have_what_the_verb_prints() {
    let recording = real_data::path("emn-30b-15m.snapshot.zst").unwrap_or_else(|| KEPT.into());
    let (_dir, [tables]) = places(["tables"]);
    run!("export", &recording, "--format", "parquet", "-o", &tables).ends(0);
    let Some(found) = consumers::read("parquet_blocks.py", &tables) else { return };
    let blocks = run!("exec", "blocks", &recording, "--json", "--with", "frames,accesses").json_lines();
    let rows = |rows: Vec<Value>| Value::from(rows);
    let of_blocks = blocks.iter().map(|block| {
        json!([block["number"], block["hash"], block["id"], block["state"], block["gas_used"], block["complete"]])
    });
    assert_eq!(found["blocks"], rows(of_blocks.collect()));
    let txns: Vec<(&Value, &Value)> =
        blocks.iter().flat_map(|block| block["transactions"].list().iter().map(move |txn| (block, txn))).collect();
    let of_txns = txns.iter().map(|(block, txn)| {
        let names = ["index", "hash", "sender", "to", "status", "gas_used", "cumulative_gas_used"];
        let mut row = vec![block["number"].clone()];
        row.extend(names.map(|name| txn[name].clone()));
        Value::from(row)
    });
    assert_eq!(found["transactions"], rows(of_txns.collect()));
    let logs = txns.iter().flat_map(|(_, txn)| txn["logs"].list().iter().map(move |log| (txn, log)));
    let of_logs =
        logs.map(|(txn, log)| json!([txn["hash"], log["index"], log["address"], log["topics"][0], log["data"]]));
    assert_eq!(found["logs"], rows(of_logs.collect()));
    let frames: usize = txns.iter().map(|(_, txn)| txn["call_frames"].list().len()).sum();
    let lists = blocks.iter().flat_map(|block| [&block["prologue"], &block["epilogue"]]);
    let accounts: Vec<&Value> =
        lists.chain(txns.iter().map(|(_, txn)| &txn["accesses"])).filter_map(Value::as_array).flatten().collect();
    let slots: usize = accounts
        .iter()
        .map(|account| ["storage", "transient"].map(|list| account[list].list().len()))
        .map(|[storage, transient]| storage + transient)
        .sum();
    assert_eq!(
        (&found["frames"], &found["accounts"], &found["slots"]),
        (&frames.into(), &accounts.len().into(), &slots.into())
    );
}
