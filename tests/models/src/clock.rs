//! The part of the clock that threads share.

#[path = "../../../src/clock/const_fn.rs"]
mod const_fn;
#[path = "../../../src/clock/line.rs"]
mod line;
#[cfg(all(test, loom))]
#[path = "../../../src/clock/model.rs"]
mod model;
#[path = "../../../src/clock/published.rs"]
mod published;
