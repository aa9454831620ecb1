//! Two ways to record an execution event of a ring again: [`pass_on`] copies its payload byte for byte, and
//! [`encode_again`] decodes the payload and encodes it from its own struct and arrays.

use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::EventType as _;
use eventring::schema::exec::{ExecEvent, ExecPayload};
use eventring::{record, recordv};

/// Records an event with the type, payload bytes and extension words of `event`. Returns the new seqno.
pub fn pass_on(to: &Recorder, event: &Descriptor, payload: &[u8]) -> u64 {
    let [block, txn, account, span] = event.content_ext;
    // The program that recorded the original passed the payload in parts: the fixed struct, and the arrays. This
    // function does so, too.
    let fixed = ExecEvent::schema().event(event.event_type).unwrap().payload.map_or(0, |info| info.bytes);
    let (fixed, arrays) = payload.split_at(fixed);
    recordv!(to => raw(event.event_type), [fixed, arrays]; ext[0] = block, ext[1] = txn, ext[2] = account, ext[3] = span)
}

/// Decodes an event, encodes it, and records it with the same type, fields, arrays and extension words. Returns the
/// new seqno.
pub fn encode_again(to: &Recorder, event: &Descriptor, payload: &[u8]) -> u64 {
    let [block, txn, account, span] = event.content_ext;
    macro_rules! again {
        ($event:ident) => {
            record!(to => ExecEvent::$event; block = block, txn = txn, account_index = account, span = span)
        };
        ($event:ident, $payload:expr) => {
            record!(to => ExecEvent::$event, $payload; block = block, txn = txn, account_index = account, span = span)
        };
        ($event:ident, $payload:expr, [$($part:expr),*]) => {
            recordv!(to => ExecEvent::$event, $payload, [$($part),*]; block = block, txn = txn, account_index = account, span = span)
        };
    }
    match ExecPayload::decode(event.event_type, payload).unwrap() {
        ExecPayload::RecordError(_) => panic!("seqno {} could not be recorded", event.seqno),
        ExecPayload::BlockStart(payload) => again!(BlockStart, payload),
        ExecPayload::BlockReject(payload) => again!(BlockReject, payload),
        ExecPayload::BlockPerfEvmEnter => again!(BlockPerfEvmEnter),
        ExecPayload::BlockPerfEvmExit => again!(BlockPerfEvmExit),
        ExecPayload::BlockEnd(payload) => again!(BlockEnd, payload),
        ExecPayload::BlockQc(payload) => again!(BlockQc, payload),
        ExecPayload::BlockFinalized(payload) => again!(BlockFinalized, payload),
        ExecPayload::BlockVerified(payload) => again!(BlockVerified, payload),
        ExecPayload::TxnHeaderStart(view) => {
            again!(TxnHeaderStart, view.fixed, [view.data.as_bytes(), view.blob_hashes.as_bytes()])
        }
        ExecPayload::TxnAccessListEntry(view) => again!(TxnAccessListEntry, view.fixed, [view.storage_keys.as_bytes()]),
        ExecPayload::TxnAuthListEntry(payload) => again!(TxnAuthListEntry, payload),
        ExecPayload::TxnHeaderEnd => again!(TxnHeaderEnd),
        ExecPayload::TxnReject(payload) => again!(TxnReject, payload),
        ExecPayload::TxnPerfEvmEnter => again!(TxnPerfEvmEnter),
        ExecPayload::TxnPerfEvmExit => again!(TxnPerfEvmExit),
        ExecPayload::TxnEvmOutput(payload) => again!(TxnEvmOutput, payload),
        ExecPayload::TxnLog(view) => again!(TxnLog, view.fixed, [view.topics.as_bytes(), view.data.as_bytes()]),
        ExecPayload::TxnCallFrame(view) => {
            again!(TxnCallFrame, view.fixed, [view.input.as_bytes(), view.return_value.as_bytes()])
        }
        ExecPayload::TxnEnd => again!(TxnEnd),
        ExecPayload::AccountAccessListHeader(payload) => again!(AccountAccessListHeader, payload),
        ExecPayload::AccountAccess(payload) => again!(AccountAccess, payload),
        ExecPayload::StorageAccess(payload) => again!(StorageAccess, payload),
        ExecPayload::EvmError(payload) => again!(EvmError, payload),
    }
}
