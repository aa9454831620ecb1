//! A recording of two small blocks of execution. The blocks contain every event of the EXEC schema, and are recorded
//! as a program would record them.

use crate::fixtures::*;
use eventring::exec::BlockScope;
use eventring::global::EXEC;
use eventring::schema::exec::*;

fn hash(byte: u8) -> Bytes32 {
    Bytes32([byte; 32])
}

fn address(byte: u8) -> Address {
    Address([byte; 20])
}

fn block_start(number: u64) -> BlockStart {
    BlockStart {
        block_tag: BlockTag { id: hash(number as u8), block_number: number },
        round: number + 10,
        epoch: 1,
        proposal_epoch_nanos: 1_700_000_000_000_000_000 + u128::from(number),
        chain_id: U256::from(20_143u64),
        author: BlockAuthor { y_parity: 1, x: hash(0xaa) },
        parent_eth_hash: hash(number as u8 - 1),
        eth_block_input: EthBlockInput {
            beneficiary: address(0xbe),
            number,
            gas_limit: 30_000_000,
            timestamp: 1_700_000_000,
            base_fee_per_gas: U256::MAX,
            txn_count: 2,
            ..EthBlockInput::default()
        },
        monad_block_input: MonadBlockInput::default(),
    }
}

fn transaction(block: &BlockScope, index: u64) {
    let _txn = block.transaction(index);
    let data = [0xda; 37];
    let txn_header = TxnHeader {
        txn_type: 2,
        nonce: index,
        value: U256::from(1_000_000_000_000_000_000_000u128),
        to: address(0x70),
        data_length: data.len() as u32,
        blob_versioned_hash_length: 1,
        access_list_count: 1,
        auth_list_count: 1,
        ..TxnHeader::default()
    };
    let start = TxnHeaderStart { txn_hash: hash(0x10 + index as u8), sender: address(0x5e), txn_header };
    recordv!(ExecEvent::TxnHeaderStart, &start, [&data, &[0xb1; 32]]);
    let entry = TxnAccessListEntry { index: 0, address: address(0xac), storage_key_count: 2 };
    recordv!(ExecEvent::TxnAccessListEntry, &entry, [&[1; 32], &[2; 32]]);
    let entry = AuthListEntry { chain_id: U256::from(1u64), y_parity: true, ..AuthListEntry::default() };
    let auth = TxnAuthListEntry { index: 0, entry, authority: address(0xa0), is_valid_authority: true };
    record!(ExecEvent::TxnAuthListEntry, &auth);
    record!(ExecEvent::TxnHeaderEnd);
    record!(ExecEvent::TxnPerfEvmEnter);
    record!(ExecEvent::TxnPerfEvmExit);
    let output = TxnEvmOutput { status: index == 0, log_count: 1, gas_used: 21_000 + index, call_frame_count: 1 };
    record!(ExecEvent::TxnEvmOutput, &output);
    let log = TxnLog { index: 0, address: address(0x10), topic_count: 2, data_length: 3 };
    recordv!(ExecEvent::TxnLog, &log, [&[0x71; 32], &[0x72; 32], b"abc"]);
    let frame =
        TxnCallFrame { opcode: 0xf1, evmc_status: -1, input_length: 5, return_length: 4, ..TxnCallFrame::default() };
    recordv!(ExecEvent::TxnCallFrame, &frame, [b"input", b"back"]);
    record!(ExecEvent::TxnEnd);
}

fn accounts(block: &BlockScope) {
    let access_context = AccessContext::BlockEpilogue;
    record!(ExecEvent::AccountAccessListHeader, AccountAccessListHeader { entry_count: 2, access_context });
    for index in 0..2u32 {
        let account = AccountAccess {
            index,
            address: address(index as u8),
            access_context,
            is_balance_modified: true,
            modified_balance: U256::from(u128::MAX),
            storage_key_count: index,
            ..AccountAccess::default()
        };
        record!(ExecEvent::AccountAccess, &account);
    }
    let _account = block.account(1);
    let storage =
        StorageAccess { address: address(1), access_context, modified: true, key: hash(7), ..StorageAccess::default() };
    record!(ExecEvent::StorageAccess, &storage);
}

fn two_blocks() {
    let block = BlockScope::start(&block_start(100));
    record!(ExecEvent::BlockPerfEvmEnter);
    transaction(&block, 0);
    transaction(&block, 1);
    record!(ExecEvent::BlockPerfEvmExit);
    accounts(&block);
    record!(ExecEvent::BlockEnd, BlockEnd { eth_block_hash: hash(0xee), gas_used: 42_001, ..BlockEnd::default() });
    drop(block);
    let block_tag = BlockTag { id: hash(100), block_number: 100 };
    record!(ExecEvent::BlockQc, BlockQc { block_tag, round: 110, epoch: 1 });
    record!(ExecEvent::BlockFinalized, block_tag);
    record!(ExecEvent::BlockVerified, BlockVerified { block_number: 100 });

    let block = BlockScope::start(&block_start(101));
    let txn = block.transaction(0);
    record!(ExecEvent::TxnReject, TxnReject { reason: 3 });
    record!(ExecEvent::EvmError, EvmError { domain_id: 9, status_code: -7 });
    // This reservation is dropped: a RECORD_ERROR takes its place.
    drop(EXEC.active().unwrap().reserve(ExecEvent::TxnLog as u16, [block.seqno(), 1, 0, 0], 1000));
    drop(txn);
    record!(ExecEvent::BlockReject, BlockReject { reason: 2 });
}

/// Makes a ring in anonymous memory that holds the two blocks.
pub fn recorded() -> Recorder {
    let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .anonymous()
        .prefault(false)
        .build()
        .unwrap();
    let _guard = EXEC.override_with(recorder.clone());
    two_blocks();
    recorder
}
