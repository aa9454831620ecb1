//! See `tests/hostile/mod.rs`.
#![no_main]

#[path = "../../hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::received(data));
