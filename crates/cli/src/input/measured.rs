//! Reading the captures whose spans `diff` and `budget` compare.

use crate::exit::Exit;
use crate::input::reading::ReadingBar;
use crate::input::saved;
use crate::text::losses::MissingEvents;
use crate::text::paint::WARNING;
use eventring_capture::{CaptureFile, ReadFiles};
use eventring_export::{Summary, summarize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The summaries of several captures, each by itself.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) summaries: Vec<Summary>,
    /// The exit code for the first problem of a capture. It is `Done` if there is no problem.
    pub(crate) exit: Exit,
    /// The filters of the captures, in words; the name of none is empty.
    pub(crate) filters: BTreeSet<String>,
    /// True if events or payloads were lost since the captures began.
    pub(crate) has_losses: bool,
    /// True if events had been overwritten before a capture began.
    pub(crate) lacks_beginning: bool,
    /// True if files of a rotated capture are missing.
    pub(crate) has_missing_files: bool,
    /// The files of the captures. An output must not replace them.
    pub(crate) read: ReadFiles,
}

impl Measured {
    /// Reads the captures, or rings as they are now. The files of a rotated capture are one capture. Prints problems.
    pub(crate) fn read(names: &[PathBuf], is_quiet: bool) -> anyhow::Result<Self> {
        let mut measured = Self::default();
        for names in captures(names) {
            let mut saved = saved::open(&names, true)?;
            (saved.capture, saved.reading) = ReadingBar::with_capture(saved.capture, is_quiet, |_, _| ());
            measured.read.add_capture(&saved.capture);
            let summary = saved.capture.expect_spans().and_then(|()| summarize(&saved.capture));
            saved.reading.end();
            let summary = summary?;
            measured.exit = measured.exit.or(saved.report(&names, &summary.problems, &summary.payload_losses));
            let warn = |what: String| {
                let name = names[0].display();
                say!("{WARNING}warning:{WARNING:#} {name}: {what}");
            };
            measured.filters.insert(Vec::from_iter(saved.capture.filters()).join("; "));
            MissingEvents::from(&summary).warn_of_numbers(&names[0]);
            if saved.has_missing_files() {
                warn(
                    "files of its rotated capture are missing, so the numbers are too small; name all of its files, those \
                     of side B of `diff` after --with"
                        .to_owned(),
                );
            }
            measured.has_missing_files |= saved.has_missing_files();
            measured.has_losses |= MissingEvents::from(&summary).is_loss();
            measured.lacks_beginning |= summary.overwritten_before > 0;
            measured.summaries.push(summary);
        }
        Ok(measured)
    }

    /// Returns the code of a problem, of losses if `is_strict`, of limits that were exceeded, or `Done`.
    pub(crate) fn exit_code(&self, is_strict: bool, is_exceeded: bool) -> Exit {
        match self.exit {
            Exit::Done if is_strict && self.has_losses => Exit::Lost,
            Exit::Done if is_exceeded => Exit::Exceeded,
            exit => exit,
        }
    }
}

/// Returns the names of each capture: several if they are the files of a rotated capture, otherwise one.
pub(crate) fn captures(names: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut captures: Vec<(Option<CaptureFile>, Vec<PathBuf>)> = Vec::new();
    for name in names {
        // What cannot be opened has its error later.
        let file = CaptureFile::open(name).ok();
        let is_its = |known: &CaptureFile| file.as_ref().is_some_and(|file| known.is_same_capture(file));
        match captures.iter_mut().find(|(known, _)| known.as_ref().is_some_and(is_its)) {
            Some((_, names)) => names.push(name.clone()),
            None => captures.push((file, vec![name.clone()])),
        }
    }
    captures.into_iter().map(|(_, names)| names).collect()
}
