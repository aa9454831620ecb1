//! A slot for a process-wide recorder: one word that says whether to record.

use super::leaked::Leaked;
use super::overrides;
use crate::recorder::{Recorder, Reservation};
use crate::schema::EventType;
use crate::sync::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Nothing records.
const OFF: usize = 0;
/// The installed recorder records.
const ON: usize = 1;
/// Some thread has an override: look.
const ASK: usize = 2;

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
    switch: Mutex<Switch>,
}

struct Switch {
    enabled: bool,
    overrides: usize,
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

impl GlobalRecorder {
    /// An empty slot; `name` is for messages.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            state: AtomicUsize::new(OFF),
            installed: Leaked::empty(),
            switch: Mutex::new(Switch { enabled: false, overrides: 0 }),
        }
    }

    /// The slot's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The recorder to record to now; `None` if there is none, or it is switched off. In a forked child it is the parent's, which
    /// records nothing there ([`ActiveRecorder::is_enabled`] is false), until another one is installed.
    #[inline(always)]
    pub fn active(&'static self) -> Option<ActiveRecorder> {
        // Relaxed: the word only says where to look; the pointer is loaded with acquire.
        match self.state.load(Ordering::Relaxed) {
            OFF => None,
            ON => self.installed().map(ActiveRecorder::Installed),
            _ => self.ask(),
        }
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
            let enabled = self.lock().enabled;
            self.installed().filter(|_| enabled).map(ActiveRecorder::Installed)
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
        switch.enabled = true;
        self.update(&switch);
        true
    }

    /// Switches recording through this slot on or off while the program runs. Without an installed recorder it stays off.
    pub fn set_enabled(&'static self, enabled: bool) {
        let mut switch = self.lock();
        switch.enabled = enabled && self.installed().is_some();
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
        let state = match (switch.overrides, switch.enabled) {
            (0, false) => OFF,
            (0, true) => ON,
            _ => ASK,
        };
        self.state.store(state, Ordering::Relaxed);
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
