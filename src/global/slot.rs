//! A slot for a process-wide recorder: one word that says whether to record.

use super::leaked::Leaked;
use super::overrides;
use crate::recorder::{EventsIdentity, Recorder, Reservation};
use crate::schema::EventType;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Nothing records.
const OFF: usize = 0;
/// Look: some thread has an override, or nobody knows yet whose events the installed recorder takes. Any other number is the
/// [identity](EventsIdentity) of the events for which the installed recorder is on.
const ASK: usize = 1;

/// A process-wide recorder: a `static` that is off until a recorder is installed in it.
///
/// Off, a `record!` to it costs one relaxed load and a branch. A program declares one for each content type of its own and
/// names it in the event-type enum (`#[event(recorder = ORDERS)]`).
///
/// ```
/// use eventring::global::GlobalRecorder;
///
/// static ORDERS: GlobalRecorder = GlobalRecorder::new("orders");
/// assert!(ORDERS.active().is_none());
/// ```
pub struct GlobalRecorder {
    name: &'static str,
    state: AtomicUsize,
    /// Recorders that were installed once are never freed, because threads may be inside them.
    installed: Leaked<Recorder>,
    /// Whether the installed recorder is switched on. Changed under the lock; `record!` asks without, for it may run in a signal handler
    /// that has interrupted the lock's holder, or in a forked child, where nobody will give it back.
    enabled: AtomicBool,
    switch: Mutex<Switch>,
    /// Held while a ring is made for this slot.
    making: Mutex<()>,
}

struct Switch {
    overrides: usize,
    /// The events that the installed recorder takes, or [`ASK`].
    events: usize,
}

/// The recorder to record to now, as [`GlobalRecorder::active`] gives it.
#[derive(Clone, Debug)]
pub enum ActiveRecorder {
    /// The installed one.
    Installed(&'static Recorder),
    /// The calling thread's override.
    Override(Recorder),
}

/// Implemented by event types that have a recorder of their own; the `recorder` attribute of the `EventType` derive does it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no recorder of its own",
    note = "declare one: `#[event(recorder = SLOT)]` on the enum; or name one: `record!(recorder => EVENT, …)`"
)]
pub trait RecordsTo: EventType {
    /// The slot.
    fn slot() -> &'static GlobalRecorder;

    /// The content extension of this event, unless `record!` is told otherwise: the id of the thread's current span in
    /// [`SPAN_WORD`](crate::schema::SPAN_WORD), if the schema has it there.
    #[inline(always)]
    fn default_ext(self) -> [u64; 4] {
        super::flow::span_ext::<Self>()
    }
}

/// What recorders know `E` by.
#[inline(always)]
pub(crate) const fn identity<E: EventType>() -> &'static EventsIdentity {
    const {
        &EventsIdentity {
            // The derive's static. (An `INFO` that is no static may have several addresses; then the hash is looked at more often.)
            id: std::ptr::from_ref(E::INFO).cast(),
            content_type: E::CONTENT_TYPE,
            schema_hash: E::schema_hash,
        }
    }
}

