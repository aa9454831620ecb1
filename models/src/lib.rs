//! The protocol core of eventring, and its clock, under a model checker. The models are in `src/ring/models` and
//! `src/clock/model.rs`, beside what they test.

#![cfg(any(loom, shuttle))]
#![allow(dead_code, unused_imports, reason = "the models use a part of what these folders hold")]

#[cfg(all(loom, shuttle))]
compile_error!("choose one of the features loom and shuttle");

#[cfg(loom)]
#[path = "../../src/arch/mod.rs"]
mod arch;
mod checker;
#[cfg(loom)]
#[path = "../../src/clock/mod.rs"]
mod clock;
#[path = "../../src/layout/mod.rs"]
mod layout;
#[path = "../../src/ring/mod.rs"]
mod ring;
#[path = "../../src/sync.rs"]
mod sync;
