//! Where the last events of several rings begin.

use super::rings::Rings;
use eventring::reader::{Cursor, Next, Seek};

/// Moves cursors, each of which stands before the last `count` events of its ring, on to where the last `count` events of all rings together
/// begin. What had been overwritten before events that are left out now is of no interest.
pub(super) fn of_all(rings: &Rings, cursors: &mut [Cursor], count: u64) {
    // When, in which ring, which number.
    let mut events: Vec<(u64, usize, u64)> = Vec::new();
    let mut behind = Vec::new();
    for (index, cursor) in cursors.iter().enumerate() {
        // Another one: what it reads is not counted as read.
        let mut look = rings.get(index).reader.cursor();
        look.seek(Seek::Seqno(cursor.next_seqno()));
        let end = look.next_seqno().saturating_add(look.lag());
        while look.next_seqno() < end {
            match look.next() {
                Next::Event(event) => events.push((event.record_epoch_nanos, index, event.seqno)),
                Next::Gap(_) => {}
                Next::NotReady => break,
            }
        }
        behind.push(look.next_seqno());
    }
    events.sort_unstable();
    let left_out = events.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    let mut starts = behind;
    for (_, index, seqno) in &events[left_out..] {
        starts[*index] = starts[*index].min(*seqno);
    }
    for (index, (cursor, start)) in cursors.iter_mut().zip(starts).enumerate() {
        let is_left_out = |(_, ring, seqno): &(u64, usize, u64)| *ring == index && *seqno < start;
        if events[..left_out].iter().any(is_left_out) {
            cursor.seek(Seek::Seqno(start));
        }
    }
}
