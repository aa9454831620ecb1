//! `PerfRecorder`: a recorder of spans and log records, with one or more shards.

use crate::reader::{Reader, ReaderError};
use crate::recorder::{Recorder, RecorderStats};
use crate::schema::perf::PerfEvent;
use crate::shm::ByteCount;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use std::path::Path;
use std::sync::Arc;

/// A recorder of spans and log records. It has several rings (shards), so that threads share a ring only if there are
/// more threads than rings. A clone is another handle to the same recorder. When the last handle is dropped, the
/// rings are closed.
///
/// [`PerfRecorder::builder`] starts the configuration of a recorder. A
/// [`RecorderSubscriber`](crate::tracing::RecorderSubscriber) or a [`RecorderLayer`](crate::tracing::RecorderLayer)
/// records to it. [`init`](fn@crate::tracing::init) makes and connects all of these in one line.
///
/// # Memory
/// Shared memory: all shards together take at most the memory that [`PerfRecorderBuilder::memory`] or the configuration
/// sets, 64 MiB by default, or less if little memory is free. There are as many shards as threads that record at the
/// same time, but never more than the limit ([`PerfRecorderBuilder::shards`]). Each shard takes
/// [`shard_bytes`](Self::shard_bytes), 10 MiB by default. Shard 0 also has the tables, 4 MiB by default
/// ([`PerfRecorderBuilder::tables_shift`]). The shared memory never grows beyond this.
///
/// The process's own memory grows with the largest number of spans that were open at the same time. Each open span
/// takes 16 to 32 bytes with a `RecorderSubscriber`. With a `RecorderLayer`, each open span takes 32 to 96 bytes, and
/// the `Registry` takes memory of its own. Each running thread takes about 2 KiB, and each call site about 300 bytes.
/// While nearly 2^24 spans are open, a new span is not recorded, but only counted ([`PerfStats::lost_spans`]).
///
/// In a forked child the recorder records nothing, because its rings belong to the parent process. The child can
/// create a recorder of its own. If the subscriber or layer records to [`PERF`](crate::tracing::PERF), the child can
/// [install](crate::global::GlobalRecorder::install) the new recorder there.
///
/// [`PerfRecorderBuilder::memory`]: crate::tracing::PerfRecorderBuilder::memory
/// [`PerfRecorderBuilder::shards`]: crate::tracing::PerfRecorderBuilder::shards
/// [`PerfRecorderBuilder::tables_shift`]: crate::tracing::PerfRecorderBuilder::tables_shift
#[derive(Clone)]
pub struct PerfRecorder {
    pub(in crate::tracing::record) core: Arc<PerfCore>,
}

/// Counters of a perf recorder since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfStats {
    /// The counters of each shard.
    pub shards: Vec<RecorderStats>,
    /// Number of shards that could not be made. Threads for which they were needed share other shards.
    pub shard_failures: u64,
    /// The reason of the last failure that `shard_failures` counts; `None` if there was no failure.
    pub shard_error: Option<String>,
    /// Number of spans that were not recorded, because too many spans (nearly 2^24) were open.
    pub lost_spans: u64,
}

impl PerfRecorder {
    pub(in crate::tracing::record) fn from_core(core: PerfCore) -> Self {
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

    /// Returns true if the recorder is switched on. In a forked child, always returns false.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.is_enabled() && self.core.belongs_to_this_process()
    }

    /// Returns true if this process made the recorder. Returns false if the process inherited the recorder by a fork.
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

    /// Returns the size of the file of one shard in bytes. The tables in the file of shard 0 do not count.
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

    /// Opens readers of all shards that exist now, in this process. This is for tests, and for anonymous rings, which
    /// have no name by which a reader could open them.
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

    /// Returns a warning about the memory of the rings: that they are smaller than by default, because little memory is
    /// free, or that huge pages are missing. The recorder works nevertheless. Returns `None` if there is no warning.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let shard0 = self.core.shards.get(0)?;
        let reduced = shard0.reduced_free_bytes().map(|free| {
            let free = ByteCount(free);
            format!("the rings are smaller than by default, because {free} were free; set a size to choose another")
        });
        reduced.or_else(|| shard0.warning().map(ToString::to_string))
    }

    /// Sets whether the files stay when the recorder ends. This replaces the builder's setting, and also applies to
    /// shards that are made later.
    pub fn keep(&self, keep: bool) {
        self.core.shards.keep(keep);
        self.core.now.iter().for_each(|now| now.keep(keep));
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

#[cfg(test)]
mod tests {
    use crate::tracing::read::CatalogLosses;
    use crate::tracing::record::perf_recorder::handle::PerfRecorder;

    #[test]
    fn spans_that_found_no_room_are_counted_where_a_reader_sees_it() {
        let builder = PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(13).prefault(false);
        let recorder = builder.build().unwrap();
        recorder.core.count_lost_span();
        recorder.core.count_lost_span();
        let readers = recorder.open_readers().unwrap();
        assert_eq!((recorder.stats().lost_spans, CatalogLosses::read(&readers[0]).spans), (2, 2));
    }
}
