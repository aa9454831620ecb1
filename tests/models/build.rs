//! Turns the feature that chooses the model checker into the `cfg` that the sources of the protocol test. The `cfg` is
//! set for this crate only.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for checker in ["loom", "shuttle"] {
        if std::env::var_os(format!("CARGO_FEATURE_{}", checker.to_uppercase())).is_some() {
            println!("cargo::rustc-cfg={checker}");
        }
    }
}
