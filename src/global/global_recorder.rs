//! A process-wide `static` that holds an installed recorder, or none.

use super::already_installed::AlreadyInstalled;
use super::leaked::Leaked;
use crate::recorder::Recorder;
use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State: no thread records through this global recorder.
pub(super) const OFF: usize = 0;
/// State: at least one thread has an override. Threads without an override record nothing.
pub(super) const OVERRIDES_ONLY: usize = 1;
/// State: the installed recorder is on, but each event takes the slow path. Either some thread has an override, or it
/// is not known yet which type of events the recorder accepts.
pub(super) const ASK: usize = 2;

/// A `static` through which the whole process records. It is off until a recorder is installed in it.
///
/// A program declares one global recorder for each of its own content types, and names it on the enum of the events
/// (`#[event(recorder = ORDERS)]`). While a global recorder is off, a `record!` to it costs one relaxed load and a
/// branch.
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
    /// The word that `record!` loads first. It is [`OFF`], [`OVERRIDES_ONLY`], [`ASK`], or the identity of one event
    /// type. The identity means that the installed recorder is on and accepts events of this type. Only
    /// [`Self::update`] stores the word. It computes the word from `switch`.
    state: AtomicUsize,
    /// The bits of the domains whose events may have to be recorded. If a bit is 0, `record!` records no event of the
    /// domain. If it is 1, `record!` looks further. All bits are 1 while some thread has an override. Only
    /// [`Self::update`] stores the word.
    domains: AtomicU64,
    /// The installed recorder. A recorder is never freed after it was installed, because threads may be recording to
    /// it.
    installed: Leaked<R>,
    switch: Mutex<Switch>,
    /// Lock that a thread holds while it makes a ring for this global recorder and installs it.
    making: Mutex<()>,
}

/// The values from which [`GlobalRecorder::update`] computes the state word.
pub(super) struct Switch {
    /// True if the installed recorder is switched on.
    pub(super) is_on: bool,
    /// Number of overrides of all threads.
    pub(super) overrides: usize,
    /// The identity of the event type that the installed recorder accepts, or [`ASK`] if it is not known yet.
    pub(super) events: usize,
}

/// A kind of recorder that a [`GlobalRecorder`] can hold.
pub trait Installable: Sized + Send + Sync + 'static {
    /// Returns true if this process made the recorder. Returns false if the process inherited the recorder by a fork.
    fn belongs_to_this_process(&self) -> bool;

    /// Returns the bits of the domains that the recorder records now, or 0 if it records nothing.
    fn recorded_domains(&self) -> u64 {
        u64::MAX
    }

    /// The recorder was installed in `global`. From now on, calls [`GlobalRecorder::refresh`] of `global` after each
    /// change of [`Self::recorded_domains`].
    fn follow(&'static self, _global: &'static GlobalRecorder<Self>) {}

    /// Returns true if the recorder is on when it is installed.
    fn is_on_when_installed(&self) -> bool {
        true
    }

    /// Calls `change`, which installs or switches a recorder. `change` returns true if anything has changed. A kind of
    /// recorder overrides this function if more must be done after a change.
    fn change(change: impl FnOnce() -> bool) {
        change();
    }

    /// Switches this recorder on or off. The recorder is installed in `global`.
    fn switch_installed(&'static self, global: &'static GlobalRecorder<Self>, is_on: bool) {
        global.store_switch(is_on);
    }
}

impl Installable for Recorder {
    fn belongs_to_this_process(&self) -> bool {
        self.belongs_to_this_process()
    }

    fn recorded_domains(&self) -> u64 {
        self.recorded_domains()
    }

    fn follow(&'static self, global: &'static GlobalRecorder<Self>) {
        self.follow_switch(|| global.refresh());
    }
}

