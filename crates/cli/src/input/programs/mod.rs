//! Programs and processes: their rings, servers, threads.
//!
//! | file | idea |
//! |---|---|
//! | `processes` | rings by the name or number of a program |
//! | `program` | a program that a verb starts, and its rings |
//! | `process`, `family` | processes of this machine; a process and its children |
//! | `holder` | the process that writes a ring |
//! | `open_files` | rings without a file name, which programs hold open; why a program has no ring |
//! | `servers`, `strangers` | the servers of programs, and warnings about the programs of other users |
//! | `filter_overrides` | filter overrides of this program in running programs |
//! | `stacks` | the present stacks of threads |

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[cfg_attr(
    not(all(feature = "profile", any(target_arch = "x86_64", target_arch = "aarch64"))),
    allow(dead_code, reason = "only `profile` looks for rings of processes")
)]
pub(crate) mod family;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod filter_overrides;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod holder;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod open_files;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod process;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod processes;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod program;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod servers;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod stacks;
pub(crate) mod strangers;

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
pub(crate) use crate::other_systems::{open_files, processes};
