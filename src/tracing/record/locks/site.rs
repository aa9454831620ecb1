//! The call site of a lock, under which readers find its events.

use super::wait::FIELDS;
use super::word::LockWord;
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView};
use crate::sync::Ordering;
use crate::sync::locked_section::LockedSection;
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE};
use std::panic::Location;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The target of the events of locks.
const TARGET: &str = "eventring::sync";

/// The locks with a name that were made at a place, of which there may be many.
struct LockSite {
    name: &'static str,
    place: &'static Location<'static>,
}

/// All that were waited for. They are never given back: there are as many as the program has names and places.
static SITES: Mutex<Vec<&'static LockSite>> = Mutex::new(Vec::new());

impl LockSite {
    fn of(lock: &LockWord) -> Option<&'static Self> {
        let _section = LockedSection::enter()?;
        let mut sites = SITES.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |site: &&&Self| (site.name, site.place) == (lock.name, lock.place);
        if let Some(site) = sites.iter().find(is_its) {
            return Some(site);
        }
        let site: &'static Self = Box::leak(Box::new(Self { name: lock.name, place: lock.place }));
        sites.push(site);
        Some(site)
    }

    fn view(&self) -> CallSiteView<'static> {
        CallSiteView {
            kind: CallSiteKind::Event,
            level: CallSiteLevel::Info,
            name: self.name.into(),
            target: TARGET.into(),
            module: TARGET.into(),
            file: self.place.file().into(),
            line: self.place.line(),
            field_names: FIELDS.map(Into::into).to_vec(),
        }
    }
}

impl LockWord {
    /// Returns the id of the lock's call site, or [`NO_CALL_SITE`] if it cannot be made now.
    pub(super) fn site_id(&self) -> u32 {
        // Acquire, pairs with the release below: the tables have the call site.
        match self.site.load(Ordering::Acquire) {
            NO_CALL_SITE => {
                let Some(site) = LockSite::of(self) else { return NO_CALL_SITE };
                let id = CALL_SITES.id_of_key(ptr::from_ref(site).addr(), || site.view().encode());
                self.site.store(id, Ordering::Release);
                id
            }
            id => id,
        }
    }
}
