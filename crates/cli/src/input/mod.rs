//! The input of the verbs: rings, programs, and files of recordings; and advice if the input cannot be read.
//!
//! | file | idea |
//! |---|---|
//! | `directories`, `patterns` | the files of rings, and the names that fit a pattern |
//! | `programs/` | programs and processes: their rings, servers, threads |
//! | `ring_args` | the arguments that name a ring |
//! | `awaited` | rings that are there, and those that come |
//! | `saved` | captures, or rings as a capture |
//! | `measured` | captures whose figures are compared |
//! | `reading` | the progress of reading |
//! | `ring/` | what is known of a ring |
//! | `names/` | the names of events and fields |
//! | `advice` | the errors of all of them, with advice |

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
