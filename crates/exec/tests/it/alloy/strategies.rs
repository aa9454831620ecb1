//! Values that no node should write.

use eventring::schema::exec::{
    Address, AuthListEntry, BlockEnd, Bloom256, Bytes32, EthBlockInput, TxnAuthListEntry, TxnHeader, U256,
};
use eventring_exec::{AccessListEntry, Block, Log, Outcome, Receipt, Txn, TxnStart};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns numbers around the limits of 64 and 128 bits, and others. Most are small.
fn wide() -> impl Strategy<Value = U256> {
    const LIMITS: [[u64; 4]; 6] = [
        [u64::MAX, 0, 0, 0],
        [0, 1, 0, 0],
        [u64::MAX, u64::MAX, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1 << 63],
        [u64::MAX; 4],
    ];
    prop_oneof![
        18 => (0_u64..1000).prop_map(U256::from),
        2 => proptest::sample::select(&LIMITS[..]).prop_map(U256::from_limbs),
        1 => any::<[u64; 4]>().prop_map(U256::from_limbs),
    ]
}

fn bytes() -> impl Strategy<Value = Bytes32> {
    prop_oneof![Just(Bytes32::ZERO), any::<[u8; 32]>().prop_map(Bytes32)]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..100, 1 => any::<u64>()]
}

fn txn_header() -> impl Strategy<Value = TxnHeader> {
    let txn_type = prop_oneof![8 => 0_u8..5, 1 => any::<u8>()];
    (txn_type, vec(wide(), 7), vec(number(), 2), any::<([u8; 20], bool)>(), proptest::bool::weighted(0.2)).prop_map(
        |(txn_type, wide, numbers, (to, y_parity), is_contract_creation)| TxnHeader {
            txn_type,
            chain_id: wide[0],
            nonce: numbers[0],
            gas_limit: numbers[1],
            max_fee_per_gas: wide[1],
            max_priority_fee_per_gas: wide[2],
            value: wide[3],
            to: Address(to),
            is_contract_creation,
            r: wide[4],
            s: wide[5],
            y_parity,
            max_fee_per_blob_gas: wide[6],
            ..TxnHeader::default()
        },
    )
}

fn authorization() -> impl Strategy<Value = TxnAuthListEntry> {
    (vec(wide(), 3), any::<([u8; 20], u64, bool)>()).prop_map(|(wide, (address, nonce, y_parity))| TxnAuthListEntry {
        entry: AuthListEntry { chain_id: wide[0], address: Address(address), nonce, y_parity, r: wide[1], s: wide[2] },
        ..TxnAuthListEntry::default()
    })
}

fn log() -> impl Strategy<Value = Log> {
    let topics = prop_oneof![9 => vec(bytes(), 0..5), 1 => vec(bytes(), 5..9)];
    (any::<[u8; 20]>(), topics, vec(any::<u8>(), 0..40), any::<Option<u64>>()).prop_map(
        |(address, topics, data, block_index)| Log { index: 0, block_index, address: Address(address), topics, data },
    )
}

fn receipt() -> impl Strategy<Value = Receipt> {
    let cumulative = proptest::option::weighted(0.9, number());
    (any::<bool>(), number(), cumulative, proptest::option::weighted(0.9, wide()), any::<Option<[u8; 20]>>()).prop_map(
        |(status, gas_used, cumulative_gas_used, effective_gas_price, created)| Receipt {
            status,
            gas_used,
            cumulative_gas_used,
            effective_gas_price,
            contract_address: created.map(Address),
            ..Receipt::default()
        },
    )
}

