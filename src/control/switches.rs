//! The parts of a program that take directives: the filters of `tracing`, and the domains of recorders.

use super::wire::DomainState;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A part of a program that takes directives from clients.
pub(crate) trait Switchable: Send + Sync {
    /// Checks a directive. Returns `Ok(false)` if it is none for this switch.
    ///
    /// # Errors
    /// Returns the reason, as text, if the directive is one for this switch and is wrong.
    fn takes(&self, directive: &str) -> Result<bool, String>;

    /// Puts all wishes into force, in place of the earlier ones. They have passed [`Self::takes`]. Returns what their
    /// clients should know, or an empty text.
    fn set_wishes(&self, directives: &[String]) -> String;

    /// Returns the directives that the program itself has set, or an empty text.
    fn configured(&self) -> String;

    /// Returns the directives in force, or an empty text.
    fn effective(&self) -> String;

    /// Returns the domains that this switch can switch.
    fn domains(&self) -> Vec<DomainState>;
}

static SWITCHES: Mutex<Vec<Weak<dyn Switchable>>> = Mutex::new(Vec::new());

/// Makes a switch known to the server of this process, as long as the switch lives.
pub(crate) fn register(switch: &Arc<dyn Switchable>) {
    let mut switches = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    switches.retain(|known| known.strong_count() > 0);
    switches.push(Arc::downgrade(switch));
}

/// Returns the switches that live.
pub(super) fn all() -> Vec<Arc<dyn Switchable>> {
    let switches = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    switches.iter().filter_map(Weak::upgrade).collect()
}
