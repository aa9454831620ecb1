//! What users write on the command line, and what it means.

pub(crate) mod amounts;
pub(crate) mod fields;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod filter;
pub(crate) mod limit;
pub(crate) mod patterns;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod processes;
pub(crate) mod ring_args;
pub(crate) mod rotation;
pub(crate) mod selection;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
pub(crate) use crate::other_systems::processes;
