//! Values computed from the events: cumulative gas, blooms, prices, addresses.

use crate::rlp::{RlpList, keccak};
use crate::values::{Block, Log, Receipt, TxnStart};
use eventring::schema::exec::{Address, Bloom256, U256};

/// The types of transactions that name one price for gas, and no tip.
const ONE_PRICE_TYPES: [u8; 2] = [0, 1];

/// Fills in what is computed, in the order of the transactions.
pub(crate) fn fill_in(block: &mut Block) {
    let base_fee = block.start.eth_block_input.base_fee_per_gas;
    // The sums over the transactions before, as far as all of them are there.
    let (mut gas, mut logs, mut next) = (Some(0_u64), Some(0_u64), 0);
    for txn in &mut block.transactions {
        if txn.index != next {
            (gas, logs) = (None, None);
        }
        next = txn.index.saturating_add(1);
        for log in &mut txn.logs {
            log.block_index = logs.map(|before| before.saturating_add(log.index.into()));
        }
        let Some(receipt) = &mut txn.receipt else {
            (gas, logs) = (None, None);
            continue;
        };
        gas = gas.map(|before| before.saturating_add(receipt.gas_used));
        logs = logs.map(|before| before.saturating_add(receipt.log_count.into()));
        receipt.cumulative_gas_used = gas;
        receipt.logs_bloom = bloom(&txn.logs);
        if let Some(start) = &txn.start {
            receipt.effective_gas_price = Some(effective_gas_price(start, base_fee));
            receipt.contract_address = contract_address(start, receipt);
        }
    }
}

/// Returns the bloom filter over logs (Ethereum's yellow paper, section 4.3.1).
fn bloom(logs: &[Log]) -> Bloom256 {
    let mut bloom = Bloom256::ZERO;
    let mut add = |bytes: &[u8]| {
        let hash = keccak(&[bytes]);
        for pair in hash[..6].chunks_exact(2) {
            let bit = usize::from(u16::from_be_bytes([pair[0], pair[1]]) & 2047);
            bloom.0[255 - bit / 8] |= 1 << (bit % 8);
        }
    };
    for log in logs {
        add(&log.address.0);
        log.topics.iter().for_each(|topic| add(&topic.0));
    }
    bloom
}

/// Returns the price that was paid for gas (EIP-1559): the base fee and the tip, at most what the sender allows.
fn effective_gas_price(start: &TxnStart, base_fee: U256) -> U256 {
    let header = &start.header;
    if ONE_PRICE_TYPES.contains(&header.txn_type) {
        return header.max_fee_per_gas;
    }
    header.max_fee_per_gas.min(saturating_sum(base_fee, header.max_priority_fee_per_gas))
}

fn saturating_sum(a: U256, b: U256) -> U256 {
    let (mut sum, mut carry) = ([0; 4], false);
    for ((sum, a), b) in sum.iter_mut().zip(a.limbs()).zip(b.limbs()) {
        let (partial, first) = a.overflowing_add(b);
        let (whole, second) = partial.overflowing_add(carry.into());
        (*sum, carry) = (whole, first || second);
    }
    if carry { U256::MAX } else { U256::from_limbs(sum) }
}

/// Returns the address of the contract that a transaction has created: the end of the hash of the list of sender and
/// nonce, in RLP.
fn contract_address(start: &TxnStart, receipt: &Receipt) -> Option<Address> {
    if !start.header.is_contract_creation || !receipt.status {
        return None;
    }
    let list = RlpList::default().bytes(&start.sender.0).number(&start.header.nonce.to_be_bytes());
    list.hash().last_chunk().map(|end| Address(*end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::schema::exec::TxnHeader;

    #[test]
    fn the_address_of_a_contract_is_that_of_sender_and_nonce() {
        // A well-known example: this account made its first contracts with the nonces 0, 1 and 2.
        let sender: Address = "0x6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0".parse().unwrap();
        let receipt = Receipt { status: true, ..Receipt::default() };
        let expected = [
            "0xcd234a471b72ba2f1ccf0a70fcaba648a5eecd8d",
            "0x343c43a37d37dff08ae8c4a11544c718abb4fcf8",
            "0xf778b86fa74e846c4f0a1fbd1335fe81c00a0c91",
        ];
        for (nonce, expected) in (0..).zip(expected) {
            let header = TxnHeader { nonce, is_contract_creation: true, ..TxnHeader::default() };
            let start = TxnStart { sender, header, ..TxnStart::default() };
            assert_eq!(contract_address(&start, &receipt).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn the_price_is_bounded_and_does_not_overflow() {
        let price = |txn_type, max: U256, tip: U256, base: U256| {
            let header =
                TxnHeader { txn_type, max_fee_per_gas: max, max_priority_fee_per_gas: tip, ..TxnHeader::default() };
            effective_gas_price(&TxnStart { header, ..TxnStart::default() }, base)
        };
        let number = U256::from;
        assert_eq!(price(2, number(100_u64), number(3_u64), number(10_u64)), number(13_u64));
        assert_eq!(price(2, number(12_u64), number(3_u64), number(10_u64)), number(12_u64));
        assert_eq!(price(0, number(100_u64), number(3_u64), number(10_u64)), number(100_u64));
        assert_eq!(price(2, U256::MAX, U256::MAX, number(1_u64)), U256::MAX);
        assert_eq!(saturating_sum(number(u64::MAX), number(1_u64)), U256::from_limbs([0, 1, 0, 0]));
    }
}
