//! Records with eventring beside another layer of `tracing-subscriber`. The terminal shows INFO and above, and the ring
//! has all levels.
//!
//! ```console
//! $ cargo run --example layer_with_fmt
//! $ eventring watch layer-with-fmt
//! $ eventring clean --ended layer-with-fmt    # removes the rings
//! ```

use eventring::tracing::{PerfRecorder, RecorderLayer};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing::{debug, info, info_span};
use tracing_subscriber::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    // The program makes its own recorder in place of the global one. This recorder leaves the password out, and keeps
    // the rings after the program's end. The terminal still shows the password, because each layer decides for itself.
    let recorder = PerfRecorder::builder().config("layer-with-fmt").redact_fields(["password"]).keep(true).build()?;

    // Each layer can have its own filter. The recorder's layer has none here, so it also gets DEBUG and TRACE.
    tracing_subscriber::registry()
        .with(RecorderLayer::new(recorder))
        .with(tracing_subscriber::fmt::layer().without_time().with_ansi(false).with_filter(LevelFilter::INFO))
        .init();

    for user in ["ada", "grace", "edsger"] {
        let _span = info_span!("login", user, password = "secret").entered();
        debug!("looking the user up");
        sleep(Duration::from_millis(5));
        info!("logged in");
    }
    Ok(())
}
