//! Sets `cfg(loom)` or `cfg(shuttle)` by the feature that chooses the model checker. The sources of the protocol ask
//! for these `cfg`s. They are set only for this crate.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for checker in ["loom", "shuttle"] {
        if std::env::var_os(format!("CARGO_FEATURE_{}", checker.to_uppercase())).is_some() {
            println!("cargo::rustc-cfg={checker}");
        }
    }
}
