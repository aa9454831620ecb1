//! Invented events of whole blocks.

use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::exec::*;
use eventring::schema::{EventPayload, EventType};

/// An event and its payload.
pub type Event = (Descriptor, Vec<u8>);

/// Events with the seqnos 1, 2 …
#[derive(Default)]
pub struct Made(pub Vec<Event>);

impl Made {
    /// Adds an event. Returns its seqno.
    pub fn add(&mut self, kind: ExecEvent, ext: [u64; 4], payload: Vec<u8>) -> u64 {
        let seqno = self.0.len() as u64 + 1;
        let event = Descriptor {
            seqno,
            event_type: kind.code(),
            payload_size: payload.len() as u32,
            record_epoch_nanos: 1_000_000 + 10 * seqno,
            content_ext: ext,
            ..Descriptor::default()
        };
        self.0.push((event, payload));
        seqno
    }

    /// Records the events from an index on with a node's recorder. Returns the index after the last one.
    pub fn record(&self, from: usize, recorder: &Recorder) -> usize {
        for (event, payload) in &self.0[from..] {
            recorder.record(event.event_type, event.content_ext, payload);
        }
        self.0.len()
    }

    /// Adds the end of the open block: it is invalid.
    pub fn reject(&mut self, block_seqno: u64) {
        self.add(ExecEvent::BlockReject, [block_seqno, 0, 0, 0], bytes(&BlockReject { reason: 1 }));
    }

    /// Adds a block of this many transactions, whose events take turns. Returns its tag.
    pub fn block(&mut self, number: u64, id: u8, txns: u64) -> BlockTag {
        let block_tag = BlockTag { id: Bytes32([id; 32]), block_number: number };
        let eth_block_input =
            EthBlockInput { number, txn_count: txns, base_fee_per_gas: 7_u64.into(), ..Default::default() };
        let start = BlockStart { block_tag, round: number, eth_block_input, ..Default::default() };
        let seqno = self.0.len() as u64 + 1;
        self.add(ExecEvent::BlockStart, [seqno, 0, 0, 0], bytes(&start));
        let mut of_txn: Vec<Vec<Part>> = (0..txns).map(|txn| txn_parts(number, txn)).collect();
        let of_block = |part: Part| ([seqno, 0, part.2, 0], part);
        let mut parts: Vec<_> = vec![of_block((ExecEvent::BlockPerfEvmEnter, vec![], 0))];
        parts.extend(access_parts(AccessContext::BlockPrologue).into_iter().map(of_block));
        let longest = of_txn.iter().map(Vec::len).max().unwrap_or(0);
        for _ in 0..longest {
            for (txn, rest) in (0..).zip(&mut of_txn) {
                if !rest.is_empty() {
                    let part = rest.remove(0);
                    parts.push(([seqno, txn + 1, part.2, 0], part));
                }
            }
        }
        parts.extend(access_parts(AccessContext::BlockEpilogue).into_iter().map(of_block));
        let end = BlockEnd { eth_block_hash: Bytes32([id ^ 0xff; 32]), gas_used: 21_000 * txns, ..Default::default() };
        parts.push(of_block((ExecEvent::BlockPerfEvmExit, vec![], 0)));
        parts.push(of_block((ExecEvent::BlockEnd, bytes(&end), 0)));
        for (ext, (kind, payload, _)) in parts {
            self.add(kind, ext, payload);
        }
        block_tag
    }

    pub fn vote(&mut self, block_tag: BlockTag) {
        self.add(ExecEvent::BlockQc, [0; 4], bytes(&BlockQc { block_tag, round: 1, epoch: 1 }));
    }

    pub fn finalize(&mut self, tag: BlockTag) {
        self.add(ExecEvent::BlockFinalized, [0; 4], bytes(&tag));
    }

    pub fn verify(&mut self, block_number: u64) {
        self.add(ExecEvent::BlockVerified, [0; 4], bytes(&BlockVerified { block_number }));
    }
}

/// An event, its payload, and the word `account_index`.
type Part = (ExecEvent, Vec<u8>, u64);

fn bytes(payload: &impl EventPayload) -> Vec<u8> {
    payload.with_bytes(<[u8]>::to_vec)
}

fn txn_parts(block: u64, txn: u64) -> Vec<Part> {
    let byte = (16 * block + txn) as u8;
    let txn_header = TxnHeader {
        txn_type: 2,
        nonce: txn,
        data_length: 5,
        access_list_count: 2,
        auth_list_count: 1,
        max_fee_per_gas: 100_u64.into(),
        ..Default::default()
    };
    let start = TxnHeaderStart { txn_hash: Bytes32([byte; 32]), sender: Address([byte; 20]), txn_header };
    let entry = |index: u32| {
        let entry = TxnAccessListEntry { index, address: Address([byte ^ 1; 20]), storage_key_count: 1 };
        (ExecEvent::TxnAccessListEntry, [bytes(&entry), vec![byte; 32]].concat(), 0)
    };
    let log = |index: u32| {
        let log = TxnLog { index, address: Address([byte; 20]), topic_count: 2, data_length: 3 };
        (ExecEvent::TxnLog, [bytes(&log), vec![byte; 64], vec![index as u8; 3]].concat(), 0)
    };
    let frame = |index: u32| {
        let frame = TxnCallFrame { index, opcode: 0xf1, input_length: 2, return_length: 1, ..Default::default() };
        (ExecEvent::TxnCallFrame, [bytes(&frame), vec![byte; 3]].concat(), 0)
    };
    let output = TxnEvmOutput { status: true, log_count: 2, gas_used: 21_000, call_frame_count: 2 };
    let auth = TxnAuthListEntry { index: 0, ..Default::default() };
    let mut parts = vec![
        (ExecEvent::TxnPerfEvmEnter, vec![], 0),
        (ExecEvent::TxnHeaderStart, [bytes(&start), vec![byte; 5]].concat(), 0),
        entry(0),
        entry(1),
        (ExecEvent::TxnAuthListEntry, bytes(&auth), 0),
        (ExecEvent::TxnHeaderEnd, vec![], 0),
        (ExecEvent::TxnEvmOutput, bytes(&output), 0),
        log(0),
        log(1),
        frame(0),
        frame(1),
    ];
    parts.extend(access_parts(AccessContext::Transaction));
    parts.extend([(ExecEvent::TxnEnd, vec![], 0), (ExecEvent::TxnPerfEvmExit, vec![], 0)]);
    parts
}

fn access_parts(access_context: AccessContext) -> Vec<Part> {
    let header = AccountAccessListHeader { entry_count: 2, access_context };
    let account = |index: u32| {
        let account =
            AccountAccess { index, access_context, storage_key_count: 1, transient_count: index, ..Default::default() };
        (ExecEvent::AccountAccess, bytes(&account), 0)
    };
    let slot = |account: u64, transient: bool| {
        let slot = StorageAccess { access_context, transient, key: Bytes32([3; 32]), ..Default::default() };
        (ExecEvent::StorageAccess, bytes(&slot), account)
    };
    let header = (ExecEvent::AccountAccessListHeader, bytes(&header), 0);
    vec![header, account(0), slot(0, false), account(1), slot(1, false), slot(1, true)]
}
