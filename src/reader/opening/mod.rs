//! Finding and opening a ring: by its name, from memory, from a server, or after its file was removed.

pub(in crate::reader) mod expected;
pub(crate) mod in_memory;
pub(in crate::reader) mod open;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(in crate::reader) mod removed;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub(in crate::reader) mod served;
pub(in crate::reader) mod sparse;
