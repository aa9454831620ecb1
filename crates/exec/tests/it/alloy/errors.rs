//! What an error says, and what the events say if a parity is none.

use super::made::{block, txn};
use crate::{events, kept};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::EventType;
use eventring::schema::exec::{Bytes32, ExecEvent, TxnHeader, U256};
use eventring_exec::alloy::{self, ConversionError};
use eventring_exec::{Block, BlockBuilder, ChainEvent, Dialect, Outcome, Txn, Wanted};

/// Converts everything. Returns the first error.
fn convert(block: &Block, txn: &Txn) -> Result<(), ConversionError> {
    alloy::header(block)?;
    alloy::transaction(block, txn)?;
    alloy::receipt(block, txn)?;
    Ok(())
}

#[test]
fn an_error_says_what_was_found_and_what_was_expected() {
    type Change = fn(&mut Block, &mut Txn);
    fn header(txn: &mut Txn) -> &mut TxnHeader {
        &mut txn.start.as_mut().unwrap().header
    }
    let cases: &[(u8, Change, &str)] = &[
        (2, |_, _| {}, "no error"),
        (
            2,
            |block, _| block.outcome = Outcome::Unknown,
            "block 30000000: found no BLOCK_END, expected a block that was executed to its end",
        ),
        (
            2,
            |block, _| block.start.eth_block_input.base_fee_per_gas = U256::from_limbs([0, 1, 0, 0]),
            "block 30000000: found the base fee 18446744073709551616, expected at most 64 bits",
        ),
        (2, |_, txn| txn.start = None, "transaction 3: found no TXN_HEADER_START, expected what the sender signed"),
        (
            2,
            |_, txn| header(txn).txn_type = 5,
            "transaction 3: found type 5, expected type 0 (legacy), 1 (EIP-2930), 2 (EIP-1559), 3 (EIP-4844) or 4 (EIP-7702)",
        ),
        (
            2,
            |_, txn| header(txn).txn_type = 255,
            "transaction 3: found type 255, expected type 0 (legacy), 1 (EIP-2930), 2 (EIP-1559), 3 (EIP-4844) or 4 (EIP-7702)",
        ),
        (
            2,
            |_, txn| header(txn).chain_id = U256::from_limbs([0, 1, 0, 0]),
            "transaction 3: found the chain 18446744073709551616, expected at most 64 bits",
        ),
        (
            0,
            |_, txn| header(txn).max_fee_per_gas = U256::MAX,
            "transaction 3: found the price MAX, expected at most 128 bits",
        ),
        (
            2,
            |_, txn| header(txn).max_priority_fee_per_gas = U256::from_limbs([0, 0, 1, 0]),
            "transaction 3: found the tip 340282366920938463463374607431768211456, expected at most 128 bits",
        ),
        (
            3,
            |_, txn| header(txn).max_fee_per_blob_gas = U256::MAX,
            "transaction 3: found the price of blobs MAX, expected at most 128 bits",
        ),
        (
            3,
            |_, txn| header(txn).is_contract_creation = true,
            "transaction 3: found a creation of type 3, expected a call",
        ),
        (
            4,
            |_, txn| header(txn).is_contract_creation = true,
            "transaction 3: found a creation of type 4, expected a call",
        ),
        (2, |_, txn| txn.start.as_mut().unwrap().input.clear(), "transaction 3: found 0 bytes of input, expected 3"),
        (
            2,
            |_, txn| txn.access_list.clear(),
            "transaction 3: found 0 entries of the access list, expected 1, numbered from 0",
        ),
        (
            2,
            |_, txn| txn.access_list[0].index = 1,
            "transaction 3: found 1 entries of the access list, expected 1, numbered from 0",
        ),
        (
            4,
            |_, txn| txn.authorization_list.clear(),
            "transaction 3: found 0 entries of the authorization list, expected 1, numbered from 0",
        ),
        (
            3,
            |_, txn| txn.start.as_mut().unwrap().blob_versioned_hashes.truncate(1),
            "transaction 3: found 1 blob hashes, expected 2",
        ),
        (2, |_, txn| header(txn).txn_type = 0, "transaction 3: found an access list, expected none in type 0"),
        (4, |_, txn| header(txn).txn_type = 2, "transaction 3: found an authorization list, expected none in type 2"),
        (3, |_, txn| header(txn).txn_type = 2, "transaction 3: found blob hashes, expected none in type 2"),
        (2, |_, txn| txn.receipt = None, "transaction 3: found no TXN_EVM_OUTPUT, expected a receipt"),
        (
            2,
            |_, txn| txn.receipt.as_mut().unwrap().cumulative_gas_used = None,
            "transaction 3: found no cumulative gas, expected the receipts of all earlier transactions",
        ),
        (
            2,
            |_, txn| txn.receipt.as_mut().unwrap().effective_gas_price = Some(U256::MAX),
            "transaction 3: found the price paid MAX, expected at most 128 bits",
        ),
        (2, |_, txn| txn.logs.clear(), "transaction 3: found 0 logs, expected 1, numbered from 0"),
        (
            2,
            |_, txn| txn.logs[0].topics = vec![Bytes32::ZERO; 5],
            "transaction 3: found 5 topics of log 0, expected at most 4",
        ),
    ];
    for (txn_type, change, expected) in cases {
        let (mut block, mut txn) = (block([1; 32]), txn(*txn_type));
        change(&mut block, &mut txn);
        let text = convert(&block, &txn).map_or_else(|error| error.to_string(), |()| "no error".into());
        assert_eq!(text.replace(&U256::MAX.to_string(), "MAX"), *expected);
    }
}

#[test]
fn a_parity_of_seven_is_no_parity() {
    // A control: everything is read, and then it is found that the invented list does not belong to the type.
    assert_eq!(first_error_of_kept(|_, _| ()), "transaction 0: found an authorization list, expected none in type 2");
    // The offset of `y_parity` in each payload.
    let cases = [
        (ExecEvent::TxnHeaderStart, 56 + 240, "found no TXN_HEADER_START, expected what the sender signed"),
        (ExecEvent::TxnAuthListEntry, 8 + 64, "found 0 entries of the authorization list, expected 1, numbered from 0"),
    ];
    for (kind, offset, expected) in cases {
        let error = first_error_of_kept(|event, payload| {
            if event.event_type == kind.code() {
                assert!(payload[offset] < 2);
                payload[offset] = 7;
            }
        });
        assert_eq!(error, format!("transaction 0: {expected}"));
    }
}

/// Builds the blocks of a recording whose payloads are changed. Returns why the first transaction cannot be converted.
fn first_error_of_kept(change: impl Fn(&Descriptor, &mut [u8])) -> String {
    let mut builder = BlockBuilder::new(Dialect::TODAY, Wanted::ALL);
    for (event, mut payload) in events(&kept()) {
        change(&event, &mut payload);
        builder.push(&event, || PayloadRead::Valid(&payload));
    }
    builder.end();
    let mut found = std::iter::from_fn(|| builder.pop());
    let block = found.find_map(|found| if let ChainEvent::Block(block) = found { Some(block) } else { None }).unwrap();
    alloy::envelope(&block.transactions[0]).unwrap_err().to_string()
}
