//! The state at a time of a capture.

use super::core::LiveCore;
use super::options::LiveOptions;
use super::sight::Sight;
use super::state::LiveState;
use super::tables::LiveTables;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::EntryContent;
use eventring_capture::{CaptureError, CaptureFile, CapturedLife};

/// The state of programs at a time of a capture.
pub struct LiveCapture {
    tables: LiveTables,
    core: LiveCore,
    problems: Vec<String>,
}

impl LiveCapture {
    /// Reads a capture up to a time (nanoseconds since the epoch), or to its end.
    ///
    /// # Errors
    /// There is no perf ring, or a perf ring has a schema of another version.
    pub fn at(capture: &CaptureFile, epoch_nanos: Option<u64>, options: &LiveOptions) -> Result<Self, CaptureError> {
        let recording = CaptureRecording::new(capture)?;
        recording.expect_spans()?;
        let tables = LiveTables::of_capture(capture, recording.rings().clone());
        let mut core = LiveCore::new(options);
        core.grow(&tables);
        let ignore = &mut |_: &Sight<'_>, _: LiveState<'_>| ();
        let until = epoch_nanos.unwrap_or(u64::MAX);
        let mut entries = recording.entries();
        let mut is_cut = false;
        while let Some(entry) = entries.next() {
            let nanos = match &entry.content {
                EntryContent::Perf { record, .. } => record.epoch_nanos(),
                EntryContent::Typed { descriptor, .. } => descriptor.record_epoch_nanos,
                EntryContent::Gap { .. } => 0,
            };
            if nanos > until {
                is_cut = true;
                break;
            }
            core.take(&tables, &entry, ignore);
        }
        let mut end_nanos = if is_cut { until } else { 0 };
        for (process, number) in core.processes.iter_mut().zip(recording.rings().processes()) {
            let life = capture.life_of(*number);
            // A program that still ran at the end of the capture did so until then, with or without events.
            end_nanos = end_nanos.max(life.until_nanos().unwrap_or(0));
            if let CapturedLife::Ended { end, .. } = life
                && until > end.after_epoch_nanos
            {
                let mut end = end;
                end.before_epoch_nanos = end.before_epoch_nanos.min(until);
                process.has_ended = true;
                process.end = Some(end);
            }
        }
        core.advance(&tables, end_nanos.min(until), ignore);
        core.close_at_end(&tables, ignore);
        let problems = capture.problems().iter().chain(entries.problems()).cloned().collect();
        Ok(Self { tables, core, problems })
    }

    /// Returns the state at that time.
    #[must_use]
    pub fn state(&self) -> LiveState<'_> {
        LiveState { tables: &self.tables, core: &self.core }
    }

    /// Returns the problems of the capture, a line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl std::fmt::Debug for LiveCapture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state().fmt(f)
    }
}
