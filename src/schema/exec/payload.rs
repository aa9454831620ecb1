//! Any payload of the EXEC schema.

use super::{
    AccountAccess, AccountAccessListHeader, BlockEnd, BlockFinalized, BlockQc, BlockReject, BlockStart, BlockVerified,
    EvmError, ExecEvent, StorageAccess, TxnAccessListEntryView, TxnAuthListEntry, TxnCallFrameView, TxnEvmOutput,
    TxnHeaderStartView, TxnLogView, TxnReject,
};
use crate::schema::{DecodeError, EventPayload, EventType, RecordErrorView};

/// The decoded payload of an EXEC event; a variant for each event.
///
/// ```
/// use eventring::schema::EventPayload;
/// use eventring::schema::exec::{ExecPayload, TxnLog};
/// let mut payload = TxnLog { data_length: 2, ..TxnLog::default() }.with_bytes(<[u8]>::to_vec);
/// payload.extend([0xab, 0xcd]);
/// let ExecPayload::TxnLog(view) = ExecPayload::decode(18, &payload).unwrap() else { unreachable!() };
/// assert_eq!(view.data, [0xab, 0xcd]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExecPayload<'a> {
    /// An event that could not be recorded.
    RecordError(RecordErrorView<'a>),
    /// Execution of a proposed block begins.
    BlockStart(BlockStart),
    /// The block is invalid.
    BlockReject(BlockReject),
    /// The EVM begins with the block's transactions.
    BlockPerfEvmEnter,
    /// The EVM has done with the block's transactions.
    BlockPerfEvmExit,
    /// Execution of the block ends.
    BlockEnd(BlockEnd),
    /// A quorum certificate for a proposed block.
    BlockQc(BlockQc),
    /// A proposed block became final.
    BlockFinalized(BlockFinalized),
    /// The state root of a final block was verified.
    BlockVerified(BlockVerified),
    /// A transaction.
    TxnHeaderStart(TxnHeaderStartView<'a>),
    /// An address of the transaction's access list.
    TxnAccessListEntry(TxnAccessListEntryView<'a>),
    /// An entry of the transaction's authorization list.
    TxnAuthListEntry(TxnAuthListEntry),
    /// The transaction has been described.
    TxnHeaderEnd,
    /// The transaction is invalid.
    TxnReject(TxnReject),
    /// The EVM begins with the transaction.
    TxnPerfEvmEnter,
    /// The EVM has done with the transaction.
    TxnPerfEvmExit,
    /// What came out of the transaction.
    TxnEvmOutput(TxnEvmOutput),
    /// A log that the transaction emitted.
    TxnLog(TxnLogView<'a>),
    /// A call that the transaction made.
    TxnCallFrame(TxnCallFrameView<'a>),
    /// The transaction has been executed.
    TxnEnd,
    /// How many accounts were accessed.
    AccountAccessListHeader(AccountAccessListHeader),
    /// An account that was accessed.
    AccountAccess(AccountAccess),
    /// A storage slot that was accessed.
    StorageAccess(StorageAccess),
    /// An error of the EVM itself.
    EvmError(EvmError),
}

impl<'a> ExecPayload<'a> {
    /// Decodes the payload of event `code`.
    ///
    /// # Errors
    /// The schema has no such event, the payload is not exactly as long as its struct and arrays, or a bool or enum in it is none.
    pub fn decode(code: u16, payload: &'a [u8]) -> Result<Self, DecodeError> {
        let event = ExecEvent::from_code(code).ok_or(DecodeError::unknown_event(ExecEvent::CONTENT_NAME, code))?;
        event.decode(payload)
    }

    /// Which event it is the payload of.
    #[must_use]
    pub fn event(&self) -> ExecEvent {
        match self {
            Self::RecordError(_) => ExecEvent::RecordError,
            Self::BlockStart(_) => ExecEvent::BlockStart,
            Self::BlockReject(_) => ExecEvent::BlockReject,
            Self::BlockPerfEvmEnter => ExecEvent::BlockPerfEvmEnter,
            Self::BlockPerfEvmExit => ExecEvent::BlockPerfEvmExit,
            Self::BlockEnd(_) => ExecEvent::BlockEnd,
            Self::BlockQc(_) => ExecEvent::BlockQc,
            Self::BlockFinalized(_) => ExecEvent::BlockFinalized,
            Self::BlockVerified(_) => ExecEvent::BlockVerified,
            Self::TxnHeaderStart(_) => ExecEvent::TxnHeaderStart,
            Self::TxnAccessListEntry(_) => ExecEvent::TxnAccessListEntry,
            Self::TxnAuthListEntry(_) => ExecEvent::TxnAuthListEntry,
            Self::TxnHeaderEnd => ExecEvent::TxnHeaderEnd,
            Self::TxnReject(_) => ExecEvent::TxnReject,
            Self::TxnPerfEvmEnter => ExecEvent::TxnPerfEvmEnter,
            Self::TxnPerfEvmExit => ExecEvent::TxnPerfEvmExit,
            Self::TxnEvmOutput(_) => ExecEvent::TxnEvmOutput,
            Self::TxnLog(_) => ExecEvent::TxnLog,
            Self::TxnCallFrame(_) => ExecEvent::TxnCallFrame,
            Self::TxnEnd => ExecEvent::TxnEnd,
            Self::AccountAccessListHeader(_) => ExecEvent::AccountAccessListHeader,
            Self::AccountAccess(_) => ExecEvent::AccountAccess,
            Self::StorageAccess(_) => ExecEvent::StorageAccess,
            Self::EvmError(_) => ExecEvent::EvmError,
        }
    }
}

impl ExecEvent {
    /// Decodes the payload of this event.
    ///
    /// # Errors
    /// The payload is not exactly as long as its struct and arrays, or a bool or enum in it is none.
    pub fn decode(self, payload: &[u8]) -> Result<ExecPayload<'_>, DecodeError> {
        let empty = |value| <()>::decode_exact(payload).map(|()| value);
        Ok(match self {
            Self::RecordError => ExecPayload::RecordError(RecordErrorView::decode(payload)?),
            Self::BlockStart => ExecPayload::BlockStart(BlockStart::decode_exact(payload)?),
            Self::BlockReject => ExecPayload::BlockReject(BlockReject::decode_exact(payload)?),
            Self::BlockPerfEvmEnter => empty(ExecPayload::BlockPerfEvmEnter)?,
            Self::BlockPerfEvmExit => empty(ExecPayload::BlockPerfEvmExit)?,
            Self::BlockEnd => ExecPayload::BlockEnd(BlockEnd::decode_exact(payload)?),
            Self::BlockQc => ExecPayload::BlockQc(BlockQc::decode_exact(payload)?),
            Self::BlockFinalized => ExecPayload::BlockFinalized(BlockFinalized::decode_exact(payload)?),
            Self::BlockVerified => ExecPayload::BlockVerified(BlockVerified::decode_exact(payload)?),
            Self::TxnHeaderStart => ExecPayload::TxnHeaderStart(TxnHeaderStartView::decode(payload)?),
            Self::TxnAccessListEntry => ExecPayload::TxnAccessListEntry(TxnAccessListEntryView::decode(payload)?),
            Self::TxnAuthListEntry => ExecPayload::TxnAuthListEntry(TxnAuthListEntry::decode_exact(payload)?),
            Self::TxnHeaderEnd => empty(ExecPayload::TxnHeaderEnd)?,
            Self::TxnReject => ExecPayload::TxnReject(TxnReject::decode_exact(payload)?),
            Self::TxnPerfEvmEnter => empty(ExecPayload::TxnPerfEvmEnter)?,
            Self::TxnPerfEvmExit => empty(ExecPayload::TxnPerfEvmExit)?,
            Self::TxnEvmOutput => ExecPayload::TxnEvmOutput(TxnEvmOutput::decode_exact(payload)?),
            Self::TxnLog => ExecPayload::TxnLog(TxnLogView::decode(payload)?),
            Self::TxnCallFrame => ExecPayload::TxnCallFrame(TxnCallFrameView::decode(payload)?),
            Self::TxnEnd => empty(ExecPayload::TxnEnd)?,
            Self::AccountAccessListHeader => {
                ExecPayload::AccountAccessListHeader(AccountAccessListHeader::decode_exact(payload)?)
            }
            Self::AccountAccess => ExecPayload::AccountAccess(AccountAccess::decode_exact(payload)?),
            Self::StorageAccess => ExecPayload::StorageAccess(StorageAccess::decode_exact(payload)?),
            Self::EvmError => ExecPayload::EvmError(EvmError::decode_exact(payload)?),
        })
    }
}
