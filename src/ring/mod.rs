//! The protocol: reserve, claim, allocate payload memory, fill, commit, observe.
//!
//! Everything here works on [`memory::RingMemory`]: a mapped file in a program, a heap vector in unit tests, a loom or
//! shuttle model in model checks. `docs/ARCHITECTURE.md` explains the steps. `docs/ORDERING.md` explains every pair of
//! memory orderings of this module.

mod active;
mod allocation;
pub(crate) mod claim;
pub(crate) mod commit;
pub(crate) mod holes;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub(crate) mod memory;
pub(crate) mod mutation;
pub(crate) mod observe;
pub(crate) mod payload;
pub(crate) mod reserve;
#[allow(dead_code, reason = "builds without some feature have no use for some")]
pub(crate) mod start_table;
pub mod step;
pub(crate) mod writer;

#[cfg(any(test, loom, shuttle))]
pub(crate) mod heap;
#[cfg(all(test, not(any(loom, shuttle))))]
mod lifetimes;
#[cfg(all(test, any(loom, shuttle)))]
pub(crate) mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod open_reservations;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
