//! Sets the `cfg` with which this crate builds the library's sources with deliberate faults and stopping places.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=eventring_mutants");
    for name in ["loom", "shuttle", "eventring_portable", "eventring_mutants", "eventring_unsupported", "fuzzing"] {
        println!("cargo::rustc-check-cfg=cfg({name})");
    }
}
