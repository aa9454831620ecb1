//! The number of subscribers and layers that record to [`PERF`], and a list of the call sites of this crate's own
//! macros. While the number is 0, nothing filters these call sites: if [`PERF`] has a recorder, they are on.
//!
//! When the last of these subscribers and layers is dropped, this module ends the filtering: `tracing` asks about call
//! sites when a subscriber is added, but not when one is dropped.

use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::tracing::record::macro_sites::site::MacroSite;
use crate::tracing::record::perf_recorder::global::PERF;
use std::sync::{Mutex, MutexGuard, PoisonError};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The call sites that have been registered. While the lock is held, nobody else is called.
static SITES: Mutex<Vec<&'static MacroSite>> = Mutex::new(Vec::new());

fn sites() -> MutexGuard<'static, Vec<&'static MacroSite>> {
    SITES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a call site that is registered now.
pub(in crate::tracing::record) fn add_site(site: &'static MacroSite) {
    sites().push(site);
}

/// Returns true if there is a subscriber or layer that records to [`PERF`]. Without one nobody filters, and everything
/// is recorded.
pub(in crate::tracing::record) fn are_there() -> bool {
    // Relaxed: nothing else is ordered by it. `tracing` asks all call sites again when a sink comes into use.
    COUNT.load(Ordering::Relaxed) > 0
}

/// Whether a subscriber or layer is counted.
#[derive(Debug)]
pub(in crate::tracing::record) struct Counted(AtomicBool);

impl Counted {
    pub(in crate::tracing::record) const fn not() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Counts the subscriber or layer.
    pub(in crate::tracing::record) fn count(&self) {
        if !self.0.swap(true, Ordering::Relaxed) {
            // Under the lock: the drop of the last one has switched all call sites on, or finds this one.
            let _section = LockedSection::enter();
            let _sites = sites();
            COUNT.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if !self.0.load(Ordering::Relaxed) {
            return;
        }
        // In a forked child, another thread may have held the lock at the fork.
        if PERF.installed().is_some_and(|recorder| !recorder.belongs_to_this_process()) {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let _section = LockedSection::enter();
        let sites = sites();
        if COUNT.fetch_sub(1, Ordering::Relaxed) == 1 {
            sites.iter().for_each(|site| site.follow_nobody());
        }
    }
}
