//! The check that a recorder gets typed events of its ring's own schema, and no others.

use super::config::ContentDescription;
use super::handle::Recorder;
use crate::layout::extension;
use crate::sync::Ordering;

/// Identity of one type of events. For most events, a recorder compares only the address `id`.
pub(crate) struct EventsIdentity {
    /// Address that identifies the type. No other type of the process has this address.
    pub(crate) id: *const (),
    pub(crate) content_type: u16,
    pub(crate) schema_hash: fn() -> [u8; 32],
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
    /// Returns true if the ring was made for events of the type `events`. If this type was also the last one accepted,
    /// the check costs one load and one comparison.
    #[inline(always)]
    pub(crate) fn takes(&self, events: &'static EventsIdentity) -> bool {
        // Relaxed: no other memory depends on this word. If the word holds another id, the slow path decides by the
        // ring's description, which never changes.
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

    /// Counts an event that `record!` did not record, because the ring holds events of another schema.
    #[cold]
    pub(crate) fn refuse_event(&self) {
        self.core.add_to_counter(extension::COUNT_FOREIGN_EVENTS, 1);
    }
}
