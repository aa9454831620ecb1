//! See `crates/cli/tests/it/hostile/bytes/mod.rs`.
#![no_main]

#[path = "../../../crates/cli/tests/it/hostile/bytes/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::trace_context(data));