impl<R: Installable> GlobalRecorder<R> {
    /// Makes a global recorder that holds no recorder. The name appears in messages.
    pub(crate) const fn empty(name: &'static str) -> Self {
        Self {
            name,
            state: AtomicUsize::new(OFF),
            domains: AtomicU64::new(0),
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
        // Relaxed: this word only chooses the path. The pointer to the recorder is loaded separately, with acquire
        // (`Leaked::get`).
        self.state.load(Ordering::Relaxed)
    }

    /// Returns true if events of the domain with this bit may have to be recorded. If not, the recorder's own word
    /// need not be asked.
    #[inline(always)]
    pub(super) fn may_record(&self, domain: u64) -> bool {
        // Relaxed, as for the state. Another thread may have changed the words since. So the recorder's own word is
        // asked, too, before an event is recorded.
        self.domains.load(Ordering::Relaxed) & domain != 0
    }

    /// Returns true if no thread records through this global recorder. The check is one relaxed load.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        self.state() == OFF
    }

    /// Locks the values on which the state depends.
    pub(super) fn lock(&self) -> MutexGuard<'_, Switch> {
        // A poisoned lock may be used. No code panics while it holds this lock. Even if code did, the values would be
        // consistent.
        self.switch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the values on which the state depends. Returns `None` without waiting if another thread holds the lock.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Switch>> {
        self.switch.try_lock().ok()
    }

    /// Computes the state word from `switch` and stores it. From then on, the new word decides whether threads record,
    /// and on which path.
    pub(super) fn update(&self, switch: &Switch) {
        let recorded = self.installed.get().filter(|_| switch.is_on).map_or(0, R::recorded_domains);
        let (state, domains) = match (recorded, switch.overrides) {
            (0, 0) => (OFF, 0),
            (0, _) => (OVERRIDES_ONLY, u64::MAX),
            (_, 0) => (switch.events, recorded),
            (_, _) => (ASK, u64::MAX),
        };
        self.domains.store(domains, Ordering::Relaxed);
        self.state.store(state, Ordering::Relaxed);
    }

    /// Computes the state word again, after the installed recorder has changed which domains it records.
    pub(super) fn refresh(&self) {
        self.update(&self.lock());
    }

    /// Stores whether the installed recorder is switched on.
    pub(crate) fn store_switch(&self, is_on: bool) {
        let mut switch = self.lock();
        switch.is_on = is_on;
        self.update(&switch);
    }
}

impl<R: Installable> GlobalRecorder<R> {
    /// Installs `recorder` and switches the global recorder on. A recorder that the process inherited by a fork does
    /// not count as installed. So a forked child can install a recorder with a ring of its own.
    ///
    /// # Errors
    /// Returns an error if a recorder is installed already. Then nothing changes, and the error contains `recorder`.
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
            // In a forked child this replaces the recorder that the child has inherited. The old recorder stays in
            // memory, with its mapping of the parent's ring, because a thread may be using it.
            self.installed.set(recorder);
            self.update(&switch);
            true
        });
        match (refused, self.installed()) {
            (Some(recorder), _) => return Err(AlreadyInstalled::new(self.name, recorder)),
            (None, Some(installed)) => installed.follow(self),
            (None, None) => {}
        }
        Ok(())
    }

    /// Switches recording through this global recorder on or off while the program runs. Has no effect if no recorder
    /// is installed.
    pub fn set_enabled(&'static self, enabled: bool) {
        if let Some(recorder) = self.installed() {
            recorder.switch_installed(self, enabled);
        }
    }

    /// Installs the recorder that `make` makes, and returns it. Threads that call this at the same time run one after
    /// another. After one of them has installed a recorder, the others get an error, and their `make` is not called.
    pub(crate) fn install_new<E>(
        &'static self,
        make: impl FnOnce() -> Result<R, E>,
    ) -> Result<&'static R, NotInstalled<E>> {
        // The thread may be inside a call of this function already, whose `make` has allocated memory: the program's
        // allocator may call this function, too.
        if LockedSection::is_inside() {
            return Err(NotInstalled::AlreadyInstalled);
        }
        let _turn = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        // This check comes before `make`. Otherwise `make` could create a ring for a recorder that cannot be
        // installed.
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
