//! An embedded event recorder: typed events and `tracing` spans in shared-memory rings that other processes read live.

// Pairs of a feature and what it needs; see `docs/ARCHITECTURE.md` for the code map.
mod arch;
pub mod layout;
#[allow(dead_code, reason = "models use part of the protocol")]
mod ring;
#[cfg(not(any(loom, shuttle)))]
#[doc(hidden)]
pub mod shm;
mod sync;
