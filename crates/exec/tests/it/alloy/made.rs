//! Transactions of the types that the recording does not have, and later headers.

use super::{again, assert_same_header, computed_hash};
use eventring::schema::exec::{
    Address, AuthListEntry, BlockEnd, Bytes8, Bytes32, EthBlockInput, TxnAuthListEntry, TxnHeader, U256,
};
use eventring_exec::alloy;
use eventring_exec::alloy::alloy_consensus::{Header, TxEip4844, TxEip7702, TxEnvelope, TxType};
use eventring_exec::alloy::alloy_rpc_types_eth::{AccessList, AccessListItem, Authorization};
use eventring_exec::{AccessListEntry, Block, Log, Outcome, Receipt, Txn, TxnStart};

/// Returns a transaction of a type that has everything that the type can have.
pub(super) fn txn(txn_type: u8) -> Txn {
    let blobs = if txn_type == 3 { vec![Bytes32([1; 32]), Bytes32([2; 32])] } else { vec![] };
    let signed = AuthListEntry {
        chain_id: 0_u64.into(),
        address: Address([9; 20]),
        nonce: 4,
        y_parity: true,
        r: 11_u64.into(),
        s: 12_u64.into(),
    };
    let authorization =
        TxnAuthListEntry { entry: signed, authority: Address([8; 20]), is_valid_authority: true, ..Default::default() };
    let header = TxnHeader {
        txn_type,
        chain_id: 143_u64.into(),
        nonce: 5,
        gas_limit: 100_000,
        max_fee_per_gas: 100_u64.into(),
        max_priority_fee_per_gas: 3_u64.into(),
        value: U256::MAX,
        to: Address([7; 20]),
        r: 21_u64.into(),
        s: 22_u64.into(),
        y_parity: true,
        max_fee_per_blob_gas: 6_u64.into(),
        data_length: 3,
        blob_versioned_hash_length: blobs.len() as u32,
        access_list_count: u32::from(txn_type > 0),
        auth_list_count: u32::from(txn_type == 4),
        ..TxnHeader::default()
    };
    let entry = AccessListEntry { index: 0, address: Address([6; 20]), storage_keys: vec![Bytes32([5; 32])] };
    let receipt = Receipt {
        status: true,
        gas_used: 50_000,
        cumulative_gas_used: Some(70_000),
        log_count: 1,
        effective_gas_price: Some(13_u64.into()),
        ..Receipt::default()
    };
    let log = Log { block_index: Some(4), topics: vec![Bytes32([4; 32])], data: vec![1], ..Log::default() };
    Txn {
        index: 3,
        start: Some(TxnStart {
            hash: Bytes32([3; 32]),
            sender: Address([2; 20]),
            header,
            input: vec![1, 2, 3],
            blob_versioned_hashes: blobs,
        }),
        access_list: vec![entry; usize::from(txn_type > 0)],
        authorization_list: vec![authorization; usize::from(txn_type == 4)],
        receipt: Some(receipt),
        logs: vec![log],
        ..Txn::default()
    }
}

/// Returns an executed block with a hash.
pub(super) fn block(hash: [u8; 32]) -> Block {
    let mut extra_data = Bytes32::ZERO;
    extra_data.0[0] = 1;
    let eth_block_input = EthBlockInput {
        number: 30_000_000,
        gas_limit: 200_000_000,
        timestamp: 1_760_000_000,
        extra_data,
        extra_data_length: 32,
        nonce: Bytes8([0; 8]),
        base_fee_per_gas: 100_000_000_000_u64.into(),
        withdrawals_root: Bytes32([0x56; 32]),
        txn_count: 4,
        ..EthBlockInput::default()
    };
    let end = BlockEnd { eth_block_hash: Bytes32(hash), gas_used: 70_000, ..BlockEnd::default() };
    let mut block = Block { outcome: Outcome::Executed(Box::new(end)), is_complete: true, ..Block::default() };
    block.start.eth_block_input = eth_block_input;
    block
}

#[test]
fn a_blob_transaction_has_its_blobs_and_their_price() {
    let converted = alloy::envelope(&txn(3)).unwrap();
    let expected = TxEip4844 {
        chain_id: 143,
        nonce: 5,
        gas_limit: 100_000,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 3,
        to: [7; 20].into(),
        value: alloy_primitives::U256::MAX,
        access_list: list(),
        blob_versioned_hashes: vec![[1; 32].into(), [2; 32].into()],
        max_fee_per_blob_gas: 6,
        input: vec![1, 2, 3].into(),
    };
    assert_eq!(converted.as_eip4844().unwrap().tx().tx(), &expected);
    assert_eq!(again(&converted).tx_hash().0, [3; 32]);
    let receipt = alloy::receipt(&block([1; 32]), &txn(3)).unwrap();
    assert_eq!((receipt.blob_gas_used, receipt.blob_gas_price), (Some(2 * 131_072), None));
    assert_eq!((receipt.inner.tx_type(), again(&receipt)), (TxType::Eip4844, receipt));
}

