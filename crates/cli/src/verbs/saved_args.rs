//! The input of the verbs that read a capture or rings, or a part of them that options select.

use crate::args::selection::{EventArgs, WindowArgs};
use crate::exit::Exit;
use crate::input::names::decoder::{Decoder, check_type};
use crate::input::names::fields::{KnownFields, check_fields};
use crate::input::names::unknown_names::SeenNames;
use crate::input::reading::ReadingBar;
use crate::input::saved::{Saved, open};
use crate::text::paint::DIM;
use crate::verbs::now::open::lines_at;
use eventring_capture::Selection;
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

impl Saved {
    /// Selects, of a part of the capture, what fulfils a condition. The condition is about everything in the part's
    /// window of time: what fulfils it may lie around a chosen span, or on another thread.
    ///
    /// # Errors
    /// Nothing is selected; then it is said what could hide it.
    pub(crate) fn select(
        &mut self,
        names: &[PathBuf],
        selection: &Selection,
        events: &EventArgs,
        is_strict: bool,
    ) -> anyhow::Result<()> {
        self.is_part = *selection != Selection::new();
        self.is_cut = selection.cuts_spans();
        let selected = self.say_what_is_open(selection).and_then(|()| self.select_part(selection, events));
        selected.map_err(|error| self.or_hidden(names, selection, is_strict, error))
    }

    /// If a window of time has no event, says which spans were open then.
    fn say_what_is_open(&mut self, selection: &Selection) -> anyhow::Result<()> {
        let window = selection.window();
        if window == Selection::new() {
            return Ok(());
        }
        self.capture.select(&window)?;
        if self.capture.has_event() {
            return Ok(());
        }
        self.capture.select(&Selection::new())?;
        say!("{DIM}the window of time has no event; what was open in it:{DIM:#}");
        lines_at(&self.capture, window.end_epoch_nanos())?.iter().for_each(|line| say!("{line}"));
        Ok(())
    }

    fn select_part(&mut self, selection: &Selection, events: &EventArgs) -> anyhow::Result<()> {
        if let Some(condition) = &events.condition {
            let known = KnownFields::of_capture(&self.capture);
            check_fields(condition, &known).map_err(|why| Exit::Usage.failure(format!("--where: {why}")))?;
        }
        let types: Vec<Decoder> = self.capture.rings().iter().map(Decoder::for_captured).collect();
        let checked = events.types.iter().try_for_each(|name| check_type(name, types.iter()));
        checked.map_err(|why| Exit::Usage.failure(why))?;
        let selected = self.capture.select(selection);
        if !events.target.is_empty() || events.condition.is_some() {
            SeenNames::of_capture(&self.capture).report_unseen(events);
        }
        Ok(selected?)
    }
}
