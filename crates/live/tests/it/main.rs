//! The live engine over rings of this process.

mod engine;
