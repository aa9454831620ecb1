//! The extension words of execution events.

/// The index of the extension word that names the block. The word holds the seqno of the block's BLOCK_START, or 0 if
/// the event belongs to no block.
pub(crate) const BLOCK: usize = 0;
/// The index of the extension word that names the transaction. The word holds the transaction's index in the block
/// plus one, or 0 if the event belongs to no transaction.
pub(crate) const TXN: usize = 1;
/// The index of the extension word that names the account. The word holds the account's index in the access list,
/// which counts from 0. The word is also 0 if the event belongs to no account.
pub(crate) const ACCOUNT_INDEX: usize = 2;

/// The block, transaction and account to which an execution event belongs. The event's extension words name them.
///
/// ```
/// use eventring::schema::exec::FlowTags;
/// let tags = FlowTags { block_seqno: 17, txn_index: Some(0), account_index: 0 };
/// assert_eq!(FlowTags::from_ext([17, 1, 0, 0]), tags);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlowTags {
    /// Seqno of the block's BLOCK_START, or 0 if the event belongs to no block.
    pub block_seqno: u64,
    /// Index of the transaction in the block.
    pub txn_index: Option<u64>,
    /// Index of the account in the access list, from 0. Also 0 if the event belongs to no account.
    pub account_index: u64,
}

impl FlowTags {
    /// Reads the `content_ext` of a descriptor.
    #[must_use]
    pub const fn from_ext(ext: [u64; 4]) -> Self {
        Self { block_seqno: ext[BLOCK], txn_index: ext[TXN].checked_sub(1), account_index: ext[ACCOUNT_INDEX] }
    }
}
