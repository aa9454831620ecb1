//! The core of eventring's protocol, and the latch of its clock, compiled for a model checker. The models themselves
//! are in `src/ring/models` and `src/clock/model.rs`, beside the code that they test.

#![cfg(any(loom, shuttle))]
#![allow(dead_code, unused_imports, reason = "the models use a part of what these folders hold")]

#[cfg(all(loom, shuttle))]
compile_error!("choose one of the features loom and shuttle");

mod checker;
mod clock;
#[path = "../../../src/layout/mod.rs"]
mod layout;
#[path = "../../../src/locked_section.rs"]
mod locked_section;
#[path = "../../../src/ring/mod.rs"]
mod ring;
#[path = "../../../src/segmented.rs"]
mod segmented;
#[path = "../../../src/sync.rs"]
mod sync;
