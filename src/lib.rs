//! An embedded event recorder: typed events and `tracing` spans in shared-memory rings that other processes read live.

// The derives name this crate `::eventring`, also within it.
extern crate self as eventring;

// Pairs of a feature and what it needs; see `docs/ARCHITECTURE.md` for the code map.
mod arch;
pub mod layout;
#[allow(dead_code, reason = "models use part of the protocol")]
mod ring;
pub mod schema;
mod sync;
