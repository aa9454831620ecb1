<<<<<<< HEAD
//! The protocol core of eventring, and its clock, under a model checker. The models are in `src/ring/models` and
//! `src/clock/model.rs`, beside what they test.
=======
//! The protocol core of eventring and the published line of its clock under a model checker. The models are in
//! `src/ring/models` and `src/clock/model.rs`, beside what they test.
>>>>>>> 101d029 (Clock: models moved to the crate models, estimator properties; dev-dependencies as before)

#![cfg(any(loom, shuttle))]
#![allow(dead_code, unused_imports, reason = "the models use a part of what these folders hold")]

#[cfg(all(loom, shuttle))]
compile_error!("choose one of the features loom and shuttle");

#[cfg(loom)]
#[path = "../../src/arch/mod.rs"]
mod arch;
mod checker;
<<<<<<< HEAD
#[cfg(loom)]
#[path = "../../src/clock/mod.rs"]
=======
>>>>>>> 101d029 (Clock: models moved to the crate models, estimator properties; dev-dependencies as before)
mod clock;
#[path = "../../src/layout/mod.rs"]
mod layout;
#[path = "../../src/ring/mod.rs"]
mod ring;
#[path = "../../src/sync.rs"]
mod sync;
