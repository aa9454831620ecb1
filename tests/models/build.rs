//! Turns the chosen feature into the `cfg` that the protocol's sources know, for this crate alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for checker in ["loom", "shuttle"] {
        if std::env::var_os(format!("CARGO_FEATURE_{}", checker.to_uppercase())).is_some() {
            println!("cargo::rustc-cfg={checker}");
        }
    }
}
