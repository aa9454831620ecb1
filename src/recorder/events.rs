//! Which typed events a recorder takes: those that its ring says it holds.

use super::config::ContentDescription;
use super::handle::Recorder;
use crate::layout::extension;
use crate::ring::memory::MappedMemory;
use crate::sync::{AtomicUsize, Ordering};

/// What tells one type of events from all others, and what a ring says of it. Made when the program is compiled, so
/// that the recording path only compares an address.
pub(crate) struct EventsIdentity {
    /// An address that no other type of the process has.
    pub(crate) id: *const (),
    pub(crate) content_type: u16,
    pub(crate) schema_hash: fn() -> [u8; 32],
}

/// The events that a recorder has taken last: so that their schema is compared once and not with each event.
#[derive(Debug)]
pub(super) struct TakenEvents(AtomicUsize);

impl TakenEvents {
    pub(super) const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }
}

impl ContentDescription {
    /// Whether these are its events. One that says nothing of their schema is believed about the content type.
    fn is_of(&self, events: &EventsIdentity) -> bool {
        self.content_type == events.content_type
            && (self.schema_hash == [0; 32] || self.schema_hash == (events.schema_hash)())
    }
}

impl Recorder {
    /// Whether the ring was made for these events: a load and a compare for those that it took last.
    #[inline(always)]
    pub(crate) fn takes(&self, events: &'static EventsIdentity) -> bool {
        // Relaxed: the number says all there is to say; the description never changes.
        self.core.taken_events.0.load(Ordering::Relaxed) == events.id.addr() || self.look_at(events)
    }

    #[cold]
    #[inline(never)]
    fn look_at(&self, events: &'static EventsIdentity) -> bool {
        let takes = self.description().is_of(events);
        if takes {
            self.core.taken_events.0.store(events.id.addr(), Ordering::Relaxed);
        }
        takes
    }

    /// Counts an event that was not recorded because the ring holds others.
    #[cold]
    pub(crate) fn refuse_event(&self) {
        self.core.add_to_counter(extension::COUNT_FOREIGN_EVENTS, 1);
    }
}

/// How many events were refused.
pub(super) fn refused(memory: &MappedMemory) -> u64 {
    memory.header_value(extension::COUNT_FOREIGN_EVENTS)
}
