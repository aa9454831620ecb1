//! A plugin: a shared library that a program loads, calls, and may unload again. The plugin records its own spans. The
//! program itself does not use eventring.
//!
//! ```console
//! $ cargo build --example plugin      # makes target/debug/examples/libplugin.so
//! ```
//!
//! After the plugin has recorded, its code stays in memory, because its rings live as long as the process. So `dlclose`
//! does not unload the code. If the program loads the plugin again, it gets the same code, which continues to record.

/// Does the plugin's work for one request.
#[unsafe(no_mangle)]
pub extern "C" fn answer(request: u32) {
    // The first call sets recording up. For later calls this fails, because the recorder is there already.
    let _ = eventring::tracing::try_init("plugin");
    let _span = tracing::info_span!("request", request).entered();
    tracing::info!("answered");
}
