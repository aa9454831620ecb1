//! Whole payloads of the events with trailing arrays: the fixed struct and what follows it.

use super::transaction::{TxnAccessListEntry, TxnCallFrame, TxnHeaderStart, TxnLog};
use crate::schema::{ArrayView, Bytes32, DecodeError, EventPayload, expect_end, split_array, split_bytes};

/// The whole payload of TXN_HEADER_START.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnHeaderStartView<'a> {
    /// The fixed struct.
    pub start: TxnHeaderStart,
    /// The input data.
    pub data: &'a [u8],
    /// The versioned blob hashes.
    pub blob_hashes: ArrayView<'a, Bytes32>,
}

impl<'a> TxnHeaderStartView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Its length is not the one that it states, or a bool in it is none.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "TXN_HEADER_START";
        let (start, rest) = TxnHeaderStart::decode(payload)?;
        let (data, rest) = split_bytes(OWNER, "data", rest, start.txn_header.data_length.into())?;
        let (blob_hashes, rest) =
            split_array(OWNER, "blob_hashes", rest, start.txn_header.blob_versioned_hash_length.into())?;
        expect_end(OWNER, rest)?;
        Ok(Self { start, data, blob_hashes })
    }
}

/// The whole payload of TXN_ACCESS_LIST_ENTRY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnAccessListEntryView<'a> {
    /// The fixed struct.
    pub entry: TxnAccessListEntry,
    /// The storage keys.
    pub storage_keys: ArrayView<'a, Bytes32>,
}

impl<'a> TxnAccessListEntryView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Its length is not the one that it states.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "TXN_ACCESS_LIST_ENTRY";
        let (entry, rest) = TxnAccessListEntry::decode(payload)?;
        let (storage_keys, rest) = split_array(OWNER, "storage_keys", rest, entry.storage_key_count.into())?;
        expect_end(OWNER, rest)?;
        Ok(Self { entry, storage_keys })
    }
}

/// The whole payload of TXN_LOG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnLogView<'a> {
    /// The fixed struct.
    pub log: TxnLog,
    /// The topics.
    pub topics: ArrayView<'a, Bytes32>,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> TxnLogView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Its length is not the one that it states.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "TXN_LOG";
        let (log, rest) = TxnLog::decode(payload)?;
        let (topics, rest) = split_array(OWNER, "topics", rest, log.topic_count.into())?;
        let (data, rest) = split_bytes(OWNER, "data", rest, log.data_length.into())?;
        expect_end(OWNER, rest)?;
        Ok(Self { log, topics, data })
    }
}

/// The whole payload of TXN_CALL_FRAME.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxnCallFrameView<'a> {
    /// The fixed struct.
    pub frame: TxnCallFrame,
    /// The input.
    pub input: &'a [u8],
    /// The return value.
    pub return_value: &'a [u8],
}

impl<'a> TxnCallFrameView<'a> {
    /// Decodes a payload.
    ///
    /// # Errors
    /// Its length is not the one that it states.
    pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError> {
        const OWNER: &str = "TXN_CALL_FRAME";
        let (frame, rest) = TxnCallFrame::decode(payload)?;
        let (input, rest) = split_bytes(OWNER, "input", rest, frame.input_length)?;
        let (return_value, rest) = split_bytes(OWNER, "return_value", rest, frame.return_length)?;
        expect_end(OWNER, rest)?;
        Ok(Self { frame, input, return_value })
    }
}
