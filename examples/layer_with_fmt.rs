//! Records beside another layer of `tracing-subscriber`: the terminal shows INFO and above, the ring has everything.
//!
//! ```console
//! $ cargo run --example layer_with_fmt
//! $ eventring watch layer-with-fmt
//! $ eventring clean layer-with-fmt    # removes the rings
//! ```

use eventring::tracing::{PerfRecorder, RecorderLayer};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing::{debug, info, info_span};
use tracing_subscriber::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    // The program makes its own recorder instead of the global one, to leave fields out and to keep the rings after its
    // end. (The terminal shows the password: each layer decides for itself.)
    let recorder = PerfRecorder::builder().config("layer-with-fmt").redact_fields(["password"]).keep(true).build()?;

    // Each layer has a filter of its own. The recorder's layer has none here, so it gets DEBUG and TRACE, too.
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
