//! Exports the thread-local symbol of the feature `otel-context` from the test programs, as `docs/CONTEXT.md` says.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