#[test]
fn a_delegating_transaction_has_its_authorizations() {
    let converted = alloy::envelope(&txn(4)).unwrap();
    let authorization = Authorization { chain_id: Default::default(), address: [9; 20].into(), nonce: 4 };
    let signature = alloy_primitives::Signature::new(number(11), number(12), true);
    let expected = TxEip7702 {
        chain_id: 143,
        nonce: 5,
        gas_limit: 100_000,
        max_fee_per_gas: 100,
        max_priority_fee_per_gas: 3,
        to: [7; 20].into(),
        value: alloy_primitives::U256::MAX,
        access_list: list(),
        authorization_list: vec![authorization.into_signed(signature)],
        input: vec![1, 2, 3].into(),
    };
    assert_eq!(converted.as_eip7702().unwrap().tx(), &expected);
    assert_eq!(converted.signature(), &alloy_primitives::Signature::new(number(21), number(22), true));
    let receipt = alloy::receipt(&block([1; 32]), &txn(4)).unwrap();
    assert_eq!((receipt.blob_gas_used, receipt.inner.tx_type()), (None, TxType::Eip7702));
}

fn list() -> AccessList {
    AccessList(vec![AccessListItem { address: [6; 20].into(), storage_keys: vec![[5; 32].into()] }])
}

fn number(number: u64) -> alloy_primitives::U256 {
    alloy_primitives::U256::from(number)
}

#[test]
fn each_type_is_the_type_of_the_transaction_and_of_its_receipt() {
    let block = block([1; 32]);
    let mut hashes = Vec::new();
    for code in 0..5 {
        let (txn, expected) = (txn(code), TxType::try_from(code).unwrap());
        let transaction = alloy::transaction(&block, &txn).unwrap();
        let envelope: &TxEnvelope = transaction.inner.inner();
        assert_eq!((envelope.tx_type(), envelope.tx_hash().0), (expected, [3; 32]));
        assert_eq!(alloy::receipt(&block, &txn).unwrap().inner.tx_type(), expected);
        assert_eq!((transaction.effective_gas_price, transaction.block_number), (Some(13), Some(30_000_000)));
        hashes.push(computed_hash(envelope));
    }
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), 5);
}

#[test]
fn later_fields_are_in_a_header_if_its_hash_proves_them() {
    let said = alloy::consensus_header(&block([1; 32])).unwrap();
    assert_eq!((said.blob_gas_used, said.requests_hash), (None, None));
    assert_ne!(said.hash_slow().0, [1; 32]);
    let cancun = Header {
        blob_gas_used: Some(0),
        excess_blob_gas: Some(0),
        parent_beacon_block_root: Some([0; 32].into()),
        ..said.clone()
    };
    let prague = Header { requests_hash: Some([0; 32].into()), ..cancun.clone() };
    for expected in [&said, &cancun, &prague] {
        let block = block(expected.hash_slow().0);
        assert_eq!(alloy::consensus_header(&block).as_ref(), Ok(expected));
        assert_same_header(&block, &alloy::header(&block).unwrap());
    }
    // A hash that proves nothing.
    assert_same_header(&block([1; 32]), &alloy::header(&block([1; 32])).unwrap());
    // Other fields cannot be known.
    let blobs = Header { blob_gas_used: Some(131_072), ..prague };
    assert_eq!(alloy::consensus_header(&block(blobs.hash_slow().0)), Ok(said));
}

#[test]
fn a_legacy_transaction_without_a_chain_is_from_before_they_had_one() {
    let mut legacy = txn(0);
    let chain = |txn: &Txn| alloy::envelope(txn).unwrap().as_legacy().unwrap().tx().chain_id;
    assert_eq!(chain(&legacy), Some(143));
    legacy.start.as_mut().unwrap().header.chain_id = U256::ZERO;
    assert_eq!(chain(&legacy), None);
    let mut creation = txn(2);
    creation.start.as_mut().unwrap().header.is_contract_creation = true;
    assert!(alloy::envelope(&creation).unwrap().as_eip1559().unwrap().tx().to.is_create());
    assert_eq!(alloy::receipt(&block([1; 32]), &creation).unwrap().to, None);
}
