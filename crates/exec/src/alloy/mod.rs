//! Blocks, transactions, receipts and logs as types of the alloy crates. This module needs the feature `alloy`.
//!
//! A conversion uses only values from the events, and never panics. If a required value is missing, or a number does
//! not fit its type, the conversion returns a [`ConversionError`] with the found and the expected value.
//!
//! ```
//! use eventring_exec::{Block, Outcome, alloy};
//!
//! // A block of a ring comes from `Blocks`.
//! let mut block = Block::default();
//! block.start.eth_block_input.number = 15;
//! let error = alloy::header(&block).unwrap_err();
//! assert_eq!(error.to_string(), "block 15: found no BLOCK_END, expected a block that was executed to its end");
//!
//! block.outcome = Outcome::Executed(Box::default());
//! let header = alloy::header(&block)?;
//! assert_eq!(header.inner.number, 15);
//! // The same JSON as that of a node.
//! assert_eq!(serde_json::to_value(&header)?["number"], "0xf");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod header;
mod receipt;
mod transaction;

pub use alloy_consensus;
pub use alloy_rpc_types_eth;
pub use error::ConversionError;
pub use header::{consensus_header, header};
pub use receipt::{log, receipt};
pub use transaction::{envelope, transaction};

use alloy_primitives::{Address, B256, U256};
use eventring::schema::exec;

fn hash(bytes: exec::Bytes32) -> B256 {
    B256::new(bytes.0)
}

fn address(bytes: exec::Address) -> Address {
    Address::new(bytes.0)
}

fn wide(number: exec::U256) -> U256 {
    U256::from_limbs(number.limbs())
}
