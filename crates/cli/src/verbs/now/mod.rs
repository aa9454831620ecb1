//! The verbs that show rings, programs and events as they are now.

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod check;
pub(crate) mod info;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod list;
pub(crate) mod open;
pub(crate) mod tasks;
pub(crate) mod top;
pub(crate) mod watch;
