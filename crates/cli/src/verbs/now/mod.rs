//! Verbs that look at what is there now. (`watch` and `top` have their folders beside `verbs/`.)

#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod check;
pub(crate) mod info;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(crate) mod list;
pub(crate) mod open;
pub(crate) mod tasks;
pub(crate) mod top;
pub(crate) mod watch;
