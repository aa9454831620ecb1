//! The recorder that `record!` gets from a global recorder.

use super::global_recorder::{ASK, GlobalRecorder, OFF, OVERRIDES_ONLY};
use super::overrides;
use crate::recorder::{EventsIdentity, Recorder, Reservation};
use crate::schema::EventType;

/// The recorder that `record!` records to at this moment. [`GlobalRecorder::active`] returns it.
#[derive(Clone, Debug)]
pub enum ActiveRecorder {
    /// The installed recorder.
    Installed(&'static Recorder),
    /// The calling thread's override.
    Override(Recorder),
}

/// Returns the identity of `E` that recorders compare.
#[inline(always)]
pub(crate) const fn identity<E: EventType>() -> &'static EventsIdentity {
    const {
        &EventsIdentity {
            // The address of `INFO` identifies the event type. The derive makes `INFO` a static, so `INFO` has one
            // address. A program may implement `EventType` without the derive, and then `INFO` may have several
            // addresses. In this case recorders still work, but compare the schema hash more often.
            id: std::ptr::from_ref(E::INFO).cast(),
            content_type: E::CONTENT_TYPE,
            schema_hash: E::schema_hash,
        }
    }
}

impl GlobalRecorder {
    /// Creates a global recorder that holds no recorder yet. The name appears in messages.
    pub const fn new(name: &'static str) -> Self {
        Self::empty(name)
    }

    /// Returns the recorder to record to at this moment, whatever the schema of its events is. Returns `None` if
    /// there is no recorder, or if recording is switched off.
    ///
    /// A forked child gets the recorder of its parent process until it installs a recorder of its own. The parent's
    /// recorder records nothing in the child: [`ActiveRecorder::is_enabled`] returns false there.
    #[inline(always)]
    pub fn active(&'static self) -> Option<ActiveRecorder> {
        match self.state() {
            OFF => None,
            OVERRIDES_ONLY | ASK => self.active_slow(),
            _ => self.installed().map(ActiveRecorder::Installed),
        }
    }

    /// Returns the recorder to which `record!` records events of `E` at this moment. Returns `None` if [`Self::active`]
    /// returns `None`. Also returns `None` if the recorder's ring was made for events of another schema (content type
    /// or schema hash), because a reader would decode the event wrongly. The event is then not recorded, but counted
    /// ([`RecorderStats::foreign_events`](crate::recorder::RecorderStats)).
    #[inline(always)]
    pub fn active_for<E: EventType>(&'static self) -> Option<ActiveRecorder> {
        self.active_in::<E>(u64::MAX)
    }

    /// Returns the same as [`Self::active_for`], or `None` if the event's domain is switched off. `domain` is the bit
    /// of the domain, or all bits if the event belongs to no domain. It is a constant of the call, so an event without
    /// a domain costs nothing more than [`Self::active_for`].
    #[inline(always)]
    pub(crate) fn active_in<E: EventType>(&'static self, domain: u64) -> Option<ActiveRecorder> {
        let has_domain = domain != u64::MAX;
        if has_domain && !self.may_record(domain) {
            return None;
        }
        let identity = identity::<E>();
        match self.state() {
            OFF => None,
            events if events == identity.id.addr() => {
                let installed = self.installed().filter(|installed| !has_domain || installed.records(domain));
                installed.map(ActiveRecorder::Installed)
            }
            _ => self.active_for_slow(identity, domain),
        }
    }

    #[cold]
    #[inline(never)]
    fn active_slow(&'static self) -> Option<ActiveRecorder> {
        // This function takes no lock. `record!` may run in a signal handler that has interrupted the holder of the
        // lock, or in a forked child where no thread will release the lock. Waiting for the lock would then never
        // end.
        let overriding = overrides::of_this_thread(self).map(ActiveRecorder::Override);
        overriding.or_else(|| match self.state() {
            OFF | OVERRIDES_ONLY => None,
            _ => self.installed().map(ActiveRecorder::Installed),
        })
    }

    #[cold]
    #[inline(never)]
    fn active_for_slow(&'static self, events: &'static EventsIdentity, domain: u64) -> Option<ActiveRecorder> {
        let active = self.active_slow().filter(|active| active.recorder().records(domain))?;
        if !active.recorder().takes(events) {
            active.recorder().refuse_event();
            return None;
        }
        if let ActiveRecorder::Installed(recorder) = active {
            // Stores in the state that the recorder accepts these events, so that the next event of this type takes
            // the fast path. If another thread holds the lock, nothing is stored, and the next event tries again.
            if let Some(mut switch) = self.try_lock()
                // Stores nothing if `recorder` is not the installed recorder any more. In a forked child, another
                // recorder may have been installed since `recorder` was checked.
                && self.installed().is_some_and(|installed| std::ptr::eq(installed, recorder))
            {
                switch.events = events.id.addr();
                self.update(&switch);
            }
        }
        Some(active)
    }

    /// Returns true if `record!` on the calling thread records through this global recorder now, either to the
    /// installed recorder or to an override of this thread.
    pub fn is_enabled(&'static self) -> bool {
        self.active().is_some_and(|active| active.is_enabled())
    }

    pub(super) fn change_overrides(&'static self, change: isize) {
        let mut switch = self.lock();
        switch.overrides = switch.overrides.saturating_add_signed(change);
        self.update(&switch);
    }
}

impl ActiveRecorder {
    /// Returns the recorder.
    #[inline(always)]
    pub fn recorder(&self) -> &Recorder {
        match self {
            Self::Installed(recorder) => recorder,
            Self::Override(recorder) => recorder,
        }
    }

    /// Records an event like [`Recorder::record`].
    #[inline(always)]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.recorder().record(event_type, content_ext, payload)
    }

    /// Records an event like [`Recorder::recordv`].
    #[inline(always)]
    pub fn recordv(&self, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        self.recorder().recordv(event_type, content_ext, payload)
    }

    /// Reserves a payload like [`Recorder::reserve`].
    pub fn reserve(&self, event_type: u16, content_ext: [u64; 4], payload_bytes: u64) -> Option<Reservation<'_>> {
        self.recorder().reserve(event_type, content_ext, payload_bytes)
    }

    /// Returns the same as [`Recorder::is_enabled`].
    pub fn is_enabled(&self) -> bool {
        self.recorder().is_enabled()
    }
}
