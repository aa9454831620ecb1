//! The parts of a program that take directives: the filters of `tracing`, and the domains of recorders.

use super::served;
use super::wire::SwitchedDomain;
use crate::shm::lock_with_timeout;
use std::sync::{Arc, Mutex};

/// A part of a program that takes directives from clients.
pub(crate) trait Switchable: Send + Sync {
    /// Returns false if the part has ended.
    fn is_alive(&self) -> bool;

    /// Checks a directive. Returns `Ok(false)` if it is none for this part.
    ///
    /// # Errors
    /// Returns the reason, as text, if the directive is one for this part and is wrong.
    fn takes(&self, directive: &str) -> Result<bool, String>;

    /// Puts all filter overrides into force, in place of the earlier ones. Each filter override is a list of directives
    /// that have passed [`Self::takes`]. Returns what their clients should know, or an empty text.
    fn set_overrides(&self, overrides: &[String]) -> String;

    /// Returns the directives that the program itself has set, or an empty text.
    fn configured(&self) -> String {
        String::new()
    }

    /// Returns the directives in force, or an empty text.
    fn effective(&self) -> String {
        String::new()
    }

    /// Returns the domains that this part can switch.
    fn domains(&self) -> Vec<SwitchedDomain> {
        Vec::new()
    }
}

static SWITCHES: Mutex<Vec<Arc<dyn Switchable>>> = Mutex::new(Vec::new());

/// Makes a part of the program known to the servers of this process, as long as it is alive. They put the filter
/// overrides of their clients into force there.
pub(crate) fn register(part: Arc<dyn Switchable>) {
    let Some(mut switches) = lock_with_timeout(&SWITCHES) else { return };
    switches.retain(|known| known.is_alive());
    switches.push(part);
    drop(switches);
    changed();
}

/// Makes the servers of this process put the filter overrides of their clients into force once more, because something
/// that takes directives has come.
pub(crate) fn changed() {
    served::of_process().changed();
}

/// Returns the parts that are alive.
pub(super) fn all() -> Vec<Arc<dyn Switchable>> {
    let switches = lock_with_timeout(&SWITCHES);
    switches.iter().flat_map(|all| all.iter()).filter(|part| part.is_alive()).map(Arc::clone).collect()
}
