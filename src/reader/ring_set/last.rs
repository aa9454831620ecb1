//! The position at which the last events of several rings together begin.

use super::super::cursor::{Next, Seek};
use super::ring::SetRing;

/// Moves the rings to the position at which the last `count` events of all rings together begin. Before the call, each
/// ring stands before its own last `count` events. Events that a ring has overwritten before the events that are
/// skipped here are not reported as missing.
pub(super) fn seek_last_of_all(rings: &mut [SetRing], count: u64) {
    // For each event: its time, the index of its ring, and its seqno.
    let mut events: Vec<(u64, usize, u64)> = Vec::new();
    let mut ends = vec![0; rings.len()];
    for (index, ring) in rings.iter().enumerate() {
        let (Some(reader), Some(cursor)) = (ring.reader(), ring.cursor()) else { continue };
        // A second cursor reads the events in advance, so that they do not count as read by the ring's own cursor.
        let mut look = reader.cursor();
        look.seek(Seek::Seqno(cursor.next_seqno()));
        let end = look.next_seqno().saturating_add(look.lag());
        while look.next_seqno() < end {
            match look.next() {
                Next::Event(event) => events.push((event.record_epoch_nanos, index, event.seqno)),
                Next::Gap(_) => {}
                Next::NotReady => break,
            }
        }
        ends[index] = look.next_seqno();
    }
    events.sort_unstable();
    let left_out = events.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    let mut starts = ends;
    for (_, index, seqno) in &events[left_out..] {
        starts[*index] = starts[*index].min(*seqno);
    }
    for (index, (ring, start)) in rings.iter_mut().zip(starts).enumerate() {
        let is_left_out = |(_, of, seqno): &(u64, usize, u64)| *of == index && *seqno < start;
        if events[..left_out].iter().any(is_left_out) {
            ring.seek(Seek::Seqno(start));
        }
    }
}