/// Returns transactions whose lists are as long as they say, except one in ten.
fn txn() -> impl Strategy<Value = Txn> {
    let keys = (any::<[u8; 20]>(), vec(bytes(), 0..3));
    let lists = (vec(keys, 0..3), vec(authorization(), 0..3), vec(bytes(), 0..3), vec(any::<u8>(), 0..40));
    let made = (number(), txn_header(), lists, proptest::option::weighted(0.9, receipt()), vec(log(), 0..3));
    let wrong = prop_oneof![9 => Just(None), 1 => (0_u8..7, any::<u32>()).prop_map(Some)];
    (made, any::<([u8; 32], [u8; 20])>(), wrong, any::<bool>()).prop_map(
        |((index, mut header, lists, mut receipt, mut logs), (hash, sender), wrong, is_fitting)| {
            let (keys, mut authorizations, mut blobs, input) = lists;
            let entry =
                |(index, (address, storage_keys))| AccessListEntry { index, address: Address(address), storage_keys };
            let mut access_list: Vec<_> = (0..).zip(keys).map(entry).collect();
            if is_fitting {
                // Only lists that belong to the type.
                access_list.truncate(if header.txn_type == 0 { 0 } else { 2 });
                authorizations.truncate(if header.txn_type == 4 { 2 } else { 0 });
                blobs.truncate(if header.txn_type == 3 { 2 } else { 0 });
            }
            (0..).zip(&mut authorizations).for_each(|(index, entry)| entry.index = index);
            (0..).zip(&mut logs).for_each(|(index, log)| log.index = index);
            header.data_length = input.len() as u32;
            header.access_list_count = access_list.len() as u32;
            header.auth_list_count = authorizations.len() as u32;
            header.blob_versioned_hash_length = blobs.len() as u32;
            if let Some(receipt) = &mut receipt {
                receipt.log_count = logs.len() as u32;
            }
            if let Some((which, value)) = wrong {
                match which {
                    0 => header.data_length = value,
                    1 => header.access_list_count = value,
                    2 => header.auth_list_count = value,
                    3 => header.blob_versioned_hash_length = value,
                    4 => access_list.iter_mut().for_each(|entry| entry.index = value),
                    5 => logs.iter_mut().for_each(|log| log.index = value),
                    _ => receipt.iter_mut().for_each(|receipt| receipt.log_count = value),
                }
            }
            let (hash, sender) = (Bytes32(hash), Address(sender));
            let start = Some(TxnStart { hash, sender, header, input, blob_versioned_hashes: blobs });
            Txn { index, start, access_list, authorization_list: authorizations, receipt, logs, ..Txn::default() }
        },
    )
}

/// Returns blocks of one transaction, of which one in ten was not executed.
pub(super) fn block() -> impl Strategy<Value = Block> {
    let extra_data_length = prop_oneof![0_u64..40, any::<u64>()];
    let input = (vec(bytes(), 6), vec(number(), 5), wide(), extra_data_length, any::<([u8; 20], [u8; 8])>());
    let end = proptest::option::weighted(0.9, (vec(bytes(), 3), any::<u8>(), number()));
    (input, end, txn()).prop_map(|((roots, numbers, base_fee, extra_data_length, (miner, nonce)), end, txn)| {
        let eth_block_input = EthBlockInput {
            ommers_hash: roots[0],
            beneficiary: Address(miner),
            transactions_root: roots[1],
            difficulty: numbers[0],
            number: numbers[1],
            gas_limit: numbers[2],
            timestamp: numbers[3],
            extra_data: roots[2],
            extra_data_length,
            prev_randao: roots[3],
            nonce: nonce.into(),
            base_fee_per_gas: base_fee,
            withdrawals_root: roots[4],
            txn_count: numbers[4],
        };
        let end = end.map(|(hashes, bloom, gas_used)| BlockEnd {
            eth_block_hash: hashes[0],
            state_root: hashes[1],
            receipts_root: hashes[2],
            logs_bloom: Bloom256([bloom; 256]),
            gas_used,
        });
        let outcome = end.map_or(Outcome::Unknown, |end| Outcome::Executed(Box::new(end)));
        let mut block = Block { outcome, transactions: vec![txn], is_complete: true, ..Block::default() };
        (block.start.parent_eth_hash, block.start.eth_block_input) = (roots[5], eth_block_input);
        block
    })
}
