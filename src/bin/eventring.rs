//! The `eventring` program.
fn main() {}
