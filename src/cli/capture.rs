//! `eventring capture`.

use super::exit::{Exit, Failure};
use super::format::{bytes, duration, events, grouped};
use super::interrupt::Interrupt;
use super::output::Target;
use super::paint::{DIM, WARNING};
use super::saved::{parse_bytes, parse_duration, stdout_twice};
use eventring::capture::{
    CaptureError, CaptureErrorKind, CaptureOptions, CaptureProgress, CaptureSummary, EndReason, LossCause, capture,
    capture_to,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Save what rings hold and go on to record, until their programs end
///
/// Of a perf recorder all shards are taken. Rings of dead programs are read to their end. Ctrl-C ends a capture in good order.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Names or paths of rings; several go into one file, in the order of time
    #[arg(value_name = "RING", required = true)]
    names: Vec<PathBuf>,
    /// Where to write; `-` for stdout [default: the first ring's name and `.evc`, in the current directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Stop after this time (10s, 2m, 1h30m)
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Save what has been recorded until now, and stop
    #[arg(long, conflicts_with = "duration")]
    now: bool,
    /// Leave out what has been recorded until now
    #[arg(long, conflicts_with = "now")]
    only_new: bool,
    /// Stop when the files have this size together (500k, 100M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_size: Option<u64>,
    /// Begin a new file when one has this size; FILE.evc becomes FILE.0001.evc and so on
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    rotate_size: Option<u64>,
    /// Begin a new file after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rotate_every: Option<Duration>,
    /// Keep only the last so many files
    #[arg(long, value_name = "FILES", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Compression level of zstd, 1 to 22
    #[arg(long, value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    /// Print one JSON object about the capture
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost
    #[arg(long)]
    strict: bool,
}

impl Args {
    fn options(&self) -> anyhow::Result<CaptureOptions> {
        let mut options =
            CaptureOptions::new().compression_level(self.level).only_new(self.only_new).overwrite(self.force);
        if self.now {
            options = options.duration(Duration::ZERO);
        }
        if let Some(duration) = self.duration {
            options = options.duration(duration);
        }
        if let Some(size) = self.max_size {
            options = options.max_bytes(size);
        }
        if let Some(size) = self.rotate_size {
            options = options.rotate_bytes(size);
        }
        if let Some(time) = self.rotate_every {
            options = options.rotate_every(time);
        }
        if let Some(files) = self.keep {
            if self.rotate_size.is_none() && self.rotate_every.is_none() {
                let message = "--keep needs --rotate-size or --rotate-every";
                return Err(Failure::new(Exit::Usage, message).into());
            }
            options = options.keep_files(files as usize);
        }
        Ok(options)
    }

    /// What `output` is. The files of a row have names of their own, which are looked at when they are made.
    fn target(&self, output: &Path) -> Result<Target, Failure> {
        let is_row = self.rotate_size.is_some() || self.rotate_every.is_some();
        if is_row { Ok(Target::File) } else { Target::of(output, self.force) }
    }

    fn output(&self) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let first = self.names.first().and_then(|name| name.file_name()).unwrap_or("ring".as_ref());
            let mut name = first.to_os_string();
            name.push(".evc");
            PathBuf::from(name)
        })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let options = args.options()?;
    let output = args.output();
    let interrupt = Interrupt::listen()?;
    // Draws nothing where stderr is no terminal.
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    let mut progress = |progress: &CaptureProgress| {
        bar.set_message(progress_line(progress));
        bar.tick();
        if interrupt.came() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let summary = if output == Path::new("-") {
        if args.json {
            return Err(stdout_twice().into());
        }
        if io::stdout().is_terminal() {
            let message = "a capture is not for a terminal; send it into a file or a pipe";
            return Err(Failure::new(Exit::Usage, message).into());
        }
        capture_to(&args.names, io::stdout(), &options, &mut progress)
    } else if let Target::Open(file) = args.target(&output)? {
        match capture_to(&args.names, file, &options, &mut progress) {
            Err(error) if error.kind() != CaptureErrorKind::Ring => {
                bar.finish_and_clear();
                // It does not know where the file leads.
                let message = format!("{}: {error}", output.display());
                return Err(Failure::new(Exit::of(&error.into()), message).into());
            }
            done => done,
        }
    } else {
        capture(&args.names, &output, &options, &mut progress)
    };
    bar.finish_and_clear();
    let summary = summary.map_err(with_advice)?;
    if args.json {
        writeln!(anstream::stdout(), "{}", object(&summary))?;
    } else {
        report(&summary, args.now);
    }
    Ok(if args.strict && summary.account.lost() > 0 { Exit::Lost } else { Exit::Done })
}

