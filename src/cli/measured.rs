//! The captures whose spans `diff` and `budget` compare.

use super::exit::Exit;
use super::format::events;
use super::paint::WARNING;
use super::reading::ReadingBar;
use super::saved;
use eventring::capture::ReadFiles;
use eventring::export::{Summary, summarize};
use std::path::PathBuf;

/// The summaries of several captures, each by itself.
pub(super) struct Measured {
    pub(super) summaries: Vec<Summary>,
    /// The exit code for the first problem of a capture. It is `Done` if there is no problem.
    pub(super) exit: Exit,
    /// True if events or payloads were lost.
    pub(super) has_losses: bool,
    /// The files of the captures. An output must not replace them.
    pub(super) read: ReadFiles,
}

impl Measured {
    /// Reads the captures, or rings as they are now. Prints their problems.
    pub(super) fn read(names: &[PathBuf], is_quiet: bool) -> anyhow::Result<Self> {
        let mut measured =
            Self { summaries: Vec::new(), exit: Exit::Done, has_losses: false, read: ReadFiles::default() };
        for name in names {
            let name = std::slice::from_ref(name);
            let mut saved = saved::open(name, true)?;
            (saved.capture, saved.reading) = ReadingBar::on(saved.capture, is_quiet);
            measured.read.add_capture(&saved.capture);
            let summary = summarize(&saved.capture);
            saved.reading.end();
            let summary = summary?;
            let exit = saved.report(name, &summary.problems, &summary.payload_losses);
            if measured.exit == Exit::Done {
                measured.exit = exit;
            }
            if summary.lost > 0 {
                let (name, lost) = (name[0].display(), events(summary.lost));
                anstream::eprintln!(
                    "{WARNING}warning:{WARNING:#} {name}: {lost} were lost, so the numbers are too small"
                );
            }
            measured.has_losses |= summary.lost.saturating_add(summary.lost_payloads()) > 0;
            measured.summaries.push(summary);
        }
        Ok(measured)
    }

    /// Returns the code of a problem, of losses if `is_strict`, of limits that were exceeded, or `Done`.
    pub(super) fn exit_code(&self, is_strict: bool, is_exceeded: bool) -> Exit {
        match self.exit {
            Exit::Done if is_strict && self.has_losses => Exit::Lost,
            Exit::Done if is_exceeded => Exit::Exceeded,
            exit => exit,
        }
    }
}
