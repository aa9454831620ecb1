//! The input of the verbs: rings, programs and files of recordings. If the input cannot be read, the error has advice.
//!
//! | file | idea |
//! |---|---|
//! | `directories`, `patterns` | the files of rings, and the names that fit a pattern |
//! | `programs/` | programs and processes: their rings, servers, threads |
//! | `ring_args` | the arguments that name a ring |
//! | `awaited` | the rings of a capture, also rings that are made later |
//! | `saved` | captures, or rings that are read like a capture |
//! | `measured` | captures whose figures are compared |
//! | `reading` | the progress of reading |
//! | `ring/` | facts about a ring |
//! | `names/` | the names of events and fields |
//! | `advice` | the errors of readers, with advice |

pub(crate) mod advice;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod awaited;
pub(crate) mod directories;
pub(crate) mod measured;
pub(crate) mod names;
pub(crate) mod patterns;
pub(crate) mod programs;
pub(crate) mod reading;
pub(crate) mod ring;
pub(crate) mod ring_args;
pub(crate) mod saved;

/// The pause between two searches for a ring that is not there yet. It is short, because a program may live for only a
/// few milliseconds.
pub(crate) const LOOK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Returns the time of this system, in nanoseconds since the epoch.
pub(crate) fn now_epoch_nanos() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
