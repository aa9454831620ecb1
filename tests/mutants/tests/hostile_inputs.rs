//! `hostile_inputs` of the program's tests, as far as it needs only the library, with faults built in.
#![allow(dead_code, reason = "shared by several programs")]

#[path = "../../../crates/cli/tests/it/hostile/bytes/mod.rs"]
mod bytes;
mod hostile {
    pub(crate) use crate::bytes;
}
#[path = "../../../crates/cli/tests/it/hostile/inputs.rs"]
mod hostile_inputs;
