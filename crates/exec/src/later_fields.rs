//! The newer fields of headers. Only the hash of a header shows whether the header has these fields.

use crate::rlp::RlpList;
use crate::values::Block;
use eventring::schema::exec::{BlockEnd, Bytes32};

/// The fields that headers got after the base fee, as far as the header of a block has them.
///
/// Events say the root of withdrawals, and nothing of what came later. Chains without blobs fill the later fields with
/// zeros. They are in the header if and only if the header has the block's hash with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct LaterFields {
    /// `withdrawalsRoot`. If no hash proves it, it is in the header unless it is zero.
    pub withdrawals: bool,
    /// `blobGasUsed`, `excessBlobGas` and `parentBeaconBlockRoot`, all of them zero.
    pub blobs: bool,
    /// `requestsHash`, which is zero.
    pub requests: bool,
}

impl Block {
    /// Returns which of the later fields the header of the block has.
    #[must_use]
    pub fn later_fields(&self) -> LaterFields {
        let fields = |[withdrawals, blobs, requests]: [bool; 3]| LaterFields { withdrawals, blobs, requests };
        let not_proved = fields([self.start.eth_block_input.withdrawals_root != Bytes32::ZERO, false, false]);
        let Some(end) = self.end() else { return not_proved };
        let known = [[true, true, true], [true, true, false], [true, false, false], [false, false, false]];
        let has_hash = |later: &LaterFields| header_hash(self, end, *later) == end.eth_block_hash.0;
        known.map(fields).into_iter().find(has_hash).unwrap_or(not_proved)
    }
}

/// Returns the hash of the header with these fields.
fn header_hash(block: &Block, end: &BlockEnd, later: LaterFields) -> [u8; 32] {
    let input = &block.start.eth_block_input;
    let base_fee: Vec<u8> = input.base_fee_per_gas.limbs().iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    let mut list = RlpList::default()
        .bytes(&block.start.parent_eth_hash.0)
        .bytes(&input.ommers_hash.0)
        .bytes(&input.beneficiary.0)
        .bytes(&end.state_root.0)
        .bytes(&input.transactions_root.0)
        .bytes(&end.receipts_root.0)
        .bytes(&end.logs_bloom.0);
    for number in [input.difficulty, input.number, input.gas_limit, end.gas_used, input.timestamp] {
        list = list.number(&number.to_be_bytes());
    }
    list = list.bytes(block.extra_data()).bytes(&input.prev_randao.0).bytes(&input.nonce.0).number(&base_fee);
    if later.withdrawals {
        list = list.bytes(&input.withdrawals_root.0);
    }
    if later.blobs {
        list = list.number(&[]).number(&[]).bytes(&[0; 32]);
    }
    if later.requests {
        list = list.bytes(&[0; 32]);
    }
    list.hash()
}
