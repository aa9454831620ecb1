//! An embedded event recorder: typed events and `tracing` spans in shared-memory rings that other processes read live.

// The derives name this crate `::eventring`, also within it.
extern crate self as eventring;

mod arch;
#[cfg(all(feature = "capture", not(any(loom, shuttle))))]
pub mod capture;
#[cfg(not(any(loom, shuttle)))]
pub mod clock;
#[cfg(all(feature = "export", not(any(loom, shuttle))))]
pub mod export;
#[cfg(not(any(loom, shuttle)))]
pub mod global;
pub mod layout;
#[cfg(not(any(loom, shuttle)))]
mod macros;
#[cfg(not(any(loom, shuttle)))]
pub mod reader;
#[cfg(not(any(loom, shuttle)))]
pub mod recorder;
#[cfg_attr(any(loom, shuttle), allow(dead_code, reason = "models use part of the protocol"))]
mod ring;
#[cfg(not(any(loom, shuttle)))]
pub mod schema;
#[cfg(not(any(loom, shuttle)))]
pub mod shm;
mod sync;
#[cfg(all(feature = "tracing", not(any(loom, shuttle))))]
pub mod tracing;

/// For tests that stop writers: where they can be stopped.
#[cfg(all(eventring_mutants, not(any(loom, shuttle))))]
pub use ring::step;

// Each is a trait and, with the feature `macros`, a derive.
#[doc(hidden)]
#[cfg(not(any(loom, shuttle)))]
pub use macros::support as __private;
#[cfg(not(any(loom, shuttle)))]
pub use schema::{EventPayload, EventType, PayloadField};

/// The examples of the README.
#[cfg(all(doctest, feature = "macros"))]
#[doc = include_str!("../README.md")]
struct Readme;
