//! The core of eventring's protocol, and the latch of its clock, compiled for a model checker. The models themselves
//! are in `src/ring/models`, `src/now/models.rs` and `src/clock/model.rs`, beside the code that they test.

#![cfg(any(loom, shuttle))]
#![allow(dead_code, unused_imports, reason = "the models use a part of what these folders hold")]

#[cfg(all(loom, shuttle))]
compile_error!("choose one of the features loom and shuttle");

mod checker;
mod clock;
#[path = "../../../src/layout/mod.rs"]
mod layout;
/// The cells of the present, without the file that they lie in.
#[path = "../../../src/now"]
mod now {
    mod lock_cell;
    #[cfg(all(test, loom))]
    mod models;
    mod pair;
    mod span_cell;
    mod task_cell;
}
#[path = "../../../src/ring/mod.rs"]
mod ring;
#[path = "../../../src/sync/mod.rs"]
mod sync;
