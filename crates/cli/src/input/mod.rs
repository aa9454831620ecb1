//! The input of the verbs: rings, programs, and files of recordings; and advice if the input cannot be read.

pub(crate) mod advice;
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
pub(crate) mod fields;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod filter_overrides;
pub(crate) mod history;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod holder;
pub(crate) mod measured;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod open_files;
pub(crate) mod patterns;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod process;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod processes;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod program;
pub(crate) mod reading;
pub(crate) mod ring_report;
pub(crate) mod saved;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod servers;
pub(crate) mod state;
pub(crate) mod survey;
pub(crate) mod unknown_names;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
pub(crate) use crate::other_systems::{open_files, processes};

/// The pause between two searches for a ring that is not there yet. It is short, because a program may live for only a
/// few milliseconds.
pub(crate) const LOOK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
