//! Flow tags: what the four words of `content_ext` in the descriptor of an EXEC event mean.

/// Index of the word that holds the seqno of the block's BLOCK_START; 0 means no block.
pub const BLOCK_SEQNO: usize = 0;
/// Index of the word that holds the transaction's index in the block + 1; 0 means no transaction.
pub const TXN_ID: usize = 1;
/// Index of the word that holds the account's index in the access list, from 0 (0 also where there is no account).
pub const ACCOUNT_INDEX: usize = 2;
/// Index of the word that holds the id of the enclosing `tracing` span; 0 means none. The published schema leaves it unused.
pub const SPAN_ID: usize = 3;

/// The flow tags of an EXEC event.
///
/// ```
/// use eventring::schema::exec::flow::FlowTags;
/// let tags = FlowTags { block_seqno: 17, txn_index: Some(0), ..FlowTags::default() };
/// assert_eq!(tags.to_ext(), [17, 1, 0, 0]);
/// assert_eq!(FlowTags::from_ext([17, 1, 0, 0]), tags);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FlowTags {
    /// Seqno of the block's BLOCK_START; 0 outside a block.
    pub block_seqno: u64,
    /// Index of the transaction in the block.
    pub txn_index: Option<u64>,
    /// Index of the account in the access list; 0 also where there is no account.
    pub account_index: u64,
    /// Id of the enclosing span; 0 outside a span.
    pub span_id: u64,
}

impl FlowTags {
    /// From the `content_ext` of a descriptor.
    #[must_use]
    pub const fn from_ext(ext: [u64; 4]) -> Self {
        Self {
            block_seqno: ext[BLOCK_SEQNO],
            txn_index: ext[TXN_ID].checked_sub(1),
            account_index: ext[ACCOUNT_INDEX],
            span_id: ext[SPAN_ID],
        }
    }

    /// The `content_ext` of a descriptor. A transaction index of 2^64 − 1 cannot be expressed and gives no transaction.
    #[must_use]
    pub const fn to_ext(self) -> [u64; 4] {
        let mut ext = [0; 4];
        ext[BLOCK_SEQNO] = self.block_seqno;
        ext[TXN_ID] = match self.txn_index {
            Some(index) => index.wrapping_add(1),
            None => 0,
        };
        ext[ACCOUNT_INDEX] = self.account_index;
        ext[SPAN_ID] = self.span_id;
        ext
    }
}
