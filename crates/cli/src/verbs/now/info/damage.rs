//! Damaged headers: values that no writer can have written.

use eventring::reader::{Reader, RingInfo};

/// The smallest [`RingInfo::last_seqno`] that proves damage. All larger ones prove it, too.
const SEQNO_MAX: u64 = i64::MAX as u64;

/// Returns a message if the numbers in the ring's header contradict each other, and otherwise `None`.
pub(super) fn find(reader: &Reader) -> Option<String> {
    problem(&reader.info())?;
    // The contradiction may be a false alarm, because a live writer changes the header while its words are read one
    // after the other. So the header is read again. A false last seqno of 0 does not come twice: the first reading saw
    // payload bytes, and a writer hands out a seqno before it hands out payload bytes, so the second reading sees this
    // seqno. A false window start after the next payload byte would need a writer that fills nearly the whole payload
    // buffer between two loads, in both readings.
    problem(&reader.info())
}

fn problem(info: &RingInfo) -> Option<String> {
    let RingInfo { last_seqno, next_payload_byte, buffer_window_start, .. } = *info;
    if last_seqno >= SEQNO_MAX {
        return Some("its last sequence number is 2^63 − 1 or more, which no recorder can reach".into());
    }
    if last_seqno == 0 && (next_payload_byte, buffer_window_start) != (0, 0) {
        return Some(format!(
            "its last sequence number is 0, as in an empty ring, but its next payload byte is {next_payload_byte}, and its \
             window starts at {buffer_window_start}"
        ));
    }
    if buffer_window_start > next_payload_byte {
        return Some(format!(
            "its window starts at payload byte {buffer_window_start}, after {next_payload_byte}, the next byte to be handed out"
        ));
    }
    None
}
