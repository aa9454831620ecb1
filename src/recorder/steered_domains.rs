//! The domains of a recorder, as clients of the server of its process switch them.

use super::core::Core;
use super::domain_switch::DomainState;
use super::handle::Recorder;
use crate::control::{DOMAIN, Switchable, SwitchedDomain, register};
use std::sync::{Arc, Weak};

/// The domains of a recorder, as clients of the server switch them.
struct SteeredDomains {
    core: Weak<Core>,
}

/// Makes the domains of a recorder known to the servers of this process.
pub(super) fn make_known(recorder: &Recorder) {
    register(Arc::new(SteeredDomains { core: Arc::downgrade(&recorder.core) }));
}

impl SteeredDomains {
    fn recorder(&self) -> Option<Recorder> {
        self.core.upgrade().map(|core| Recorder { core })
    }
}

impl Switchable for SteeredDomains {
    fn is_alive(&self) -> bool {
        self.core.strong_count() > 0
    }

    fn takes(&self, directive: &str) -> Result<bool, String> {
        let Some(name) = directive.strip_prefix(DOMAIN) else { return Ok(false) };
        Ok(self.domains().iter().any(|known| known.name == name))
    }

    fn set_overrides(&self, overrides: &[String]) -> String {
        let Some(recorder) = self.recorder() else { return String::new() };
        let directives = overrides.iter().flat_map(|filter_override| filter_override.split(','));
        let names: Vec<&str> = directives.filter_map(|directive| directive.strip_prefix(DOMAIN)).collect();
        // Each name has passed `takes`.
        recorder.set_requested_domains(&names).map_or_else(|unknown| unknown.to_string(), |()| String::new())
    }

    fn domains(&self) -> Vec<SwitchedDomain> {
        let domains = self.recorder().map(|recorder| recorder.domains()).unwrap_or_default();
        let switched =
            |DomainState { name, is_enabled, is_forbidden }| SwitchedDomain { name, is_enabled, is_forbidden };
        domains.into_iter().map(switched).collect()
    }
}
