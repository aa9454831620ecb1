//! The options that choose captures or rings, and the part of them that is read.

use super::selection::{EventArgs, WindowArgs};
use crate::input::reading::ReadingBar;
use crate::input::saved::{Saved, open};
use std::path::PathBuf;

/// The input of `export`, `summary` and `view` on the command line.
#[derive(clap::Args, Clone)]
pub(crate) struct SavedArgs {
    /// Capture files: one, those of a rotated capture, or captures of different programs, which become one; or names or
    /// paths of rings, which are read together
    #[arg(value_name = "FILE", required = true)]
    pub names: Vec<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
}

impl SavedArgs {
    /// Opens the input, and selects the part that the options name. With `needs_spans`, one of the rings must be a perf
    /// ring. With `is_quiet`, shows no progress. With `is_strict`, losses that could hide the part decide the exit
    /// code. Calls `tell` with how many bytes of how many each reading has read.
    pub(crate) fn open(
        &self,
        needs_spans: bool,
        is_quiet: bool,
        is_strict: bool,
        tell: impl Fn(u64, u64) + Send + Sync + 'static,
    ) -> anyhow::Result<Saved> {
        self.part.open(&self.names, needs_spans, is_quiet, is_strict, tell)
    }
}

/// The options that select a part of a capture.
#[derive(clap::Args, Clone)]
pub(crate) struct PartArgs {
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    window: WindowArgs,
}

impl PartArgs {
    /// Opens capture files, or rings, as one capture, and selects the part that the options name.
    pub(crate) fn open(
        &self,
        names: &[PathBuf],
        needs_spans: bool,
        is_quiet: bool,
        is_strict: bool,
        tell: impl Fn(u64, u64) + Send + Sync + 'static,
    ) -> anyhow::Result<Saved> {
        let mut saved = open(names, needs_spans)?;
        (saved.capture, saved.reading) = ReadingBar::with_capture(saved.capture, is_quiet, tell);
        let selection = self.window.selection(&self.events, &saved.capture);
        saved.select(names, &selection, &self.events, is_strict)?;
        Ok(saved)
    }
}
