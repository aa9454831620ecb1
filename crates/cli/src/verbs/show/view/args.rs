//! The options of `eventring view`.

use super::ui::INSTALL;
use crate::args::amounts::parse_bytes;
use crate::verbs::saved_args::SavedArgs;
use eventring_export::{Names, View};
use std::path::PathBuf;

/// The most events that are shown by default.
const EVENTS_MAX: u64 = 20_000_000;

/// Show a capture, or the events that a ring holds now, in a browser
#[derive(clap::Args, Clone)]
#[command(after_help = INSTALL)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(super) saved: SavedArgs,
    /// Tracks of the trace: threads with their slices, spans from creation to close, or both
    #[arg(long, value_name = "VIEW", default_value = "both")]
    pub(super) view: View,
    /// Names of spans: the name, or the target and the name
    #[arg(long = "names", value_name = "NAMES", default_value = "name")]
    pub(super) span_names: Names,
    /// Folder with a Perfetto UI, with index.html [default: the installed one, or else https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR", env = "EVENTRING_UI")]
    pub(super) ui: Option<PathBuf>,
    /// Port on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(super) port: u16,
    /// Do not open a browser
    #[arg(long)]
    pub(super) no_browser: bool,
    /// End when the page has fetched the trace and asks for nothing more, and not only when it is closed
    #[arg(long)]
    pub(super) once: bool,
    /// Most events that are shown; of a larger capture, the last part is. 0 shows all
    #[arg(long, value_name = "N", default_value_t = EVENTS_MAX)]
    pub(super) max_events: u64,
    /// Most bytes of the trace; of a capture that makes a larger one, the last part is shown [default: 256MiB, or no
    /// limit with --max-events 0]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(super) max_size: Option<u64>,
    /// Print one JSON object: the address, the UI, the bytes of the trace
    #[arg(long)]
    pub(super) json: bool,
}