impl GlobalRecorder {
    /// An empty slot; `name` is for messages.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            state: AtomicUsize::new(OFF),
            installed: Leaked::empty(),
            enabled: AtomicBool::new(false),
            switch: Mutex::new(Switch { overrides: 0, events: ASK }),
            making: Mutex::new(()),
        }
    }

    /// The slot's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The recorder to record to now, whatever its events are; `None` if there is none, or it is switched off. In a forked child it is the parent's, which
    /// records nothing there ([`ActiveRecorder::is_enabled`] is false), until another one is installed.
    #[inline(always)]
    pub fn active(&'static self) -> Option<ActiveRecorder> {
        // Relaxed: the word only says where to look; the pointer is loaded with acquire.
        match self.state.load(Ordering::Relaxed) {
            OFF => None,
            ASK => self.ask(),
            _ => self.installed().map(ActiveRecorder::Installed),
        }
    }

    /// The recorder to record events of `E` to now, which is what `record!` uses: as [`Self::active`], but `None`, too, if the
    /// recorder's ring was made for events with another content type or schema hash. Such an event would be read as one of
    /// the ring's schema; it is counted as refused ([`RecorderStats::foreign_events`](crate::recorder::RecorderStats)).
    #[inline(always)]
    pub fn active_for<E: EventType>(&'static self) -> Option<ActiveRecorder> {
        let identity = identity::<E>();
        // Relaxed: as in `active`.
        match self.state.load(Ordering::Relaxed) {
            OFF => None,
            events if events == identity.id.addr() => self.installed().map(ActiveRecorder::Installed),
            _ => self.ask_for(identity),
        }
    }

    #[cold]
    #[inline(never)]
    fn ask_for(&'static self, events: &'static EventsIdentity) -> Option<ActiveRecorder> {
        let active = self.ask()?;
        if !active.recorder().takes(events) {
            active.recorder().refuse_event();
            return None;
        }
        if let ActiveRecorder::Installed(recorder) = active {
            // If somebody has it, the next event asks again.
            if let Ok(mut switch) = self.switch.try_lock()
                // In a forked child another one may have been installed meanwhile.
                && self.installed().is_some_and(|installed| std::ptr::eq(installed, recorder))
            {
                switch.events = events.id.addr();
                self.update(&switch);
            }
        }
        Some(active)
    }

    /// The installed recorder, switched on or not.
    #[inline(always)]
    pub fn installed(&'static self) -> Option<&'static Recorder> {
        self.installed.get()
    }

    #[cold]
    #[inline(never)]
    fn ask(&'static self) -> Option<ActiveRecorder> {
        overrides::of_this_thread(self).map(ActiveRecorder::Override).or_else(|| {
            // Relaxed: a switch, which orders nothing.
            self.installed().filter(|_| self.enabled.load(Ordering::Relaxed)).map(ActiveRecorder::Installed)
        })
    }

    /// Installs `recorder` and switches the slot on. False, and nothing changes, if there is one already; a recorder that was
    /// inherited by a fork does not count.
    pub fn install(&'static self, recorder: Recorder) -> bool {
        let mut switch = self.lock();
        if self.installed().is_some_and(Recorder::belongs_to_this_process) {
            return false;
        }
        // An inherited recorder stays: its mapping is the parent's ring.
        self.installed.set(recorder);
        self.enabled.store(true, Ordering::Relaxed);
        switch.events = ASK;
        self.update(&switch);
        true
    }

    /// Switches recording through this slot on or off while the program runs. Without an installed recorder it stays off.
    pub fn set_enabled(&'static self, enabled: bool) {
        let switch = self.lock();
        self.enabled.store(enabled && self.installed().is_some(), Ordering::Relaxed);
        self.update(&switch);
    }

    /// Whether `record!` records here now, overrides of this thread included.
    pub fn is_enabled(&'static self) -> bool {
        self.active().is_some_and(|active| active.is_enabled())
    }

    pub(super) fn change_overrides(&'static self, change: isize) {
        let mut switch = self.lock();
        switch.overrides = switch.overrides.saturating_add_signed(change);
        self.update(&switch);
    }

    fn update(&self, switch: &Switch) {
        let state = match (switch.overrides, self.enabled.load(Ordering::Relaxed)) {
            (0, false) => OFF,
            (0, true) => switch.events,
            _ => ASK,
        };
        self.state.store(state, Ordering::Relaxed);
    }

    /// Waits while another thread makes a ring for this slot.
    pub(super) fn take_turn_to_install(&self) -> std::sync::MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Switch> {
        // Nothing in here panics while it holds the lock; if it did, the numbers would still be consistent.
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for GlobalRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobalRecorder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ActiveRecorder {
    /// The recorder.
    #[inline(always)]
    pub fn recorder(&self) -> &Recorder {
        match self {
            Self::Installed(recorder) => recorder,
            Self::Override(recorder) => recorder,
        }
    }

    /// As [`Recorder::record`].
    #[inline(always)]
    pub fn record(&self, event_type: u16, content_ext: [u64; 4], payload: &[u8]) -> u64 {
        self.recorder().record(event_type, content_ext, payload)
    }

    /// As [`Recorder::recordv`].
    #[inline(always)]
    pub fn recordv(&self, event_type: u16, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        self.recorder().recordv(event_type, content_ext, payload)
    }

    /// As [`Recorder::reserve`].
    pub fn reserve(&self, event_type: u16, content_ext: [u64; 4], payload_bytes: u64) -> Option<Reservation<'_>> {
        self.recorder().reserve(event_type, content_ext, payload_bytes)
    }

    /// As [`Recorder::is_enabled`].
    pub fn is_enabled(&self) -> bool {
        self.recorder().is_enabled()
    }
}
