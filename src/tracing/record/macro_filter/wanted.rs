//! Whether a call site of this crate's own macros is wanted.

use super::owner_filter::{self, Decision};
use crate::sync::Ordering;
use crate::sync::locked_section::LockedSection;
use crate::tracing::record::macro_sites::active;
use crate::tracing::record::macro_sites::site::{ASK, MacroSite, OFF, ON, UNKNOWN};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sinks::answer::{ANSWER, Answer, noted, state_of};
use std::sync::Arc;
use tracing_core::Metadata;
use tracing_core::callsite::{Callsite, register};
use tracing_core::subscriber::Interest;

impl MacroSite {
    /// Returns true if nothing is to be recorded here. This costs one relaxed load and a branch. The first call
    /// registers the call site, which takes locks.
    #[inline(always)]
    pub fn is_off(&'static self) -> bool {
        // Relaxed: the state publishes no other memory.
        match self.state.load(Ordering::Relaxed) {
            OFF => true,
            UNKNOWN => self.is_off_slow(),
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn is_off_slow(&'static self) -> bool {
        self.register_once().is_none() || self.state.load(Ordering::Relaxed) == OFF
    }

    /// Registers the call site if nobody has. Returns `None` if it cannot be registered now: in a forked child, where
    /// no lock may be taken, because another thread may have held it at the fork; and inside a locked section.
    fn register_once(&'static self) -> Option<()> {
        if PERF.installed().is_some_and(|recorder| !recorder.belongs_to_this_process()) {
            return None;
        }
        // The registration allocates, and the allocator may come here.
        let _section = LockedSection::enter()?;
        // Of several threads, the first registers the call site. The others ask meanwhile.
        if self.state.compare_exchange(UNKNOWN, ASK, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            active::add_site(self);
            register(self);
        }
        Some(())
    }

    /// Returns the recorder in [`PERF`] and the id of the call site, if this call is to be recorded. The call site is
    /// registered.
    #[cold]
    #[inline(never)]
    pub(in crate::tracing::record) fn wanted_id_slow(&'static self) -> Option<(&'static Arc<PerfCore>, u32)> {
        let core = &PERF.active()?.core;
        if !core.belongs_to_this_process() {
            return None;
        }
        let is_wanted = match self.state.load(Ordering::Relaxed) {
            ON => true,
            ASK => !active::are_there() || owner_filter::wants(self.metadata),
            _ => false,
        };
        is_wanted.then(|| (core, self.learn_id(core)))
    }

    /// Returns the state that follows from the answer of all subscribers, and from the one that a sink has noted
    /// meanwhile. Returns `None` if no sink was asked.
    fn answered(&self, of_all: &Interest) -> Option<usize> {
        Some(match noted(ANSWER.replace(0), self.metadata)? {
            _ if of_all.is_never() => OFF,
            Answer::Own(state) => state,
            Answer::OfStack => state_of(of_all),
        })
    }

    /// Returns the state where `tracing` has asked no sink: a filter around it has answered, or the thread has no
    /// subscriber. `tracing` asks that of the thread alone if there is just one.
    fn decided(&self) -> usize {
        match owner_filter::interest(self.metadata) {
            Decision::Of(interest) => self.answered(&interest).unwrap_or(OFF),
            Decision::OfEachThread => ASK,
            Decision::OfThisThread => OFF,
        }
    }
}

impl Callsite for MacroSite {
    /// `tracing` calls this after it has asked all subscribers, whenever a filter, a filter override or the recorder
    /// changes.
    fn set_interest(&self, of_all: Interest) {
        let answered = self.answered(&of_all);
        if !active::are_there() || PERF.active().is_none() {
            return self.follow_nobody();
        }
        self.state.store(answered.unwrap_or_else(|| self.decided()), Ordering::Relaxed);
    }

    fn metadata(&self) -> &Metadata<'_> {
        self.metadata
    }
}
