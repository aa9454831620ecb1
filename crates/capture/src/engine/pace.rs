//! The timing of the copying thread: when it copies a ring, and how long it sleeps. The thread waits for many events,
//! because copying them together is cheap. It must copy events long before the writer overwrites them. The timing also
//! limits how strongly blocks are compressed.

use crate::engine::sources::RingInput;
use crate::format::header::BLOCK_EVENTS_BYTES;
use std::time::Duration;

/// The number of events that are worth copying.
const EVENTS_DUE: u64 = 16 << 10;
/// A ring is copied at the latest when this part of it is full.
const PART_DUE: u64 = 8;
/// The shortest and the longest pause between two passes over the rings.
const PAUSE_MIN: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(20);
/// The highest rates that the pauses allow for. At these rates, a writer fills a quarter of its ring during a pause.
const EVENTS_PER_SECOND: u64 = 20_000_000;
const PAYLOAD_BYTES_PER_SECOND: u64 = 8 << 30;

/// The events of a ring that were not copied yet.
pub(crate) struct Backlog {
    events: u64,
    payload_bytes: u64,
    descriptor_capacity: u64,
    payload_buf_bytes: u64,
    /// True if the writer has recorded since the ring was last looked at.
    is_growing: bool,
    /// The seqno after the last one that was handed out.
    pub(crate) end_seqno: u64,
}

impl Backlog {
    /// Looks at the header of a ring.
    pub(crate) fn measure(input: &mut RingInput) -> Self {
        let next_seqno = input.cursor.next_seqno();
        let events = input.cursor.lag();
        let end_seqno = next_seqno.saturating_add(events);
        let is_growing = input.last_seqno != end_seqno && !input.reader.is_finished();
        input.last_seqno = end_seqno;
        let geometry = input.reader.geometry();
        Self {
            events,
            payload_bytes: input.reader.next_payload_byte().saturating_sub(input.payload_end),
            descriptor_capacity: geometry.descriptor_capacity(),
            payload_buf_bytes: geometry.payload_buf_bytes(),
            is_growing,
            end_seqno,
        }
    }

    /// Returns the level at which to compress these events. `level` is the requested one. If the ring is so full that
    /// events may soon be overwritten, the level falls, so that the slots come back sooner.
    pub(crate) fn level(&self, level: i32) -> i32 {
        let is_over = |part: u64| {
            self.events > self.descriptor_capacity / 4 * part || self.payload_bytes > self.payload_buf_bytes / 4 * part
        };
        match (self.is_growing && is_over(1), is_over(2)) {
            (true, true) => 0,
            (true, false) => level.min(1),
            (false, _) => level,
        }
    }
}

/// The pace of the copying thread.
pub(crate) struct Pace {
    pause: Duration,
    /// True if a ring was copied in this pass because it had many events.
    is_busy: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { pause: PAUSE_MIN, is_busy: false }
    }
}

impl Pace {
    /// The longest time for which events wait until they are copied, unless the capture is in a hurry.
    pub(crate) const WAIT_MAX: Duration = Duration::from_secs(1);

    /// Returns true if a ring with this backlog should be copied now. `is_late` is true if even a single event should
    /// not wait longer.
    pub(crate) fn is_due(&mut self, backlog: &Backlog, is_late: bool) -> bool {
        let events_due = EVENTS_DUE.min(backlog.descriptor_capacity / PART_DUE);
        let bytes_due = (BLOCK_EVENTS_BYTES as u64).min(backlog.payload_buf_bytes / PART_DUE);
        let is_large = backlog.events >= events_due || backlog.payload_bytes >= bytes_due;
        self.is_busy |= is_large && backlog.events > 0;
        backlog.events > 0 && (is_large || is_late)
    }

    /// Ends a pass over the rings, and sets the pause after it: shorter if rings were due, and longer if none was.
    pub(crate) fn end_pass<'i>(&mut self, rings: impl Iterator<Item = &'i RingInput>) {
        let longest = |input: &RingInput| {
            let geometry = input.reader.geometry();
            let of_events = geometry.descriptor_capacity().saturating_mul(1_000_000_000) / 4 / EVENTS_PER_SECOND;
            let of_bytes =
                geometry.payload_buf_bytes().saturating_mul(1000) / 4 / (PAYLOAD_BYTES_PER_SECOND / 1_000_000);
            Duration::from_nanos(of_events.min(of_bytes))
        };
        let pause_max = rings.map(longest).min().unwrap_or(PAUSE_MAX).clamp(PAUSE_MIN, PAUSE_MAX);
        let pause = if self.is_busy { self.pause / 2 } else { self.pause + self.pause / 4 };
        self.pause = pause.clamp(PAUSE_MIN, pause_max);
        self.is_busy = false;
    }

    pub(crate) fn pause(&self) -> Duration {
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog(events: u64, payload_bytes: u64, is_growing: bool) -> Backlog {
        let (descriptor_capacity, payload_buf_bytes) = (1000, 1 << 20);
        Backlog { events, payload_bytes, descriptor_capacity, payload_buf_bytes, is_growing, end_seqno: 0 }
    }

    #[test]
    fn the_level_falls_as_a_ring_fills_and_only_while_it_fills() {
        let levels = [(100, 0), (251, 0), (501, 0), (10, 300 << 10), (10, 600 << 10)].map(|(events, payload_bytes)| {
            let of = |is_growing| backlog(events, payload_bytes, is_growing).level(3);
            assert_eq!(of(false), 3);
            of(true)
        });
        assert_eq!(levels, [3, 1, 0, 1, 0]);
    }

    #[test]
    fn a_ring_is_due_when_an_eighth_of_it_is_full_or_its_events_are_old() {
        let mut pace = Pace::default();
        let due = [(0, true), (1, false), (1, true), (124, false), (125, false)]
            .map(|(events, is_late)| pace.is_due(&backlog(events, 0, true), is_late));
        assert_eq!(due, [false, false, true, false, true]);
        assert!(pace.is_due(&backlog(1, 1 << 17, true), false));
    }

    #[test]
    fn pauses_become_longer_while_nothing_is_due() {
        let mut pace = Pace::default();
        let pauses: Vec<Duration> = (0..40)
            .map(|_| {
                pace.end_pass(std::iter::empty());
                pace.pause()
            })
            .collect();
        assert!(pauses.is_sorted() && pauses[39] == PAUSE_MAX, "{pauses:?}");
        pace.is_due(&backlog(500, 0, true), false);
        pace.end_pass(std::iter::empty());
        assert_eq!(pace.pause(), PAUSE_MAX / 2);
    }
}
