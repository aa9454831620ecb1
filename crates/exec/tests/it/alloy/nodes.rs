//! The JSON of a transaction and of a receipt is what nodes tell (`eth_getTransactionByHash`,
//! `eth_getTransactionReceipt`).

use super::made::{block, txn};
use eventring::schema::exec::{Address, U256};
use eventring_exec::alloy;
use serde_json::{json, to_value};

fn bytes(byte: u8, count: usize) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(count))
}

#[test]
fn a_transaction_is_told_with_its_block() {
    let expected = json!({
        "type": "0x2", "chainId": "0x8f", "nonce": "0x5", "gas": "0x186a0", "maxFeePerGas": "0x64",
        "maxPriorityFeePerGas": "0x3", "to": bytes(7, 20), "value": bytes(255, 32),
        "accessList": [{ "address": bytes(6, 20), "storageKeys": [bytes(5, 32)] }], "input": "0x010203",
        "r": "0x15", "s": "0x16", "yParity": "0x1", "v": "0x1", "hash": bytes(3, 32), "blockHash": bytes(1, 32),
        "blockNumber": "0x1c9c380", "transactionIndex": "0x3", "from": bytes(2, 20), "gasPrice": "0xd",
        "blockTimestamp": "0x68e77800",
    });
    assert_eq!(to_value(alloy::transaction(&block([1; 32]), &txn(2)).unwrap()).unwrap(), expected);
}

#[test]
fn a_receipt_is_told_with_its_block_and_its_logs() {
    let log = json!({
        "address": bytes(0, 20), "topics": [bytes(4, 32)], "data": "0x01", "blockHash": bytes(1, 32),
        "blockNumber": "0x1c9c380", "blockTimestamp": "0x68e77800", "transactionHash": bytes(3, 32),
        "transactionIndex": "0x3", "logIndex": "0x4", "removed": false,
    });
    let expected = json!({
        "type": "0x2", "status": "0x1", "cumulativeGasUsed": "0x11170", "logs": [log], "logsBloom": bytes(0, 256),
        "transactionHash": bytes(3, 32), "transactionIndex": "0x3", "blockHash": bytes(1, 32), "blockNumber": "0x1c9c380",
        "gasUsed": "0xc350", "effectiveGasPrice": "0xd", "from": bytes(2, 20), "to": bytes(7, 20), "contractAddress": null,
    });
    assert_eq!(to_value(alloy::receipt(&block([1; 32]), &txn(2)).unwrap()).unwrap(), expected);
}

#[test]
fn a_receipt_has_the_contract_and_no_price_that_does_not_fit() {
    let mut txn = txn(2);
    let change = txn.receipt.as_mut().unwrap();
    change.contract_address = Some(Address([1; 20]));
    let receipt = alloy::receipt(&block([1; 32]), &txn).unwrap();
    assert_eq!(receipt.contract_address, Some([1; 20].into()));
    txn.receipt.as_mut().unwrap().effective_gas_price = Some(U256::from_limbs([0, 0, 1, 0]));
    let error = alloy::receipt(&block([1; 32]), &txn).unwrap_err().to_string();
    assert_eq!(
        error,
        "transaction 3: found the price paid 340282366920938463463374607431768211456, expected at most 128 bits"
    );
}
