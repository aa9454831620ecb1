//! Finds the events with which spans begin, in one shard (ring) of a recorder: events that are not copied yet, and
//! events before the first copied event.

use eventring::reader::{Cursor, Descriptor, Next, Seek};
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt};

/// The number of events that a lookahead passes at most while they are being recorded.
const UNREADY_MAX: usize = 256;

/// A cursor in a shard, ahead of the one that copies.
pub(super) struct Lookahead {
    cursor: Cursor,
    /// The seqnos that the lookahead has passed because their events were being recorded.
    unready: Vec<u64>,
}

impl Lookahead {
    pub(super) fn new(copying: &Cursor) -> Self {
        Self { cursor: copying.clone(), unready: Vec::new() }
    }

    /// Reads on to the present end of the shard, and calls `found` with each span that begins on the way. `copying` is
    /// the cursor that copies.
    ///
    /// Does not wait for an event that another thread is just recording, because the beginning that is sought may lie
    /// behind it. The next call looks for that event again.
    pub(super) fn read_on(&mut self, copying: &Cursor, mut found: impl FnMut(&Descriptor, &Cursor)) {
        if self.cursor.next_seqno() < copying.next_seqno() {
            *self = Self::new(copying);
        }
        let mut earlier = self.cursor.clone();
        self.unready.retain(|seqno| {
            earlier.seek(Seek::Seqno(*seqno));
            let next = earlier.next();
            see(&next, &earlier, &mut found);
            next == Next::NotReady
        });
        // Writers may be as fast as the lookahead, so the end is set before the reading begins.
        let end = self.cursor.next_seqno().saturating_add(self.cursor.lag());
        while self.cursor.next_seqno() < end {
            let seqno = self.cursor.next_seqno();
            let next = self.cursor.next();
            see(&next, &self.cursor, &mut found);
            if next == Next::NotReady {
                if self.unready.len() >= UNREADY_MAX {
                    return;
                }
                if self.cursor.pass_unready(seqno) > 0 {
                    self.unready.push(seqno);
                }
            }
        }
    }
}

/// Calls `found` with each beginning and each end of a span that the shard still has from the time before the cursor
/// that copies.
pub(super) fn read_past(copying: &Cursor, mut found: impl FnMut(&Descriptor, &Cursor)) {
    let end = copying.next_seqno();
    let mut cursor = copying.clone();
    cursor.seek(Seek::Oldest);
    let mut was_unready = 0;
    while cursor.next_seqno() < end {
        let seqno = cursor.next_seqno();
        match cursor.next() {
            Next::Event(event) => {
                let ext = PerfExt::from_words(event.content_ext);
                let kind = PerfEvent::from_code(event.event_type);
                if kind.is_some_and(|kind| kind == PerfEvent::SpanNew || ext.closes_span(kind)) {
                    found(&event, &cursor);
                }
            }
            Next::Gap(_) => {}
            // In a sparse file, an event may be found only at the second look.
            Next::NotReady if was_unready == seqno => _ = cursor.pass_unready(end - 1),
            Next::NotReady => was_unready = seqno,
        }
    }
}

fn see(next: &Next, cursor: &Cursor, found: &mut impl FnMut(&Descriptor, &Cursor)) {
    if let Next::Event(event) = next
        && event.event_type == PerfEvent::SpanNew.code()
    {
        found(event, cursor);
    }
}
