//! Finding the position from which on a set returns only the last events of all rings together.

use super::ring::SetRing;
use crate::reader::cursors::cursor::{Next, Seek};

/// Moves the rings to the position where the last `count` events of all rings together begin. Before the call, each
/// ring stands at the first of its own last `count` events. A ring that the call moves reports no gap for events that
/// were overwritten before.
pub(super) fn seek_last_of_all(rings: &mut [SetRing], count: u64) {
    // A tuple for each event: its time, the index of its ring, and its seqno.
    let mut events: Vec<(u64, usize, u64)> = Vec::new();
    let mut ends = vec![0; rings.len()];
    for (index, ring) in rings.iter().enumerate() {
        let (Some(reader), Some(cursor)) = (ring.reader(), ring.cursor()) else { continue };
        // Another cursor (`look`) reads the events in advance, so that the ring's own cursor does not count them as
        // read.
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
