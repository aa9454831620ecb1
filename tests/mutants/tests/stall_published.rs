//! `stall_published` of the library's tests, with the faults of src/ring/mutation.rs built in.
#![allow(dead_code, reason = "shared by several programs")]

extern crate self as eventring_stress;

#[path = "../../../crates/stress/src/child.rs"]
pub mod child;
#[path = "../../alone/stall/mod.rs"]
pub mod stall;

#[path = "../../alone/stall_published.rs"]
mod stall_published;
