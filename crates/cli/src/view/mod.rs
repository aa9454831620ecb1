//! `eventring view`.
//!
//! A server on 127.0.0.1 hands out a page at once. While a thread converts the capture into a file without a name, the
//! page says how far this is. Then the server hands out the trace, with the UI that shows it. The size of the trace is
//! known then, and the browser can ask for it twice.

mod browser;
mod conversion;
mod guard;
mod server;
mod trace;
mod ui;

use super::exit::{Exit, Failure};
use super::format::grouped;
use super::interrupt::Interrupt;
use super::paint::WARNING;
use super::saved::{Saved, SavedArgs, parse_bytes};
use browser::Redirect;
use conversion::Conversion;
use eventring_export::{ExportOptions, ExportSummary, Names, View};
use serde_json::json;
use server::ViewServer;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::spawn;
use trace::TraceLimits;
use ui::Ui;

/// Show a capture, or the events that a ring holds now, in a browser
#[derive(clap::Args, Clone)]
#[command(after_help = ui::INSTALL)]
pub(super) struct ViewArgs {
    #[command(flatten)]
    saved: SavedArgs,
    /// Tracks of the trace: threads with their slices, spans from creation to close, or both
    #[arg(long, value_name = "VIEW", default_value = "both")]
    view: View,
    /// Names of spans: the name, or the target and the name
    #[arg(long = "names", value_name = "NAMES", default_value = "name")]
    span_names: Names,
    /// Folder with a Perfetto UI [default: the installed one, or else https://ui.perfetto.dev]
    #[arg(long, value_name = "DIR", env = "EVENTRING_UI")]
    ui: Option<PathBuf>,
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
    /// Most bytes of the trace; of a capture that makes a larger one, the last part is shown [default: 256MiB, or no
    /// limit with --max-events 0]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_size: Option<u64>,
    /// Print one JSON object: the address, the UI, the bytes of the trace
    #[arg(long)]
    json: bool,
}

/// The most events that are shown by default.
const EVENTS_MAX: u64 = 20_000_000;
/// The most bytes of a trace by default. The trace is compressed: 100 MB are 4.7 million slices, for which a browser
/// takes 1.7 GB of memory.
const TRACE_BYTES_MAX: u64 = 256 << 20;

impl ViewArgs {
    fn limits(&self) -> TraceLimits {
        match self.max_events {
            0 => TraceLimits { events_max: u64::MAX, bytes_max: self.max_size.unwrap_or(u64::MAX) },
            events_max => TraceLimits { events_max, bytes_max: self.max_size.unwrap_or(TRACE_BYTES_MAX) },
        }
    }
}

pub(super) fn run(args: &ViewArgs) -> anyhow::Result<Exit> {
    let ui = Ui::find(args.ui.as_deref())?;
    let conversion = Conversion::new();
    let told = conversion.clone();
    let saved = args.saved.open_and_tell(false, args.json, move |read, all| told.read(read, all))?;
    let (place, reading) = (ui.place(), saved.reading.clone());
    let server = ViewServer::bind(args.port, conversion.clone(), title(&args.saved.names), ui)?;
    let url = server.url();
    let interrupt = Interrupt::listen()?;
    if !args.json {
        // The page is there before the trace is.
        writeln!(anstream::stdout(), "{url}")?;
        anstream::stdout().flush()?;
    }
    let redirect = if args.no_browser || !browser::is_to_be_had() { None } else { Some(Redirect::to(&url)?) };
    if let Some(Err(error)) = redirect.as_ref().map(Redirect::open) {
        anstream::eprintln!("{WARNING}warning:{WARNING:#} cannot start a browser: {error}; open the address yourself");
    }
    let (options, mut exit) = (args.clone(), None);
    // The capture is converted on a thread of its own, so that the server can answer meanwhile. The thread ends with the
    // program if nobody waits for it any more.
    let mut converting = Some(spawn(move || convert(&options, saved, &conversion)));
    let served = server.serve(args.once, &interrupt, || {
        let Some(ended) = converting.take_if(|thread| thread.is_finished()) else { return Ok(()) };
        let panicked = |_| Failure::new(Exit::Failed, "the thread that converts the capture has panicked");
        let (saved, trace_bytes, summary) = ended.join().map_err(panicked)??;
        exit = Some(saved.report(&args.saved.names, &summary.problems, &summary.payload_losses));
        tell(args, &url, &place, trace_bytes, summary.lost)
    });
    reading.end();
    served?;
    if exit.is_none() {
        anstream::eprintln!("ended before the capture was converted; nothing was shown");
    }
    Ok(exit.unwrap_or(Exit::Done))
}

/// Converts the capture. Returns its input, the bytes of the trace, and the counts.
fn convert(args: &ViewArgs, mut saved: Saved, on: &Conversion) -> anyhow::Result<(Saved, u64, ExportSummary)> {
    let options = ExportOptions::from(args.view).names(args.span_names);
    let made = trace::convert(&args.saved, &mut saved, options, args.limits(), on);
    saved.reading.end();
    let trace = made.inspect_err(|_| on.end(None))?;
    let (bytes, summary) = (trace.bytes, trace.summary.clone());
    on.end(Some(trace));
    Ok((saved, bytes, summary))
}

/// Prints what the capture has lost, and where the trace is to be seen.
fn tell(args: &ViewArgs, url: &str, ui: &str, trace_bytes: u64, lost: u64) -> anyhow::Result<()> {
    if lost > 0 {
        anstream::eprintln!("{WARNING}{} events were lost; the trace shows where{WARNING:#}", grouped(lost));
    }
    if args.json {
        let mut out = anstream::stdout();
        writeln!(out, "{}", json!({ "url": url, "ui": ui, "trace_bytes": trace_bytes }))?;
        return Ok(out.flush()?);
    }
    anstream::eprintln!(
        "the trace ({} bytes) is shown at this address, by the Perfetto UI of {ui}, until its page is closed or you press Ctrl-C",
        grouped(trace_bytes)
    );
    Ok(())
}

/// Returns the name of the trace, without characters that an address or HTML knows.
fn title(names: &[PathBuf]) -> String {
    let stem = names.first().and_then(|name| Path::new(name).file_stem()).unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let title: String = stem.chars().take(80).map(plain).collect();
    if title.chars().any(|c| c.is_ascii_alphanumeric()) { title } else { "trace".to_owned() }
}
