//! Serving a ring through the server of its process.

use super::config::ContentDescription;
use super::core::Core;
use super::domain_switch::DomainState;
use super::handle::Recorder;
use super::header::Shard;
pub(super) use crate::control::Export;
use crate::control::{DOMAIN, ServedInfo, Switchable, SwitchedDomain, export, register};
use crate::shm;
use std::sync::{Arc, Weak};

/// Puts a ring on the list of the server of this process, as long as the returned value lives. Returns `None` if the
/// ring cannot be opened once more.
pub(super) fn serve(
    file: &shm::OwnedRingFile,
    description: &ContentDescription,
    shard: Shard,
    name: Option<&str>,
) -> Option<Export> {
    let name = match (name, file.path().and_then(std::path::Path::file_name)) {
        (Some(name), _) => name.to_owned(),
        (None, Some(name)) => name.to_string_lossy().into_owned(),
        (None, None) => description.content_name().to_owned(),
    };
    let info = ServedInfo {
        id: 0,
        name,
        path: file.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
        content_type: description.content_type(),
        content_name: description.content_name().to_owned(),
        schema_hash: description.schema_hash,
        bytes: file.bytes(),
        shard_group: shard.group,
        shard_index: shard.index as u32,
    };
    export(info, shm::open_read_only(file.descriptor()).ok()?)
}

/// The domains of a recorder, as clients of the server switch them.
struct SteeredDomains {
    core: Weak<Core>,
}

/// Makes the domains of a recorder known to the servers of this process.
pub(super) fn make_domains_known(recorder: &Recorder) {
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
