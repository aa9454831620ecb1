//! `eventring view`.
//!
//! The trace is converted into a file without a name first. So its size is known, and the browser can ask for it
//! twice. Then a server on 127.0.0.1 hands it out, with the UI that shows it.

mod bodies;
mod browser;
mod connections;
mod get_ui;
mod guard;
mod server;
mod session;
mod trace;
mod ui;

use super::exit::Exit;
use super::format::grouped;
use super::interrupt::Interrupt;
use super::paint::WARNING;
use super::saved::SavedArgs;
use browser::Redirect;
use eventring::export::{ExportOptions, Names, View};
use serde_json::json;
use server::{Show, ViewServer};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ui::Ui;

/// Show a capture, or the events that a ring holds now, in a browser
#[derive(clap::Args)]
pub(super) struct ViewArgs {
    #[command(flatten)]
    saved: SavedArgs,
    /// Tracks of the trace: threads with their slices, spans from creation to close, or both
    #[arg(long, value_name = "VIEW", default_value = "both")]
    view: View,
    /// Names of spans: the name, or the target and the name
    #[arg(long = "names", value_name = "NAMES", default_value = "name")]
    span_names: Names,
    /// Folder with a Perfetto UI [default: the one that --get-ui has installed, or else https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR", env = "EVENTRING_UI")]
    ui: Option<PathBuf>,
    /// Install a Perfetto UI for use without a network, from PyPI, by python3 and pip
    #[arg(long, exclusive = true)]
    get_ui: bool,
    /// Port on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
    /// End when the page has fetched the trace, and not only when it is closed
    #[arg(long)]
    once: bool,
    /// Most events that are shown; of a larger capture, the last part is. 0 shows all
    #[arg(long, value_name = "N", default_value_t = EVENTS_MAX)]
    max_events: u64,
    /// Print one JSON object: the address, the UI, the bytes of the trace
    #[arg(long)]
    json: bool,
}

/// The most events that are shown by default.
const EVENTS_MAX: u64 = 20_000_000;

pub(super) fn run(args: &ViewArgs) -> anyhow::Result<Exit> {
    if args.get_ui {
        let folder = get_ui::get_ui()?;
        anstream::eprintln!("the Perfetto UI is in {}; `eventring view` uses it from now on", folder.display());
        return Ok(Exit::Done);
    }
    let ui = Ui::find(args.ui.as_deref())?;
    let mut saved = args.saved.open(false, args.json)?;
    let options = ExportOptions::from(args.view).names(args.span_names);
    let events_max = if args.max_events == 0 { u64::MAX } else { args.max_events };
    let made = trace::convert(&args.saved, &mut saved, options, events_max);
    saved.reading.end();
    let trace = made?;
    let summary = &trace.summary;
    let exit = saved.report(&args.saved.names, &summary.problems, &summary.payload_losses);
    if summary.lost > 0 {
        anstream::eprintln!("{WARNING}{} events were lost; the trace shows where{WARNING:#}", grouped(summary.lost));
    }
    let (place, trace_bytes) = (ui.place(), trace.bytes);
    let show = Show { trace: Arc::new(trace.file), trace_bytes, title: title(&args.saved.names), ui };
    let server = ViewServer::bind(args.port, show)?;
    let url = server.url();
    // Before this, Ctrl-C ends the program at once: nothing is there yet that would have to be removed.
    let interrupt = Interrupt::listen()?;
    tell(args, &url, &place, trace_bytes)?;
    let redirect = if args.no_browser || !browser::is_to_be_had() { None } else { Some(Redirect::to(&url)?) };
    if let Some(Err(error)) = redirect.as_ref().map(Redirect::open) {
        anstream::eprintln!("{WARNING}warning:{WARNING:#} cannot start a browser: {error}; open the address yourself");
    }
    server.serve(args.once, &interrupt)?;
    Ok(exit)
}

/// Prints where the trace is to be seen.
fn tell(args: &ViewArgs, url: &str, ui: &str, trace_bytes: u64) -> anyhow::Result<()> {
    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{}", json!({ "url": url, "ui": ui, "trace_bytes": trace_bytes }))?;
    } else {
        writeln!(out, "{url}")?;
        anstream::eprintln!(
            "the trace ({} bytes) is shown at this address, by the Perfetto UI of {ui}, until its page is closed or you press Ctrl-C",
            grouped(trace_bytes)
        );
    }
    Ok(out.flush()?)
}

/// Returns the name of the trace, without characters that an address or HTML knows.
fn title(names: &[PathBuf]) -> String {
    let stem = names.first().and_then(|name| Path::new(name).file_stem()).unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let title: String = stem.chars().take(80).map(plain).collect();
    if title.chars().any(|c| c.is_ascii_alphanumeric()) { title } else { "trace".to_owned() }
}
