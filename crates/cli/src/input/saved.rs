//! The input of verbs that read a whole recording: a capture file, or the events that rings hold now.

use crate::exit::{Exit, Failure};
use crate::input::advice;
use crate::input::programs::processes;
use crate::input::reading::ReadingBar;
use crate::text::losses::{
    MissingEvents, report_filter, report_never_opened, report_payload_losses, report_problem, report_removed,
    report_table_losses,
};
use eventring::files::{CONTENT_TYPE_PERF, RingDirectories, RingName};
use eventring::reader::{LostPages, Reader, ReaderError};
use eventring::schema::perf::PerfEvent;
use eventring_capture::recording::PayloadLosses;
use eventring_capture::{CaptureFile, EndReason, ReadFiles, Selection, capture_now};
use eventring_export::summarize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Returns true if one of the names is that of a capture file.
pub(crate) fn has_capture(names: &[PathBuf]) -> bool {
    names.iter().any(|name| is_capture(name))
}

fn is_capture(name: &Path) -> bool {
    !is_of_ring(name) && CaptureFile::is_capture(name).unwrap_or(false)
}

/// Returns true if the name has no slash and is that of a ring. It then means the ring, whatever has the same name in
/// the current directory. (A capture may lie where the rings are.)
pub(crate) fn is_of_ring(name: &Path) -> bool {
    let Ok(RingName::Bare(name)) = RingName::new(name) else { return false };
    let paths = RingDirectories::from_environment().for_reading().into_iter().map(|directory| directory.join(&name));
    let mut paths = paths.filter(|path| path.is_file());
    paths.any(|path| !CaptureFile::is_capture(&path).unwrap_or(false))
}

/// A capture to read.
pub(crate) struct Saved {
    pub capture: CaptureFile,
    /// True if a part of the capture was selected.
    pub is_part: bool,
    /// True if this part may have spans without their beginning or their end.
    pub is_cut: bool,
    pub reading: ReadingBar,
    /// The files from which the capture was read. The output must not replace them.
    pub read: ReadFiles,
    /// Problems of a capture that this process has made from rings, for example shards that were left out.
    problems: Vec<String>,
    /// The reason why pages of a ring's file could not be read, or `None` if all pages could be read.
    lost_pages: Option<LostPages>,
}

/// Opens capture files as one capture. If the names are those of rings, captures the present
/// content of these rings together, and opens that capture. With `needs_spans`, one of the rings must be a perf ring.
pub(crate) fn open(names: &[PathBuf], needs_spans: bool) -> anyhow::Result<Saved> {
    let names = &processes::expand(names)?;
    let is_stream = |name: &&PathBuf| std::fs::metadata(name).is_ok_and(|it| !it.is_file() && !it.is_dir());
    if let Some(name) = names.iter().find(is_stream) {
        return Exit::NotARing.fail(format!(
            "cannot read {}: it is a device or a pipe, expected a capture or a ring; copy what comes from it into a file first",
            name.display()
        ));
    }
    let (captures, others): (Vec<&PathBuf>, Vec<&PathBuf>) = names.iter().partition(|name| is_capture(name));
    match (captures.as_slice(), others.as_slice()) {
        ([name], []) => Ok(Saved::from_capture(CaptureFile::open(name)?)),
        (_, []) => Ok(Saved::from_capture(CaptureFile::open_all(&captures)?)),
        ([], _) => present(names, needs_spans),
        ([capture, ..], [other, ..]) => {
            Reader::options().header_only().open(other).map_err(|error| advice::on_expected(other, error))?;
            Exit::Usage.fail(format!(
            "{} is a capture, and {} is not: rings can be read together, and so can captures, but not both; name them \
                 one at a time, or have `eventring capture` save the rings into one file",
            capture.display(),
            other.display()
        ))
        }
    }
}

/// Captures the present content of the rings.
fn present(names: &[PathBuf], needs_spans: bool) -> anyhow::Result<Saved> {
    let (rings, mut others) = open_rings(names, |name, ring| {
        advice::warn_of_shard(name, ring);
        Ok(())
    })?;
    if rings.is_empty() && !others.is_empty() {
        return Err(advice::on_perf(&names[0], others.swap_remove(0)));
    }
    let left_out: Vec<String> = others.iter().map(|error| format!("left out: {error}")).collect();
    if needs_spans && !rings.iter().any(|ring| ring.info().content_type == CONTENT_TYPE_PERF) {
        // The capture would fail later without this check, but its error would not say what the ring holds. The error
        // of `check_events` does.
        for (name, ring) in names.iter().zip(&rings) {
            ring.check_events::<PerfEvent>().map_err(|error| advice::on_perf(name, error))?;
        }
    }
    let mut read = ReadFiles::default();
    rings.iter().for_each(|ring| read.add_ring(ring));
    let are_live = rings.iter().any(|ring| ring.state().may_be_written());
    let (capture, made) = capture_now(rings, || true).map_err(|error| advice::on_saved(&names[0], error))?;
    let capture = capture.of_rings(are_live);
    let lost_pages = made.lost_pages.first().map(|(_, lost)| *lost);
    Ok(Saved { problems: [left_out, made.problems].concat(), lost_pages, ..Saved::new(capture, read) })
}

