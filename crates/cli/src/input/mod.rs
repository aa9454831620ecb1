//! What the verbs read: rings, programs, and files of recordings.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod awaited;
pub(crate) mod decoder;
pub(crate) mod directories;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[cfg_attr(
    not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code, reason = "only `profile` looks for rings of processes")
)]
pub(crate) mod family;
pub(crate) mod found;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod held;
pub(crate) mod history;
pub(crate) mod measured;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod process;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod program;
pub(crate) mod reading;
pub(crate) mod saved;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod servers;
pub(crate) mod state;
