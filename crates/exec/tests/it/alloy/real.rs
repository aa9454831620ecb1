//! Thirty real blocks: what alloy computes from the converted values is what the node has computed.

use super::{again, assert_same_header, assert_same_log, computed_hash};
use eventring::reader::Reader;
use eventring_exec::alloy::alloy_consensus::proofs::{calculate_receipt_root, calculate_transaction_root};
use eventring_exec::alloy::{self, alloy_consensus::Transaction};
use eventring_exec::{Block, BlockUpdate, Blocks, CommitState, Txn, Wanted};
use eventring_stress::real_data;
use std::sync::Arc;

fn real_blocks(wanted: Wanted) -> Option<Vec<Arc<Block>>> {
    let recording = Reader::open(real_data::path("emn-30b-15m.snapshot.zst")?).unwrap();
    let executed = |update| match update {
        BlockUpdate::Changed(update) if update.state == CommitState::Proposed => update.block,
        _ => None,
    };
    Some(Blocks::of_ring(&recording, wanted).unwrap().filter_map(executed).collect())
}

#[test]
fn headers_have_the_hash_of_their_blocks() {
    let Some(blocks) = real_blocks(Wanted::HEADERS) else { return };
    for block in &blocks {
        let header = alloy::header(block).unwrap();
        let expected = block.end().unwrap().eth_block_hash.0;
        assert_eq!((header.inner.hash_slow().0, header.hash.0), (expected, expected));
        assert_eq!(again(&header), header);
        assert_same_header(block, &header);
        // A control: another field leads to another hash.
        let mut other = header.inner;
        other.gas_used += 1;
        assert_ne!(other.hash_slow().0, expected);
    }
    assert_eq!(blocks.len(), 30);
}

#[test]
fn transactions_have_their_hashes_and_the_root_of_their_block() {
    let Some(blocks) = real_blocks(Wanted::TRANSACTIONS) else { return };
    let mut types = [0; 5];
    for block in &blocks {
        let mut envelopes = Vec::new();
        for txn in &block.transactions {
            let start = txn.start.as_ref().unwrap();
            let transaction = alloy::transaction(block, txn).unwrap();
            let envelope = alloy::envelope(txn).unwrap();
            assert_eq!((computed_hash(&envelope), envelope.tx_hash().0), (start.hash.0, start.hash.0));
            assert_eq!((transaction.inner.inner(), transaction.inner.signer().0.0), (&envelope, start.sender.0));
            assert_signer(&envelope, start.sender.0);
            assert_eq!(again(&transaction).inner, transaction.inner);
            types[usize::from(start.header.txn_type)] += 1;
            envelopes.push(envelope);
        }
        let root = block.start.eth_block_input.transactions_root.0;
        assert_eq!(calculate_transaction_root(&envelopes).0, root);
        // A control: the order counts.
        envelopes.reverse();
        assert!(envelopes.len() < 2 || calculate_transaction_root(&envelopes).0 != root);
    }
    assert_eq!(types, [534, 10, 5643, 0, 0]);
}

#[cfg(feature = "alloy-k256")]
fn assert_signer(envelope: &alloy::alloy_consensus::TxEnvelope, sender: [u8; 20]) {
    use eventring_exec::alloy::alloy_consensus::transaction::SignerRecoverable;
    assert_eq!(envelope.recover_signer().unwrap().0.0, sender);
}

#[cfg(not(feature = "alloy-k256"))]
fn assert_signer(_: &alloy::alloy_consensus::TxEnvelope, _: [u8; 20]) {}

#[test]
fn receipts_have_the_root_of_their_block_and_logs_are_those_of_the_gateway() {
    let Some(blocks) = real_blocks(Wanted::TRANSACTIONS) else { return };
    let (mut receipts, mut logs) = (0, 0);
    for block in &blocks {
        let mut of_block = Vec::new();
        let base_fee = alloy::consensus_header(block).unwrap().base_fee_per_gas;
        for txn in &block.transactions {
            let receipt = alloy::receipt(block, txn).unwrap();
            assert_eq!(again(&receipt), receipt);
            let transaction = alloy::transaction(block, txn).unwrap();
            let price = transaction.inner.effective_gas_price(base_fee);
            assert_eq!((receipt.effective_gas_price, transaction.effective_gas_price), (price, Some(price)));
            let creates = transaction.inner.is_create() && receipt.status();
            let created = creates.then(|| receipt.from.create(transaction.inner.nonce()));
            assert_eq!(receipt.contract_address, created);
            for (log, in_receipt) in txn.logs.iter().zip(receipt.inner.logs()) {
                assert_same_log(block, txn, log);
                assert_eq!(alloy::log(block, txn, log).unwrap(), *in_receipt);
                logs += 1;
            }
            of_block.push(receipt.inner.into_primitives_receipt());
        }
        assert_eq!(calculate_receipt_root(&of_block).0, block.end().unwrap().receipts_root.0);
        receipts += of_block.len();
    }
    assert_eq!((receipts, logs), (6187, 8299));
}

#[test]
fn what_was_not_wanted_is_an_error_and_not_another_transaction() {
    let mut wanted = Wanted::TRANSACTIONS;
    (wanted.input, wanted.logs) = (false, false);
    let Some(blocks) = real_blocks(wanted) else { return };
    let block = &blocks[0];
    let find = |is_wanted: fn(&Txn) -> bool| block.transactions.iter().find(|txn| is_wanted(txn)).unwrap();
    let with_input = find(|txn| txn.start.as_ref().is_some_and(|start| start.header.data_length > 0));
    let error = alloy::envelope(with_input).unwrap_err();
    assert_eq!(error.to_string(), "transaction 0: found 0 bytes of input, expected 644");
    let with_logs = find(|txn| txn.receipt.is_some_and(|receipt| receipt.log_count > 0));
    let error = alloy::receipt(block, with_logs).unwrap_err();
    assert_eq!(error.to_string(), "transaction 1: found 0 logs, expected 1, numbered from 0");
}