/// Opens rings, each of which `check` may warn of or refuse. Returns them, and the errors of those that have another
/// schema.
pub(crate) fn open_rings(
    names: &[PathBuf],
    check: impl Fn(&Path, &Reader) -> Result<(), Failure>,
) -> anyhow::Result<(Vec<Reader>, Vec<ReaderError>)> {
    let (mut rings, mut others) = (Vec::new(), Vec::new());
    for name in names {
        let ring = Reader::open(name).map_err(|error| advice::on_perf(name, error))?;
        check(name, &ring)?;
        match advice::check_perf_schema(&ring) {
            Ok(()) => rings.push(ring),
            Err(error) => others.push(error),
        }
    }
    Ok((rings, others))
}

impl Saved {
    fn from_capture(capture: CaptureFile) -> Self {
        let mut read = ReadFiles::default();
        read.add_capture(&capture);
        Self::new(capture, read)
    }

    fn new(capture: CaptureFile, read: ReadFiles) -> Self {
        let reading = ReadingBar::hidden();
        Self { capture, read, is_part: false, is_cut: false, reading, problems: Vec::new(), lost_pages: None }
    }

    /// Returns true if the input is a rotated capture of which files are missing at the start or at the end.
    pub(crate) fn has_missing_files(&self) -> bool {
        self.capture.part() > 1 || self.capture.end().is_some_and(|end| end.reason == EndReason::Rotated)
    }

    /// Says what could hide that which was not found: damage, losses, the filter of the capture, removed files. Returns
    /// the error, with the exit code of the damage or of the losses if there are some.
    pub(crate) fn or_hidden(
        &mut self,
        names: &[PathBuf],
        selection: &Selection,
        is_strict: bool,
        error: anyhow::Error,
    ) -> anyhow::Error {
        // A ring or a window that is not there could be hidden anywhere.
        if self.capture.select(&selection.rings_and_window()).is_err() {
            let _ = self.capture.select(&Selection::new());
        }
        let summary = summarize(&self.capture);
        self.reading.end();
        let (problems, payload_losses, missing) = match &summary {
            Ok(summary) => (&summary.problems[..], &summary.payload_losses[..], MissingEvents::from(summary)),
            Err(_) => (self.capture.problems(), &[][..], MissingEvents::default()),
        };
        missing.in_words("").iter().for_each(|words| say!("{words}"));
        report_removed(self.capture.end().map_or(0, |end| end.stats.removed()));
        match self.report(names, problems, payload_losses) {
            Exit::Done if is_strict && missing.is_loss() => Exit::Lost.failure(error.to_string()).into(),
            Exit::Done => error,
            exit => exit.failure(error.to_string()).into(),
        }
    }

    /// Prints the problems of the input, the `problems` of its export or summary, and the counts of lost payloads.
    /// Returns the exit code for all problems.
    pub(crate) fn report(&self, names: &[PathBuf], problems: &[String], payload_losses: &[PayloadLosses]) -> Exit {
        let name = names[0].display();
        for problem in &self.problems {
            report_problem(self.lost_pages.is_some(), &format!("{name}: {problem}"));
        }
        for left_out in self.capture.left_out() {
            report_problem(false, &format!("{name}: {left_out}"));
        }
        for problem in problems {
            // If there are several captures, each problem begins with the name of its file.
            let is_named = names.iter().any(|name| problem.starts_with(&format!("{}: ", name.display())));
            report_problem(true, &if is_named { problem.clone() } else { format!("{name}: {problem}") });
        }
        report_filter(&names[0], &self.capture);
        let by_ring = payload_losses.iter();
        report_payload_losses(by_ring.map(|of| (of.ring.as_str(), [of.expired, of.malformed, of.omitted])));
        if let Some(end) = self.capture.end() {
            report_table_losses(&end.stats);
            report_never_opened(&end.stats);
        }
        if problems.is_empty() {
            self.lost_pages.map_or(Exit::Done, Exit::from_lost_pages)
        } else if self.capture.is_truncated() && problems.len() == self.capture.problems().len() {
            Exit::Truncated
        } else {
            Exit::Damaged
        }
    }
}

/// Returns the names of files or rings without what an output's name replaces: the extension of a capture, and the
/// number of a file of a rotated capture if there are several.
pub(crate) fn output_stem(names: &[PathBuf]) -> PathBuf {
    let Some(first) = names.first() else { return PathBuf::new() };
    // A capture, or a snapshot of a ring.
    let mut name = if first.extension().is_some_and(|extension| extension == "evc" || extension == "zst") {
        first.with_extension("")
    } else {
        first.file_name().map(PathBuf::from).unwrap_or_default()
    };
    // The files of a rotated capture, trace.0001.evc and so on, are read together. So the name of the output begins
    // with trace, without a number.
    let is_number = |part: &OsStr| part.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    if names.len() > 1 && name.extension().is_some_and(is_number) {
        name.set_extension("");
    }
    name
}

/// Makes the error that two outputs want stdout.
pub(crate) fn stdout_twice() -> Failure {
    Exit::Usage.failure("--json and `--output -` both want stdout; give a file")
}
