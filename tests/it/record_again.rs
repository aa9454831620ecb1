//! A way to record an execution event of a ring again: its payload is copied byte for byte.

use crate::fixtures::*;
use eventring::reader::Descriptor;
use eventring::schema::EventType as _;

/// Records an event with the type, payload bytes and extension words of `event`. Returns the new seqno.
pub fn pass_on(to: &Recorder, event: &Descriptor, payload: &[u8]) -> u64 {
    let [block, txn, account, span] = event.content_ext;
    // The program that recorded the original passed the payload in parts: the fixed struct, and the arrays. This
    // function does so, too.
    let fixed = ExecEvent::schema().event(event.event_type).unwrap().payload.map_or(0, |info| info.bytes);
    let (fixed, arrays) = payload.split_at(fixed);
    recordv!(to => raw(event.event_type), [fixed, arrays]; ext[0] = block, ext[1] = txn, ext[2] = account, ext[3] = span)
}
