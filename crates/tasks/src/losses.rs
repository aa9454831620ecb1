//! The time since which all events of a process are known.

use eventring::reader::GapCause;

/// What the rings of a process have lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// The rings that have lost something since their last event that is known.
    open: Vec<u32>,
    /// The latest time at which something may be lost.
    until_nanos: u64,
}

impl Losses {
    /// Takes a gap of a ring.
    pub(crate) fn gap(&mut self, ring: u32, cause: GapCause) {
        if cause.may_hide_events() && !self.open.contains(&ring) {
            self.open.push(ring);
        }
    }

    /// Takes an event of a ring: what the ring has lost is older.
    #[inline]
    pub(crate) fn event(&mut self, ring: u32, epoch_nanos: u64) {
        if !self.open.is_empty() && self.open.contains(&ring) {
            self.open.retain(|open| *open != ring);
            self.until_nanos = self.until_nanos.max(epoch_nanos);
        }
    }

    /// Returns true if no ring can have lost an event since this time.
    #[inline]
    pub(crate) fn has_all_since(&self, epoch_nanos: u64) -> bool {
        self.open.is_empty() && self.until_nanos <= epoch_nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_ring_has_lost_is_older_than_its_next_event_and_a_loss_at_its_end_may_be_anything() {
        let mut losses = Losses::default();
        assert!(losses.has_all_since(0));
        losses.gap(1, GapCause::Skipped);
        losses.gap(1, GapCause::NeverCommitted);
        assert!(losses.has_all_since(0));
        losses.gap(1, GapCause::Overwritten);
        losses.event(0, 10);
        assert!(!losses.has_all_since(10));
        losses.event(1, 20);
        assert!(!losses.has_all_since(19) && losses.has_all_since(20));
        losses.event(0, 30);
        assert!(losses.has_all_since(20));
    }
}
