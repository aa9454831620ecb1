//! The settings of a capture.

use std::time::Duration;

/// Options for a capture: what to take, and when to stop.
#[derive(Clone, Debug)]
#[must_use]
pub struct CaptureOptions {
    pub(super) level: i32,
    pub(super) duration: Option<Duration>,
    pub(super) max_bytes: Option<u64>,
    pub(super) rotate_bytes: Option<u64>,
    pub(super) rotate_every: Option<Duration>,
    pub(super) keep_files: Option<usize>,
    pub(super) only_new: bool,
    pub(super) overwrite: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureOptions {
    /// Makes options that take all events that the rings hold and go on to record, until their writers end, into one
    /// file that must not exist yet.
    pub fn new() -> Self {
        Self {
            level: 3,
            duration: None,
            max_bytes: None,
            rotate_bytes: None,
            rotate_every: None,
            keep_files: None,
            only_new: false,
            overwrite: false,
        }
    }

    /// Sets the compression level of zstd, 1 to 22. Default: 3.
    pub fn compression_level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Stops the capture after this time. If the time is 0, the capture takes everything that was recorded before it
    /// began. Default: no limit.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Stops the capture before all of its files together have more than this many bytes, including their ends and
    /// indexes. The descriptions of the rings that exist at the start of a file are written even if they exceed the
    /// limit. Files that were removed again ([`Self::keep_files`]) count, too. Default: no limit.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Begins a new file before the current file has more than this many bytes, including its end and index. Each file
    /// can be read alone. Each file holds at least one event, even if that event and the descriptions of the rings
    /// exceed the limit. `trace.evc` becomes `trace.0001.evc` and so on. Default: one file.
    pub fn rotate_bytes(mut self, bytes: u64) -> Self {
        self.rotate_bytes = Some(bytes);
        self
    }

    /// Begins a new file after this time, as [`Self::rotate_bytes`] does. Default: one file.
    pub fn rotate_every(mut self, time: Duration) -> Self {
        self.rotate_every = Some(time);
        self
    }

    /// Keeps only the last `files` of the rotated files. Events in removed files do not count as lost. They are counted
    /// in [`RingStats::removed`](super::RingStats::removed). Default: all files are kept.
    pub fn keep_files(mut self, files: usize) -> Self {
        self.keep_files = Some(files);
        self
    }

    /// Leaves out the events that the rings hold already. Default: false.
    pub fn only_new(mut self, only_new: bool) -> Self {
        self.only_new = only_new;
        self
    }

    /// Replaces files that exist. Default: false.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    pub(super) fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_every.is_some()
    }
}
