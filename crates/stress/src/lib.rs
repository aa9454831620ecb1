//! Helpers that the tests of several crates share, and the program `soak`. This crate is not published.
#![allow(missing_docs, reason = "helpers of tests")]

pub mod chain;
pub mod child;
pub mod files;
pub mod forked;
pub mod huge_pages;
pub mod market;
pub mod missing;
pub mod mounted;
pub mod own_rings;
pub mod random;
pub mod real_data;
pub mod reference;
pub mod rings;
pub mod switched_off;
pub mod users;

pub use missing::{missing, skipped};
