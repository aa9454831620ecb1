//! `PerfRecorder`: a recorder of perf events over any number of shards.

use super::builder::PerfRecorderBuilder;
use super::call_sites::CALL_SITES;
use super::core::PerfCore;
use super::global::PERF;
use super::switch::switch;
use crate::reader::{Reader, ReaderError};
use crate::recorder::{Recorder, RecorderStats};
use crate::schema::perf::PerfEvent;
use std::path::Path;
use std::sync::Arc;

/// A recorder of spans and log records. Threads share a ring only if there are more threads than rings. A clone is
/// another handle to the same recorder. The drop of the last handle closes the rings.
///
/// [`PerfRecorder::builder`] makes it. To use it, pass it to a [`RecorderSubscriber`](super::RecorderSubscriber) or a
/// [`RecorderLayer`](super::RecorderLayer). [`init`](super::init) does all of this in one line.
///
/// # Memory
/// Each shard is a ring of [`shard_bytes`](Self::shard_bytes). There are as many shards as threads record at the same
/// time, and at most [`PerfRecorderBuilder::shards`]. Shard 0 also has tables, of
/// [`PerfRecorderBuilder::tables_shift`]. The shared memory does not grow beyond this, however many threads there are
/// and however long the program runs. By default each shard has 18 MiB, and the tables have 4 MiB. The default limit of
/// shards is two for each processor and two more, but at most 16.
///
/// The process's own memory grows with the largest number of spans that were open at the same time: 16 to 32 bytes for
/// each span with `RecorderSubscriber`s, and 24 to 96 bytes with each `RecorderLayer`, in addition to the memory of its
/// `Registry`. Each thread that runs takes about 2 KiB, and each call site about 300 bytes. While nearly 2^24 spans are
/// open, further spans are not recorded, but counted ([`PerfStats::lost_spans`]).
///
/// In a forked child the recorder never records, because its rings belong to the parent process. Create a new recorder
/// there, or [install](crate::global::GlobalRecorder::install) one in [`PERF`] for the global subscriber.
#[derive(Clone)]
pub struct PerfRecorder {
    pub(super) core: Arc<PerfCore>,
}

/// Counters of a perf recorder since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfStats {
    /// The counters of each shard.
    pub shards: Vec<RecorderStats>,
    /// Number of shards that could not be made. The threads that would have had them share other shards.
    pub shard_failures: u64,
    /// The reason why the last of the shards in `shard_failures` could not be made.
    pub shard_error: Option<String>,
    /// Number of spans that were not recorded, because nearly 2^24 spans were open.
    pub lost_spans: u64,
}

impl PerfRecorder {
    /// Starts the configuration of a recorder.
    pub fn builder() -> PerfRecorderBuilder {
        PerfRecorderBuilder::new()
    }

    pub(super) fn from_core(core: PerfCore) -> Self {
        let core = Arc::new(core);
        CALL_SITES.add_recorder(&core);
        if let Some(shard0) = core.shards.get(0) {
            let core = Arc::downgrade(&core);
            shard0.at_exit(move || {
                if let Some(core) = core.upgrade() {
                    core.shards.publish_last_seqnos();
                }
            });
        }
        Self { core }
    }

    /// Returns true if events are recorded now. Always returns false in a forked child.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.is_enabled() && self.core.belongs_to_this_process()
    }

    /// Switches recording on or off, for all handles, while the program runs.
    ///
    /// `tracing` caches for each call site whether a subscriber wants it. So this function makes `tracing` ask again
    /// for all call sites, through the calling thread's subscriber. If the program has only a scoped subscriber
    /// (`set_default`), call this in its scope. While recording is off, a call site costs the same as without any
    /// subscriber, if the program's only subscriber is a [`RecorderSubscriber`](super::RecorderSubscriber).
    ///
    /// Spans that were created while recording was off stay unrecorded when it is on again. A layer is an exception: it
    /// records such a span from the next enter on. While recording is off, the exit of a span is still recorded if its
    /// enter was recorded, and the close of a span if its creation was recorded.
    pub fn set_enabled(&self, enabled: bool) {
        switch(|| {
            self.core.store_enabled(enabled);
            if PERF.installed().is_some_and(|installed| Arc::ptr_eq(&installed.core, &self.core)) {
                PERF.store_switch(enabled);
            }
            true
        });
    }

    /// Returns true if this process made the recorder, and did not inherit it by a fork.
    #[must_use]
    pub fn belongs_to_this_process(&self) -> bool {
        self.core.belongs_to_this_process()
    }

    /// Returns the path of shard 0; `None` for anonymous rings.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.core.shards.get(0)?.path()
    }

    /// Returns the present number of shards.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.core.shards.iter().count()
    }

    /// Returns the bytes of the file of one shard, without the tables of shard 0.
    #[must_use]
    pub fn shard_bytes(&self) -> u64 {
        let geometry = self.core.shards.get(0).map(Recorder::geometry);
        geometry.map_or(0, |geometry| geometry.file_bytes() - geometry.context_area_bytes())
    }

    /// Returns the bytes of the tables.
    #[must_use]
    pub fn tables_bytes(&self) -> u64 {
        self.core.shards.get(0).map_or(0, |shard0| shard0.geometry().context_area_bytes())
    }

    /// Opens the present shards for reading in this process. This is for tests and for anonymous rings.
    ///
    /// # Errors
    /// As [`Reader::options`]`().open_fd`.
    pub fn open_readers(&self) -> Result<Vec<Reader>, ReaderError> {
        self.core
            .shards
            .iter()
            .map(|shard| Reader::options().expect_events::<PerfEvent>().open_fd(shard.as_fd()))
            .collect()
    }

    /// Returns a warning about the place of the rings, such as missing huge pages. The recorder works nevertheless.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.core.shards.get(0)?.warning().map(ToString::to_string)
    }

    /// Sets whether the files stay when the recorder ends, also the files of shards that are made later. This replaces
    /// the builder's setting.
    pub fn keep(&self, keep: bool) {
        self.core.shards.keep(keep);
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> PerfStats {
        let (shard_failures, shard_error) = self.core.shards.failures();
        PerfStats {
            shards: self.core.shards.iter().map(Recorder::stats).collect(),
            shard_failures,
            shard_error,
            lost_spans: self.core.lost_spans(),
        }
    }
}

impl std::fmt::Debug for PerfRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerfRecorder").field("path", &self.path()).field("shards", &self.shard_count()).finish()
    }
}
