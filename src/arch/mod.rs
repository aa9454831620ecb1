//! Code that differs by machine. `--cfg eventring_portable` forces the portable version of everything here.

#[cfg(all(target_arch = "x86_64", not(any(eventring_portable, loom, shuttle))))]
#[path = "copy_x86_64.rs"]
pub(crate) mod copy;
#[cfg(not(all(target_arch = "x86_64", not(any(eventring_portable, loom, shuttle)))))]
#[path = "copy_portable.rs"]
pub(crate) mod copy;
#[cfg(all(test, not(any(loom, shuttle))))]
mod copy_tests;
#[cfg(all(target_arch = "x86_64", not(any(eventring_portable, loom, shuttle))))]
pub(crate) mod local;
#[cfg(all(target_os = "linux", not(any(eventring_unsupported, loom, shuttle))))]
pub(crate) mod performance_counter;
pub(crate) mod prefetch;
#[cfg(all(feature = "thread-time", not(any(loom, shuttle))))]
pub(crate) mod switches;
pub(crate) mod ticks;
