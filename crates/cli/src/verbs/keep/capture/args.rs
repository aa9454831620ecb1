//! The options of `eventring capture`.

use super::filter::FilterArgs;
use super::trigger_args::TriggerArgs;
use crate::args::amounts::{parse_bytes, parse_duration};
use crate::args::rotation::RotationArgs;
use crate::input::programs::processes::ProcessArgs;
use crate::output;
use eventring_capture::{CaptureOptions, OutputKind};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Save what rings hold and go on to record, until programs end
///
/// All shards of a perf recorder are taken. Rings of dead programs are read to their end. Ctrl-C ends a capture in good
/// order.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names or paths of rings, or patterns such as 'shop*'; several go into one file, in the order of time
    #[arg(value_name = "RING")]
    pub(super) names: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) process: ProcessArgs,
    /// Where to write; `-` for stdout [default: the first ring's name and `.evc`, in the current directory]. With
    /// --on, {span} and {time} in the name stand for the span or event and the time, and an `n` in braces for a number
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(short, long)]
    pub(super) force: bool,
    /// Stop after this time (10s, 2m, 1h30m), counted from the first ring on; also the longest wait for the first ring
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) duration: Option<Duration>,
    /// Save what has been recorded until now, and stop
    #[arg(long, conflicts_with = "duration")]
    pub(super) now: bool,
    /// Leave out what has been recorded until now; rings that are made later are taken whole
    #[arg(long, conflicts_with = "now")]
    pub(super) only_new: bool,
    /// Stop when the files have this size together (500k, 100M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(super) max_size: Option<u64>,
    #[command(flatten)]
    pub(super) rotation: RotationArgs,
    /// Compression level of zstd, 1 to 22; 0 for none. A capture that falls behind compresses less for a while. Above
    /// 9, it loses events of a busy ring that lower levels do not lose
    #[arg(
        long, alias = "level", value_name = "LEVEL", default_value_t = CaptureOptions::DEFAULT_LEVEL,
        value_parser = clap::value_parser!(i32).range(0..=22),
    )]
    pub(super) compression: i32,
    /// Print one JSON object about the capture
    #[arg(long)]
    pub(super) json: bool,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    pub(super) strict: bool,
    /// Wait for rings that do not exist yet, until Ctrl-C or --duration; existing rings are read meanwhile
    #[arg(long, conflicts_with = "now")]
    pub(super) wait: bool,
    /// Go on after the newest file of the rotation set FILE.0001.evc and so on, even if its capture was killed: nothing
    /// is written twice, and nothing that the rings still hold is left out
    #[arg(long, conflicts_with_all = ["force", "only_new"])]
    pub(super) resume: bool,
    /// When all rings have ended, go on with the next ring of each name, in a new file of the rotation set
    #[arg(long, conflicts_with_all = ["now", "duration", "max_size"])]
    pub(super) reopen: bool,
    #[command(flatten)]
    pub(super) filter: FilterArgs,
    #[command(flatten)]
    pub(super) triggers: TriggerArgs,
    /// A program to start, with its arguments: all rings that it makes under these names are captured until the program
    /// ends; its exit code is ours. It runs with EVENTRING_KEEP=1, and its rings are removed afterwards, unless you
    /// have set this variable yourself. If the capture ends first, the program goes on. With --json or `-o -`, its
    /// output goes to stderr
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["now", "only_new", "reopen"])]
    pub(super) command: Vec<OsString>,
}

impl Args {
    pub(super) fn options(&self) -> anyhow::Result<CaptureOptions> {
        let options =
            CaptureOptions::new().compression_level(self.compression).only_new(self.only_new).overwrite(self.force);
        let options = options.rotation(self.rotation.options()?).filter(self.filter.filter());
        let duration = self.now.then_some(Duration::ZERO).or(self.duration);
        let options = duration.into_iter().fold(options, CaptureOptions::duration);
        Ok(self.max_size.into_iter().fold(options, CaptureOptions::max_bytes))
    }

    /// Checks whether `output` can be written, and returns its kind. A rotated capture does not write to `output`
    /// itself but makes files with numbered names. Only the first of these names is checked here. The others are
    /// checked when their files are made.
    pub(super) fn target(&self, output: &Path) -> anyhow::Result<OutputKind> {
        match self.resume {
            // The files of the rotation set are there, and are checked when the capture goes on after them.
            true => Ok(OutputKind::File),
            false if self.rotation.rotates() || self.reopen => output::look_at_row(output, self.force),
            false => output::look(output, self.force),
        }
    }

    /// Returns true if the capture goes on after an earlier one, or with later rings.
    pub(super) fn goes_on(&self) -> bool {
        self.resume || self.reopen
    }

    pub(super) fn output(&self, names: &[PathBuf]) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let first = names.first().and_then(|name| name.file_name()).unwrap_or("ring".as_ref());
            let mut name = first.to_os_string();
            name.push(".evc");
            PathBuf::from(name)
        })
    }
}
