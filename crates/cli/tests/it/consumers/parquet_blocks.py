"""Joins the tables of blocks with SQL, and prints what comes out."""

import json
import sys

import duckdb

directory = sys.argv[1]
database = duckdb.connect()
for table in ["blocks", "transactions", "logs", "call_frames", "accesses"]:
    database.sql(f"create view {table} as select * from '{directory}/{table}.parquet'")


def all_of(query):
    return [list(row) for row in database.sql(query).fetchall()]


print(
    json.dumps(
        {
            "blocks": all_of("select block_number, block_hash, block_id, state, gas_used, complete from blocks order by start_ns"),
            "transactions": all_of(
                """select b.block_number, t.txn_index, t.txn_hash, t.sender, t."to", t.status, t.gas_used, t.cumulative_gas_used
                from blocks b join transactions t using (block_id) order by b.block_number, t.txn_index"""
            ),
            "logs": all_of(
                """select t.txn_hash, l.log_index, l.address, l.topic0, l.data
                from transactions t join logs l using (block_id, txn_index) order by t.block_number, t.txn_index, l.log_index"""
            ),
            "frames": all_of("select count(*) from transactions join call_frames using (block_id, txn_index)")[0][0],
            "slots": all_of("select count(*) from accesses where key is not null")[0][0],
            "accounts": all_of("select count(*) from accesses where key is null")[0][0],
        }
    )
)
