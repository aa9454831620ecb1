//! Forwarding into a directory, as captures or as Parquet files.

use super::ForwardArgs;
use super::report::{report_filtered, spinner};
use crate::capture::{AwaitedRings, report};
use crate::exit::{Exit, Failure};
use crate::formats::{Format, export_files};
use crate::interrupt::Interrupt;
use crate::losses::report_problem;
use crate::output_directory;
use crate::saved::{parse_file_bytes, parse_file_time};
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
use eventring_forward::{DirectoryForwarder, DirectoryOptions};
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The files of a directory.
#[derive(clap::Args)]
pub(super) struct DirectoryArgs {
    /// Format of files in a directory: evc, or parquet, a directory of tables for each file [default: evc]
    #[arg(long, value_name = "FORMAT", value_enum)]
    format: Option<FileFormat>,
    /// Begin a new file in the directory after this time [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_file_time)]
    rotate_every: Option<Duration>,
    /// Begin a new file in the directory when the present one has this size [default: 256M]
    #[arg(long, value_name = "SIZE", value_parser = parse_file_bytes)]
    rotate_size: Option<u64>,
}

impl DirectoryArgs {
    /// Returns which of these options are given, with their names.
    pub(super) fn given(&self) -> [(bool, &'static str); 3] {
        [
            (self.format.is_some(), "--format"),
            (self.rotate_every.is_some(), "--rotate-every"),
            (self.rotate_size.is_some(), "--rotate-size"),
        ]
    }
}

/// The format of the files of a directory.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FileFormat {
    /// Captures
    Evc,
    /// Parquet tables
    Parquet,
}

pub(super) fn run(args: &ForwardArgs, rings: AwaitedRings, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let directory = Path::new(args.to.expose());
    if std::fs::metadata(directory).is_ok_and(|metadata| !metadata.is_dir()) {
        let message = format!("--to {}: it is a file, expected a directory or the address of a broker", args.to);
        return Err(Failure::new(Exit::Usage, message).into());
    }
    std::fs::create_dir_all(directory).map_err(|error| Failure::writing(directory, &error))?;
    let name = rings.names().first().and_then(|name| name.file_name()).unwrap_or("ring".as_ref());
    let mut options =
        DirectoryOptions::new(name.to_string_lossy()).compression_level(args.level()).filter(args.filter.filter());
    if let Some(time) = args.directory.rotate_every {
        options = options.rotate_every(time);
    }
    if let Some(bytes) = args.directory.rotate_size {
        options = options.rotate_bytes(bytes);
    }
    if let Some(time) = args.retention.max_age {
        options = options.max_age(time);
    }
    if let Some(bytes) = args.retention.max_bytes {
        options = options.max_bytes(bytes);
    }
    if args.directory.format == Some(FileFormat::Parquet) {
        options = options.removes_what_is_in_tables();
    }
    let forwarder = DirectoryForwarder::new(directory, options)?;
    output_directory::remove_abandoned(directory).map_err(|error| Failure::writing(directory, &error))?;
    let rings = RefCell::new(rings);
    let bar = spinner();
    let is_asked_to_end = Cell::new(false);
    let (ended, problems) = std::thread::scope(|scope| {
        // Tables are made on a thread of their own, so that the rings are read meanwhile.
        let (send, files) = channel::<PathBuf>();
        let converter = scope.spawn(move || convert_all(&files));
        let mut whole = |file: &Path| {
            if args.directory.format == Some(FileFormat::Parquet) {
                // The thread lives as long as this end of the channel.
                let _ = send.send(file.to_path_buf());
            }
        };
        let mut progress = |progress: &_| {
            bar.set_message(report::progress_line(progress));
            bar.tick();
            bar.suspend(|| {
                rings.borrow_mut().say_what_is_awaited();
                rings.borrow_mut().say_what_has_failed();
            });
            is_asked_to_end.set(is_asked_to_end.get() || interrupt.came());
            if is_asked_to_end.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut next_ring = || rings.borrow_mut().next();
        let mut forward_all = || {
            forwarder.earlier_captures()?.iter().for_each(|file| whole(file));
            loop {
                forwarder.forward(&mut next_ring, &mut whole, &mut progress)?;
                let mut meanwhile = || forwarder.remove_oldest_now_and_then();
                // The rings may have ended just when a signal came.
                if is_asked_to_end.get() || !rings.borrow_mut().wait_for_successors(interrupt, &mut meanwhile) {
                    break;
                }
            }
            Ok(())
        };
        let ended: Result<(), CaptureError> = forward_all();
        drop(send);
        bar.finish_and_clear();
        let failed = |_| vec!["the tables of some files were not made, which is a fault of this program".to_owned()];
        (ended, converter.join().unwrap_or_else(failed))
    });
    problems.iter().for_each(|problem| report_problem(true, problem));
    ended?;
    let Some(mut summary) = forwarder.finish()? else { return Ok(Exit::Done) };
    summary.problems.extend(problems.iter().cloned());
    let mut rings = rings.into_inner();
    if args.json {
        writeln!(anstream::stdout(), "{}", report::object(&summary, &rings.missing()))?;
    } else {
        // These were printed already.
        summary.problems.truncate(summary.problems.len() - problems.len());
        report::report(&summary, false, None, directory);
        report_filtered(summary.stats.events(), summary.stats.filtered());
    }
    report::report_lost_pages(&summary);
    rings.say_late_rings();
    match rings.failure("the others were written") {
        Some(error) => Err(error),
        None if !summary.lost_pages.is_empty() => Ok(Exit::of_lost_pages(summary.lost_pages[0].1)),
        None if !problems.is_empty() => Ok(Exit::Failed),
        None => Ok(Exit::Done),
    }
}

/// Makes a directory of tables beside each capture, unless it is there. Returns the problems, a line each. A capture
/// that has one stays.
fn convert_all(files: &Receiver<PathBuf>) -> Vec<String> {
    files.iter().filter_map(|file| convert(&file).err()).map(|error| format!("{error:#}")).collect()
}

fn convert(file: &Path) -> anyhow::Result<()> {
    let output = file.with_extension("parquet");
    // An earlier forwarder may have made it.
    if output.exists() {
        return Ok(());
    }
    let capture = match CaptureFile::open(file) {
        // It was too much, or too old, before it could become tables.
        Err(error) if error.kind() == CaptureErrorKind::NotFound => return Ok(()),
        capture => capture?,
    };
    // A signal ends the forwarding in good order, and not in the middle of this.
    output_directory::write_whole_despite_signals(&output, Format::Parquet, |files| {
        Ok(export_files(&capture, Format::Parquet, files)?)
    })?;
    Ok(())
}
