//! The parts of blocks that a reader wants.

/// What a [`BlockBuilder`](crate::BlockBuilder) reads. What is not wanted is not read: the payload is not even touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// Transactions, with their receipts. Without them, only the headers of blocks are read.
    pub transactions: bool,
    /// The input data of transactions.
    pub input: bool,
    /// Logs.
    pub logs: bool,
    /// Call frames.
    pub call_frames: bool,
    /// Accounts and storage slots that were accessed.
    pub accesses: bool,
}

impl Wanted {
    /// Only what BLOCK_START and BLOCK_END say.
    pub const HEADERS: Self =
        Self { transactions: false, input: false, logs: false, call_frames: false, accesses: false };
    /// Transactions, receipts and logs: what an Ethereum node tells.
    pub const TRANSACTIONS: Self =
        Self { transactions: true, input: true, logs: true, call_frames: false, accesses: false };
    /// Everything.
    pub const ALL: Self = Self { transactions: true, input: true, logs: true, call_frames: true, accesses: true };
}

impl Default for Wanted {
    /// [`Self::TRANSACTIONS`].
    fn default() -> Self {
        Self::TRANSACTIONS
    }
}