fn with_advice(error: CaptureError) -> anyhow::Error {
    if error.kind() != CaptureErrorKind::Exists {
        return error.into();
    }
    let path = error.path().unwrap_or("".as_ref()).display();
    let message = format!("cannot write {path}: it exists; choose another name, or --force");
    Failure::new(Exit::Exists, message).into()
}

fn progress_line(progress: &CaptureProgress) -> String {
    let lost = if progress.lost > 0 { format!(", {} lost", grouped(progress.lost)) } else { String::new() };
    format!(
        "{}  {} from {} rings{lost}, {} written; Ctrl-C ends it",
        duration(progress.elapsed),
        events(progress.events),
        progress.rings,
        bytes(progress.bytes)
    )
}

fn reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::WritersEnded => "writers_ended",
        EndReason::Duration => "duration",
        EndReason::Size => "size",
        EndReason::Interrupted => "interrupted",
        _ => "other",
    }
}

fn object(summary: &CaptureSummary) -> serde_json::Value {
    let by_cause = |by: &dyn Fn(LossCause) -> u64| -> serde_json::Map<String, serde_json::Value> {
        let losses = LossCause::ALL.into_iter().filter(|cause| cause.is_loss());
        losses.map(|cause| (cause.name().to_owned(), json!(by(cause)))).collect()
    };
    let rings: Vec<serde_json::Value> = summary
        .rings
        .iter()
        .zip(&summary.account.rings)
        .map(|(name, ring)| {
            json!({
                "name": name, "events": ring.events, "lost": ring.lost(), "last_seqno": ring.last_seqno,
                "unread": ring.unread, "expired_payloads": ring.expired_payloads, "was_live": ring.was_live,
                "lost_by_cause": by_cause(&|cause| ring.missing_by(cause)), "given_up": ring.given_up(),
                "table_losses": table_losses(ring.table_losses),
            })
        })
        .collect();
    let files: Vec<String> = summary.files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    json!({
        "files": files,
        "reason": reason(summary.reason),
        "elapsed_ns": summary.elapsed.as_nanos() as u64,
        "events": summary.account.events(),
        "lost": summary.account.lost(),
        "lost_by_cause": by_cause(&|cause| summary.account.missing_by(cause)),
        "given_up": summary.account.given_up(),
        "bytes": summary.bytes,
        "rings": rings,
        "problems": summary.problems,
    })
}

/// What the losses of a perf recorder's tables are called.
const TABLE_LOSSES: [(&str, &str); 4] = [
    (
        "call_sites",
        "call sites found no room in the table: if their events are overwritten, they have a number and no name",
    ),
    ("threads", "threads found no room in the table: if their events are overwritten, they have a number and no name"),
    ("shards", "shards could not be made: threads shared the others"),
    ("spans", "spans were not recorded because too many were open"),
];

fn table_losses(losses: [u64; 4]) -> serde_json::Value {
    let named = TABLE_LOSSES.iter().zip(losses).map(|((name, _), count)| ((*name).to_owned(), json!(count)));
    serde_json::Value::Object(named.collect())
}

fn report(summary: &CaptureSummary, is_of_now: bool) {
    let to = match summary.files.as_slice() {
        [] => "stdout".into(),
        [file] => file.to_string_lossy().into_owned(),
        [first, .., last] => format!("{} files, {} to {}", summary.files.len(), first.display(), last.display()),
    };
    anstream::eprintln!(
        "{} from {} {} in {} written to {to}{DIM} ({}){DIM:#}",
        events(summary.account.events()),
        summary.rings.len(),
        if summary.rings.len() == 1 { "ring" } else { "rings" },
        bytes(summary.bytes),
        match summary.reason {
            EndReason::WritersEnded => "the program has ended",
            EndReason::Duration if is_of_now => "what was recorded until now",
            EndReason::Duration => "the time was over",
            EndReason::Size => "the size was reached",
            _ => "interrupted",
        }
    );
    for (cause, what) in [
        (LossCause::OverwrittenBefore, "had been overwritten before the capture began"),
        (LossCause::Overwritten, "were overwritten before they could be copied"),
        (LossCause::NeverCommitted, "were never committed by their program"),
        (LossCause::NeverOpened, "were in shards that could not be opened"),
    ] {
        let count = summary.account.missing_by(cause);
        if count > 0 {
            anstream::eprintln!("{WARNING}{} {what}{WARNING:#}", events(count));
        }
    }
    for (kind, (_, what)) in TABLE_LOSSES.iter().enumerate() {
        let count: u64 = summary.account.rings.iter().map(|ring| ring.table_losses[kind]).sum();
        if count > 0 {
            anstream::eprintln!("{WARNING}{} {what}{WARNING:#}", grouped(count));
        }
    }
    for problem in &summary.problems {
        anstream::eprintln!("{WARNING}{problem}{WARNING:#}");
    }
}
