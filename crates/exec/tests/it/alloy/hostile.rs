//! Values that no node should write: a conversion gives a value or an error, and never panics.

use super::{assert_same_header, assert_same_log, computed_hash, strategies};
use eventring_exec::Block;
use eventring_exec::alloy::{self, ConversionError};
use proptest::test_runner::{Config, TestRunner};
use serde_json::to_value;
use std::cell::Cell;

/// Converts a block and its transactions, and does with the results what programs do.
/// Returns for the header, transactions, receipts and logs whether there is a value.
fn convert(block: &Block) -> [Vec<bool>; 4] {
    let mut found: [Vec<bool>; 4] = Default::default();
    let mut note = |kind: usize, error: Option<ConversionError>| {
        found[kind].push(error.is_none());
        if let Some(error) = error {
            let text = error.to_string();
            assert!(text.contains(": found ") && text.contains(", expected "), "{text}");
        }
    };
    let header = alloy::header(block);
    if let Ok(header) = &header {
        assert_eq!(header.inner.extra_data.len() as u64, block.start.eth_block_input.extra_data_length.min(32));
        if block.is_complete {
            assert_same_header(block, header);
        }
    }
    note(0, header.err());
    for txn in &block.transactions {
        let transaction = alloy::transaction(block, txn);
        if let Ok(transaction) = &transaction {
            computed_hash(transaction.inner.inner());
            to_value(transaction).unwrap();
        }
        note(1, transaction.err());
        let receipt = alloy::receipt(block, txn);
        if let Ok(receipt) = &receipt {
            to_value(receipt).unwrap();
        }
        note(2, receipt.err());
        for log in &txn.logs {
            let converted = alloy::log(block, txn, log);
            if converted.is_ok() {
                assert_same_log(block, txn, log);
            }
            note(3, converted.err());
        }
    }
    found
}

#[test]
fn any_values_become_values_or_errors() {
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let counts: [[Cell<u32>; 2]; 4] = Default::default();
    let result = TestRunner::new(config).run(&strategies::block(), |block| {
        for (counts, found) in counts.iter().zip(convert(&block)) {
            for is_value in found {
                let count = &counts[usize::from(is_value)];
                count.set(count.get() + 1);
            }
        }
        Ok(())
    });
    result.unwrap();
    // A control: each conversion has given values and errors.
    assert!(counts.iter().flatten().all(|count| count.get() >= 100), "{counts:?}");
}
