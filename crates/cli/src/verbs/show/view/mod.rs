//! `eventring view`.
//!
//! A server on 127.0.0.1 serves a start page at once, which shows the progress. Meanwhile a thread converts the capture
//! into a trace. Then the server serves the trace and the UI.

mod args;
mod browser;
mod content;
mod convert;
mod guard;
mod server;
mod session;
mod trace;
mod ui;

pub(crate) use args::ViewArgs;

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::json_line;
use crate::text::format::grouped;
use crate::text::losses::MissingEvents;
use crate::text::out::stdout;
use content::PULSE;
use convert::convert;
use schemars::JsonSchema;
use serde::Serialize;
use server::ViewServer;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{sleep, spawn};
use std::time::Duration;
use trace::ShownTrace;
use ui::Ui;

/// What `view --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Shown<'a> {
    url: &'a str,
    ui: &'a str,
    trace_bytes: u64,
}

pub(crate) fn run(args: &ViewArgs) -> anyhow::Result<Exit> {
    let server = ViewServer::start(args.port, title(&args.saved.names), Ui::find(args.ui.as_deref())?)?;
    let told = server.clone();
    let mut saved = args.saved.open(false, args.json, false, move |read, all| told.session.lock().read(read, all))?;
    let (url, reading) = (server.guard.url(), saved.reading.clone());
    let interrupt = Interrupt::listen()?;
    if !args.json {
        // The page is there before the trace is.
        writeln!(stdout(), "{url}")?;
    }
    let _page = if args.no_browser { None } else { browser::open(&url)? };
    // The capture is converted on a thread of its own, so that a signal is noticed meanwhile. The thread ends with the
    // program if nobody waits for it any more.
    let (options, converter, mut exit) = (args.clone(), server.clone(), None);
    let mut converting = Some(spawn(move || {
        let made = convert(&options, &mut saved, &converter.session).map(Arc::new);
        converter.session.lock().end(made.as_ref().ok().cloned());
        made.map(|trace| (saved, trace))
    }));
    while !interrupt.came() && !server.session.lock().is_over(args.once) {
        sleep(Duration::from_millis(50));
        let Some(ended) = converting.take_if(|thread| thread.is_finished()) else { continue };
        reading.end();
        let panicked = |_| Exit::Failed.failure("the thread that converts the capture has panicked");
        // The page learns of an error before the program ends.
        let (saved, trace) = ended.join().map_err(panicked)?.inspect_err(|_| sleep(2 * PULSE))?;
        exit = Some(saved.report(&args.saved.names, &trace.summary.problems, &trace.summary.payload_losses));
        tell(args, &url, &server.ui.place(), &trace)?;
    }
    reading.end();
    if exit.is_none() {
        say!("ended before the capture was converted; nothing was shown");
    }
    Ok(exit.unwrap_or(Exit::Done))
}

/// Prints what the capture has lost, and where the trace is to be seen.
fn tell(args: &ViewArgs, url: &str, ui: &str, trace: &ShownTrace) -> anyhow::Result<()> {
    if let Some(words) = MissingEvents::from(&trace.summary).in_words("; the trace shows where") {
        say!("{words}");
    }
    if args.json {
        json_line(&Shown { url, ui, trace_bytes: trace.bytes })?;
    } else {
        let bytes = grouped(trace.bytes);
        say!(
            "the trace ({bytes} bytes) is shown at this address, by the Perfetto UI of {ui}, until its page is closed or you \
             press Ctrl-C"
        );
    }
    Ok(())
}

/// Returns the name of the trace, without characters that an address or HTML knows.
fn title(names: &[PathBuf]) -> String {
    let stem = names.first().and_then(|name| name.file_stem()).unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let title: String = stem.chars().take(80).map(plain).collect();
    if title.chars().any(|c| c.is_ascii_alphanumeric()) { title } else { "trace".to_owned() }
}
