//! Whether a header says what no writer can have written.

use eventring::reader::{Reader, RingInfo};

/// What [`RingInfo::last_seqno`] is at most.
const SEQNO_MAX: u64 = i64::MAX as u64;

/// What is wrong with the numbers of the ring's header, if something is.
pub(super) fn of(reader: &Reader) -> Option<String> {
    problem(&reader.info())?;
    // The words of a live header are not of one moment. Each of them only grows, and a number is handed out before its payload: what is still
    // wrong at a second look is wrong.
    problem(&reader.info())
}

fn problem(info: &RingInfo) -> Option<String> {
    let RingInfo { last_seqno, next_payload_byte, buffer_window_start, .. } = *info;
    if last_seqno >= SEQNO_MAX {
        return Some("its last sequence number is 2^63 − 1 or more, which nobody lives to record".into());
    }
    if last_seqno == 0 && (next_payload_byte, buffer_window_start) != (0, 0) {
        return Some(format!(
            "its last sequence number is 0, which is that of an empty ring, but its next payload byte is {next_payload_byte}, and its window \
             starts at {buffer_window_start}"
        ));
    }
    if buffer_window_start > next_payload_byte {
        return Some(format!(
            "its window starts at payload byte {buffer_window_start}, behind {next_payload_byte}, which is to be handed out next"
        ));
    }
    None
}
