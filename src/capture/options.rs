//! What a capture is asked for.

use std::time::Duration;

/// What to capture, and when to stop.
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
    /// Everything that the rings hold and go on to record, until their writers end, in one file that must not exist.
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

    /// Compression level of zstd, 1 to 22. Default: 3.
    pub fn compression_level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Stop after this time; at 0 everything recorded until now is taken. Default: none.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Stop before the files have more than so many bytes together, end and index included. What must be in a file in any case (the
    /// descriptions of the rings that there are at its begin) is written even if that is more. Files that were removed again
    /// ([`Self::keep_files`]) count, too. Default: none.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Begin a new file before the current one has more than so many bytes, end and index included. Each file can be read alone;
    /// each holds one event at least, even if this and the descriptions of the rings are more. `trace.evc` becomes `trace.0001.evc` and so
    /// on. Default: none.
    pub fn rotate_bytes(mut self, bytes: u64) -> Self {
        self.rotate_bytes = Some(bytes);
        self
    }

    /// Begin a new file after this time; as [`Self::rotate_bytes`]. Default: none.
    pub fn rotate_every(mut self, time: Duration) -> Self {
        self.rotate_every = Some(time);
        self
    }

    /// Of rotated files, keep only the last so many. Events of those that are removed are no loss: they are counted apart, in
    /// [`RingStats::removed`](super::RingStats::removed). Default: all.
    pub fn keep_files(mut self, files: usize) -> Self {
        self.keep_files = Some(files);
        self
    }

    /// Leave out what the rings hold already. Default: false.
    pub fn only_new(mut self, only_new: bool) -> Self {
        self.only_new = only_new;
        self
    }

    /// Replace files that exist. Default: false.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    pub(super) fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_every.is_some()
    }
}
