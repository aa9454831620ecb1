//! The identity of a ring.

use crate::format::ring::{CapturedRing, name_of, process_key};
use eventring::reader::Reader;

/// The identity of a ring, which tells it from all others: its host and name, the key of its process, and the time at
/// which it was made.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RingIdentity {
    pub(crate) host: String,
    pub(crate) name: String,
    pub(crate) process_key: u64,
    pub(crate) created_epoch_nanos: u64,
}

impl RingIdentity {
    pub(crate) fn new(ring: &CapturedRing) -> Self {
        Self {
            host: ring.host.clone(),
            name: ring.name.clone(),
            process_key: ring.process_key,
            created_epoch_nanos: ring.created_epoch_nanos,
        }
    }

    pub(crate) fn of_reader(host: &str, reader: &Reader) -> Self {
        Self {
            host: host.to_owned(),
            name: name_of(reader),
            process_key: process_key(reader),
            created_epoch_nanos: reader.info().extension.map_or(0, |extension| extension.created_epoch_nanos),
        }
    }
}

impl std::fmt::Display for RingIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{:016x}-{}", self.host, self.name, self.process_key, self.created_epoch_nanos)
    }
}
