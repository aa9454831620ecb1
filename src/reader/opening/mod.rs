//! Finding and opening a ring: by its name, from memory, from a server, or after its file was removed.

pub(crate) mod in_memory;
pub(in crate::reader) mod open;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod removed;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
mod served;
