//! A plugin: a shared library that a program loads and calls. The plugin records its own spans. The program does not
//! use eventring.
//!
//! ```console
//! $ cargo build --example plugin      # makes target/debug/examples/libplugin.so
//! ```
//!
//! After the plugin has recorded, `dlclose` does not unload its code, because its rings live as long as the process. If
//! the program loads the plugin again, the same code continues to record.

/// Does the plugin's work for one request.
#[unsafe(no_mangle)]
pub extern "C" fn answer(request: u32) {
    // The first call sets recording up. For later calls this fails, because the recorder is there already.
    let _ = eventring::tracing::try_init("plugin");
    let _span = tracing::info_span!("request", request).entered();
    tracing::info!("answered");
}
