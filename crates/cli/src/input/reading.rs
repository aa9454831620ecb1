//! The bar that shows how much of a capture has been read.

use eventring_capture::CaptureFile;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

/// The time after which the bar appears. Most captures are read before.
const TIMEOUT: Duration = Duration::from_millis(500);

/// A line of progress, as far as stderr is a terminal.
pub(crate) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// A progress bar on stderr. Copies of it are the same bar.
#[derive(Clone)]
pub(crate) struct ReadingBar(ProgressBar);

impl ReadingBar {
    /// Makes a bar that is never shown.
    pub(crate) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// Makes the bar, and a capture that reports to it and to `tell`. With `is_quiet`, or if stderr is no terminal, the
    /// bar is not shown.
    pub(crate) fn with_capture(
        capture: CaptureFile,
        is_quiet: bool,
        tell: impl Fn(u64, u64) + Send + Sync + 'static,
    ) -> (CaptureFile, Self) {
        if is_quiet || !io::stderr().is_terminal() {
            return (capture.with_progress(tell), Self::hidden());
        }
        let bar = ProgressBar::new(0);
        let template = "reading {bar:30} {percent:>3}% of {total_bytes}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╾─"));
        }
        let (begun, shown) = (Instant::now(), bar.clone());
        let report = move |read_bytes, all_bytes| {
            tell(read_bytes, all_bytes);
            if begun.elapsed() >= TIMEOUT {
                shown.set_length(all_bytes);
                shown.set_position(read_bytes);
            }
        };
        (capture.with_progress(report), Self(bar))
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}
