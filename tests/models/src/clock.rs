//! The part of the clock that all threads share: the latch, which holds the current calibration segment. It is
//! compiled here for the model checker.

#[path = "../../../src/clock/const_fn.rs"]
mod const_fn;
#[path = "../../../src/clock/latch.rs"]
mod latch;
#[cfg(all(test, loom))]
#[path = "../../../src/clock/model.rs"]
mod model;
#[path = "../../../src/clock/segment.rs"]
mod segment;
