//! The recorder that a global recorder gives to `record!`.

use super::ambient::{AmbientWords, ambient_ext};
use super::global_recorder::{ASK, GlobalRecorder, OFF, OVERRIDES_ONLY};
use super::overrides;
use crate::recorder::{EventsIdentity, Recorder, Reservation};
use crate::schema::EventType;

/// The recorder to record to now, as [`GlobalRecorder::active`] returns it.
#[derive(Clone, Debug)]
pub enum ActiveRecorder {
    /// The installed recorder.
    Installed(&'static Recorder),
    /// The calling thread's override.
    Override(Recorder),
}

/// Event type that names a global recorder. The `recorder` attribute of the `EventType` derive implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no recorder of its own",
    note = "declare one: `#[event(recorder = GLOBAL)]` on the enum; or name one: `record!(recorder => EVENT, …)`"
)]
pub trait RecordsTo: EventType {
    /// Returns the global recorder.
    fn global_recorder() -> &'static GlobalRecorder;

    /// Calls `f` with the extension words that scopes ([`ExtScope`](super::ExtScope)) have set on the calling thread
    /// for events of this type.
    #[doc(hidden)]
    #[inline(always)]
    fn with_ambient<R>(f: impl FnOnce(&AmbientWords) -> R) -> R {
        f(&AmbientWords::new())
    }

    /// Returns the extension words that this event has if the call of `record!` does not give them: the words that
    /// scopes have set ([`ExtScope`](super::ExtScope)), and the id of the current span.
    #[inline(always)]
    fn default_ext(self) -> [u64; 4] {
        ambient_ext(self)
    }
}

/// Returns the identity of `E` that recorders compare.
#[inline(always)]
pub(crate) const fn identity<E: EventType>() -> &'static EventsIdentity {
    const {
        &EventsIdentity {
            // The address of `INFO` serves as identity. The derive makes `INFO` a static, which has one address. If a
            // program's own `INFO` is not a static, it may have several addresses. Then recorders only compare the
            // schema hash more often.
            id: std::ptr::from_ref(E::INFO).cast(),
            content_type: E::CONTENT_TYPE,
            schema_hash: E::schema_hash,
        }
    }
}

impl GlobalRecorder {
    /// Makes a global recorder that holds no recorder yet; `name` is for messages.
    pub const fn new(name: &'static str) -> Self {
        Self::empty(name)
    }

    /// Returns the recorder to record to now, whatever the schema of its events is. Returns `None` if there is no
    /// recorder, or if it is switched off. In a forked child this is the parent's recorder until the child installs
    /// another recorder. The parent's recorder records nothing in the child ([`ActiveRecorder::is_enabled`] returns
    /// false).
    #[inline(always)]
    pub fn active(&'static self) -> Option<ActiveRecorder> {
        match self.state() {
            OFF => None,
            OVERRIDES_ONLY | ASK => self.active_slow(),
            _ => self.installed().map(ActiveRecorder::Installed),
        }
    }

    /// Returns the recorder to which `record!` records events of `E` now, like [`Self::active`]. Returns `None` also if
    /// the recorder's ring was made for events with another content type or schema hash. A reader would decode such an
    /// event by the ring's schema, which is wrong. So the event is not recorded, but counted
    /// ([`RecorderStats::foreign_events`](crate::recorder::RecorderStats)).
    #[inline(always)]
    pub fn active_for<E: EventType>(&'static self) -> Option<ActiveRecorder> {
        let identity = identity::<E>();
        match self.state() {
            OFF => None,
            events if events == identity.id.addr() => self.installed().map(ActiveRecorder::Installed),
            _ => self.active_for_slow(identity),
        }
    }

    #[cold]
    #[inline(never)]
    fn active_slow(&'static self) -> Option<ActiveRecorder> {
        // No lock is taken: `record!` may run in a signal handler that has interrupted the lock's holder, or in a
        // forked child in which no thread will release the lock.
        let overriding = overrides::of_this_thread(self).map(ActiveRecorder::Override);
        overriding.or_else(|| match self.state() {
            OFF | OVERRIDES_ONLY => None,
            _ => self.installed().map(ActiveRecorder::Installed),
        })
    }

    #[cold]
    #[inline(never)]
    fn active_for_slow(&'static self, events: &'static EventsIdentity) -> Option<ActiveRecorder> {
        let active = self.active_slow()?;
        if !active.recorder().takes(events) {
            active.recorder().refuse_event();
            return None;
        }
        if let ActiveRecorder::Installed(recorder) = active {
            // The result is stored in the state, so that later events take the fast path. If another thread holds the
            // lock, nothing is stored, and the next event tries again.
            if let Some(mut switch) = self.try_lock()
                // The result is stored only if `recorder` is still installed. In a forked child, another recorder may
                // have replaced it since it was checked.
                && self.installed().is_some_and(|installed| std::ptr::eq(installed, recorder))
            {
                switch.events = events.id.addr();
                self.update(&switch);
            }
        }
        Some(active)
    }

    /// Returns true if `record!` records through this global recorder now, also to an override of this thread.
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
