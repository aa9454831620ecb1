//! A process-wide `static` that holds an installed recorder, or none.

use super::already_installed::AlreadyInstalled;
use super::leaked::Leaked;
use crate::recorder::Recorder;
use crate::sync::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State: no thread records through this global recorder.
pub(super) const OFF: usize = 0;
/// State: some thread has an override, and no other thread records.
pub(super) const OVERRIDES_ONLY: usize = 1;
/// State: the installed recorder is on. Some thread may have an override, or the type of events that the recorder
/// accepts is not known yet.
pub(super) const ASK: usize = 2;

/// A process-wide recorder: a `static` that is off until a recorder is installed in it.
///
/// While a global recorder is off, a `record!` to it costs one relaxed load and a branch. A program declares a global
/// recorder for each content type of its own and names it in the event-type enum (`#[event(recorder = ORDERS)]`).
///
/// ```
/// use eventring::global::GlobalRecorder;
///
/// static ORDERS: GlobalRecorder = GlobalRecorder::new("orders");
/// assert!(ORDERS.active().is_none());
/// ```
///
/// The global recorder of `tracing` spans is `eventring::tracing::PERF`, which holds a `PerfRecorder`.
pub struct GlobalRecorder<R: Installable = Recorder> {
    name: &'static str,
    /// The word that shows whether anything is recorded here: [`OFF`], [`OVERRIDES_ONLY`], [`ASK`], or the identity of
    /// the events for which the installed recorder is on. Only [`Self::update`] stores it, and derives it from
    /// `switch`.
    state: AtomicUsize,
    /// The installed recorder. An installed recorder is never freed, because threads may be recording to it.
    installed: Leaked<R>,
    switch: Mutex<Switch>,
    /// Lock that is held while a ring is made for this global recorder.
    making: Mutex<()>,
}

/// The values from which [`GlobalRecorder::update`] computes the state.
pub(super) struct Switch {
    /// True if the installed recorder is switched on.
    pub(super) is_on: bool,
    /// Number of overrides of all threads.
    pub(super) overrides: usize,
    /// The identity of the events that the installed recorder accepts, or [`ASK`] if this is not known yet.
    pub(super) events: usize,
}

/// A kind of recorder that a [`GlobalRecorder`] can hold.
pub trait Installable: Sized + Send + Sync + 'static {
    /// Returns true if this process made the recorder, and did not inherit it by a fork.
    fn belongs_to_this_process(&self) -> bool;

    /// Returns true if the recorder is on when it is installed.
    fn is_on_when_installed(&self) -> bool {
        true
    }

    /// Calls `change`, which installs or switches a recorder and returns true if this had an effect. Some kinds of
    /// recorders must take other steps after such a change.
    fn change(change: impl FnOnce() -> bool) {
        change();
    }

    /// Switches the recorder, which is installed in `global`, on or off.
    fn switch_installed(&'static self, global: &'static GlobalRecorder<Self>, is_on: bool) {
        global.store_switch(is_on);
    }
}

impl Installable for Recorder {
    fn belongs_to_this_process(&self) -> bool {
        self.belongs_to_this_process()
    }
}

impl<R: Installable> GlobalRecorder<R> {
    /// Makes a global recorder that holds no recorder; `name` is for messages.
    pub(crate) const fn empty(name: &'static str) -> Self {
        Self {
            name,
            state: AtomicUsize::new(OFF),
            installed: Leaked::empty(),
            switch: Mutex::new(Switch { is_on: false, overrides: 0, events: ASK }),
            making: Mutex::new(()),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the installed recorder, switched on or not.
    #[inline(always)]
    pub fn installed(&'static self) -> Option<&'static R> {
        self.installed.get()
    }

    /// Returns the state.
    #[inline(always)]
    pub(super) fn state(&self) -> usize {
        // Relaxed: the word only chooses the path; the pointer to the recorder is loaded with acquire.
        self.state.load(Ordering::Relaxed)
    }

    /// Returns true if no thread records through this global recorder. This takes one relaxed load.
    #[cfg(feature = "tracing")]
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        self.state() == OFF
    }

    /// Locks the values on which the state depends.
    pub(super) fn lock(&self) -> MutexGuard<'_, Switch> {
        // A poisoned lock may be used: no code panics while it holds this lock, and even after a panic the values would
        // be consistent.
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the switch. Returns `None` if another thread holds the lock.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Switch>> {
        self.switch.try_lock().ok()
    }

    /// Decides whether anything is recorded here, and publishes the decision.
    pub(super) fn update(&self, switch: &Switch) {
        let state = match (switch.is_on, switch.overrides) {
            (false, 0) => OFF,
            (false, _) => OVERRIDES_ONLY,
            (true, 0) => switch.events,
            (true, _) => ASK,
        };
        self.state.store(state, Ordering::Relaxed);
    }

    /// Stores whether the installed recorder is switched on.
    pub(crate) fn store_switch(&self, is_on: bool) {
        let mut switch = self.lock();
        switch.is_on = is_on;
        self.update(&switch);
    }
}

impl<R: Installable> GlobalRecorder<R> {
    /// Installs `recorder` and switches the global recorder on. A recorder that was inherited by a fork does not count
    /// as installed, so that a forked child can continue with its own ring.
    ///
    /// # Errors
    /// A recorder is installed already. Then nothing changes, and the error contains `recorder`.
    pub fn install(&'static self, recorder: R) -> Result<(), AlreadyInstalled<R>> {
        let mut refused = Some(recorder);
        R::change(|| {
            let mut switch = self.lock();
            if self.installed().is_some_and(R::belongs_to_this_process) {
                return false;
            }
            let Some(recorder) = refused.take() else { return false };
            switch.is_on = recorder.is_on_when_installed();
            switch.events = ASK;
            // If the replaced recorder was inherited by a fork, its mapping of the parent's ring is not removed,
            // because a thread may be using it.
            self.installed.set(recorder);
            self.update(&switch);
            true
        });
        refused.map_or(Ok(()), |recorder| Err(AlreadyInstalled::new(self.name, recorder)))
    }

    /// Switches recording through this global recorder on or off while the program runs. Without an installed recorder
    /// it stays off.
    pub fn set_enabled(&'static self, enabled: bool) {
        if let Some(recorder) = self.installed() {
            recorder.switch_installed(self, enabled);
        }
    }

    /// Installs the recorder that `make` makes, and returns it. If several threads call this at the same time, one of
    /// them calls `make`, and the other threads get the error that a recorder is installed.
    pub(crate) fn install_new<E>(
        &'static self,
        make: impl FnOnce() -> Result<R, E>,
    ) -> Result<&'static R, NotInstalled<E>> {
        let _turn = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // This check comes before `make`, so that no ring is made that could not be installed.
        if self.installed().is_some_and(R::belongs_to_this_process) {
            return Err(NotInstalled::AlreadyInstalled);
        }
        let recorder = make().map_err(NotInstalled::NotMade)?;
        self.install(recorder).map_err(|_| NotInstalled::AlreadyInstalled)?;
        self.installed().ok_or(NotInstalled::AlreadyInstalled)
    }
}

/// The reason why no new recorder was installed.
pub(crate) enum NotInstalled<E> {
    /// A recorder that is installed already.
    AlreadyInstalled,
    /// A recorder that could not be made.
    NotMade(E),
}

impl<R: Installable> std::fmt::Debug for GlobalRecorder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GlobalRecorder").field("name", &self.name).finish_non_exhaustive()
    }
}
