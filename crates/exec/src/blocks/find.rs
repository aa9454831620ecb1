//! Finding the event with which reading begins.

use super::news::Start;
use crate::dialect::Dialect;
use eventring::reader::{Cursor, Next, PayloadRead, Seek};
use eventring::schema::exec::ExecEvent;

/// Returns the seqno of the place, if the ring has it. Reads what the ring has, but few payloads.
pub(super) fn find(cursor: &Cursor, dialect: &Dialect, wanted: Start) -> Option<u64> {
    let mut cursor = cursor.clone();
    cursor.seek(Seek::Oldest);
    let end = cursor.next_seqno().saturating_add(cursor.lag());
    let (mut buffer, mut scratch) = (Vec::new(), Vec::new());
    let (mut found, mut is_after, mut is_first) = (None, false, true);
    while cursor.next_seqno() < end {
        let Next::Event(event) = cursor.next() else {
            if cursor.lag() == 0 {
                break;
            }
            cursor.pass_unready(end - 1);
            continue;
        };
        let kind = dialect.meaning(event.event_type);
        let is_consensus =
            matches!(kind, Some(ExecEvent::BlockQc | ExecEvent::BlockFinalized | ExecEvent::BlockVerified));
        if is_after && is_consensus {
            (found, is_after) = (Some(event.seqno), false);
        }
        if kind != Some(ExecEvent::BlockStart) {
            continue;
        }
        let PayloadRead::Valid(bytes) = cursor.payload(&event, &mut buffer) else { continue };
        let Ok(start) = dialect.block_start(event.event_type, bytes, &mut scratch) else { continue };
        match wanted {
            Start::Number(number) if start.block_tag.block_number == number => found = Some(event.seqno),
            Start::Id(id) if start.block_tag.id == id => found = Some(event.seqno),
            // The ring begins right after it.
            Start::AfterFinalized(number)
                if is_first && number.checked_add(1) == Some(start.block_tag.block_number) =>
            {
                found = Some(event.seqno);
            }
            Start::AfterFinalized(number) => is_after |= start.block_tag.block_number == number,
            _ => {}
        }
        is_first = false;
    }
    found
}
