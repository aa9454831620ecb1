//! Sets the `cfg`s that build the deliberate faults into this crate.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=eventring_mutants");
    for name in ["loom", "shuttle", "eventring_portable", "eventring_mutants", "eventring_unsupported", "fuzzing"] {
        println!("cargo::rustc-check-cfg=cfg({name})");
    }
}
