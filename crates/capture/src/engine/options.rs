//! The settings of a capture.

use crate::engine::pace::Pace;
use crate::engine::rotation::RotationOptions;
use crate::engine::start::{BatchStart, host_name};
use crate::format::header::PAYLOAD_BYTES_MAX;
use crate::select::batch_filter::BatchFilter;
use eventring::reader::Seek;
use std::time::Duration;

/// Options for a capture: what to take, and when to stop.
#[derive(Clone, Debug)]
#[must_use]
pub struct CaptureOptions {
    pub(crate) level: i32,
    pub(crate) duration: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) rotation: RotationOptions,
    /// True if the files have numbers even if none is ever full.
    pub(crate) is_row: bool,
    pub(crate) only_new: bool,
    pub(crate) awaited: bool,
    pub(crate) overwrite: bool,
    /// The longest time for which events wait in their rings.
    pub(crate) wait_max: Duration,
    /// The size of the largest payload that is taken.
    pub(crate) payload_bytes_max: usize,
    /// The beginning in rings that were captured before, and the name of their host.
    pub(crate) start: BatchStart,
    /// The events that are taken.
    pub(crate) filter: BatchFilter,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureOptions {
    /// The level of compression if none is requested.
    pub const DEFAULT_LEVEL: i32 = 1;

    /// Makes options for a capture into one file, which must not exist yet. The capture takes the events that the
    /// rings hold and the events that are recorded while it runs. It ends when all writers have ended.
    pub fn new() -> Self {
        Self {
            level: Self::DEFAULT_LEVEL,
            duration: None,
            max_bytes: None,
            rotation: RotationOptions::default(),
            is_row: false,
            only_new: false,
            awaited: false,
            overwrite: false,
            wait_max: Pace::WAIT_MAX,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            start: BatchStart::default(),
            filter: BatchFilter::new(),
        }
    }

    /// Sets the compression level of zstd, 1 to 22, or 0 for no compression. If the capture falls behind the writers,
    /// it compresses less for a while
    /// ([`CaptureSummary::lower_level_events`](crate::CaptureSummary::lower_level_events)). Default:
    /// [`Self::DEFAULT_LEVEL`].
    pub fn compression_level(mut self, level: i32) -> Self {
        self.level = level;
        self
    }

    /// Stops the capture after this time. With the time 0, the capture takes only what was recorded before it began.
    /// Default: no limit.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Stops the capture before all of its files together have more than this many bytes, including the counts and the
    /// index at the end of each file. Only the descriptions of the rings at the start of a file may exceed the limit.
    /// Files that the capture has removed ([`Self::keep_files`]) count, too. Default: no limit.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Begins a new file before the current file has more than this many bytes, including the counts and the index at
    /// its end. Each file can be read alone. Each file holds at least one event, even if that event and the
    /// descriptions of the rings exceed the limit. The names get numbers: `trace.evc` becomes `trace.0001.evc` and so
    /// on. Default: one file.
    pub fn rotate_bytes(mut self, bytes: u64) -> Self {
        self.rotation.rotate_bytes = Some(bytes);
        self
    }

    /// Begins a new file when the capture has written to the current file for the duration `time`. The files get the
    /// names that [`Self::rotate_bytes`] describes. Default: one file.
    pub fn rotate_every(mut self, time: Duration) -> Self {
        self.rotation.rotate_every = Some(time);
        self
    }

    /// Keeps only the last `files` files of a rotated capture, and removes the earlier ones. The events in removed
    /// files do not count as lost: [`RingStats::removed`](crate::RingStats::removed) counts them. Default: all files
    /// are kept.
    pub fn keep_files(mut self, files: usize) -> Self {
        self.rotation.keep_files = Some(files);
        self
    }

    /// Sets everything about the rotation set.
    pub fn rotation(mut self, rotation: RotationOptions) -> Self {
        self.rotation = rotation;
        self
    }

    /// Takes only the events that a filter keeps. The others are no loss: the account has them as filtered. The files
    /// name their host and the filter.
    pub fn filter(mut self, filter: BatchFilter) -> Self {
        if !filter.keeps_all() {
            self.start = BatchStart::of_host(&host_name());
        }
        self.filter = filter;
        self
    }

    /// Leaves out the events that the rings hold when the capture begins. Default: false.
    pub fn only_new(mut self, only_new: bool) -> Self {
        self.only_new = only_new;
        self
    }

    /// Says that the caller has waited for the first rings to be made, as for those that come while the capture runs.
    /// Events that such a ring overwrote before it was found are lost
    /// ([`GapCause::Overwritten`](eventring::reader::GapCause::Overwritten)), and not the past of the capture
    /// ([`GapCause::OverwrittenBefore`](eventring::reader::GapCause::OverwrittenBefore)). Default: false.
    pub fn awaited(mut self, awaited: bool) -> Self {
        self.awaited = awaited;
        self
    }

    /// Returns where the capture begins in the rings that exist when it begins.
    pub(crate) fn first_place(&self) -> Seek {
        match (self.only_new, self.awaited) {
            (true, _) => Seek::Newest,
            (false, true) => Seek::Seqno(1),
            (false, false) => Seek::Oldest,
        }
    }

    /// Replaces files that exist. Default: false.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    pub(crate) fn rotates(&self) -> bool {
        self.rotation.rotates() || self.is_row
    }
}
