//! The typed events that a recorder accepts: the events of its ring's schema.

use super::config::ContentDescription;
use super::handle::Recorder;
use crate::layout::extension;
use crate::ring::memory::MappedMemory;
use crate::sync::{AtomicUsize, Ordering};

/// Identity of one type of events. The identity is a constant, so that recording an event only compares an address.
pub(crate) struct EventsIdentity {
    /// Address that identifies the type: no other type of the process has it.
    pub(crate) id: *const (),
    pub(crate) content_type: u16,
    pub(crate) schema_hash: fn() -> [u8; 32],
}

/// The type of events that a recorder accepted last, so that schemas are not compared for each event.
#[derive(Debug)]
pub(super) struct TakenEvents(AtomicUsize);

impl TakenEvents {
    pub(super) const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }
}

impl ContentDescription {
    /// Returns true if this description has the content type and the schema hash of `events`. If the description has no
    /// schema hash, only the content type is compared.
    fn is_of(&self, events: &EventsIdentity) -> bool {
        self.content_type == events.content_type
            && (self.schema_hash == [0; 32] || self.schema_hash == (events.schema_hash)())
    }
}

impl Recorder {
    /// Returns true if the ring was made for these events. For the type that was accepted last, the check is a load and
    /// a comparison.
    #[inline(always)]
    pub(crate) fn takes(&self, events: &'static EventsIdentity) -> bool {
        // Relaxed: no other memory depends on this word. The description, by which a slow path decides, never changes.
        self.core.taken_events.0.load(Ordering::Relaxed) == events.id.addr() || self.takes_slow(events)
    }

    #[cold]
    #[inline(never)]
    fn takes_slow(&self, events: &'static EventsIdentity) -> bool {
        let takes = self.description().is_of(events);
        if takes {
            self.core.taken_events.0.store(events.id.addr(), Ordering::Relaxed);
        }
        takes
    }

    /// Counts an event that was not recorded because the ring holds events of another schema.
    #[cold]
    pub(crate) fn refuse_event(&self) {
        self.core.add_to_counter(extension::COUNT_FOREIGN_EVENTS, 1);
    }
}

/// Returns the number of refused events.
pub(super) fn refused(memory: &MappedMemory) -> u64 {
    memory.header_value(extension::COUNT_FOREIGN_EVENTS)
}
