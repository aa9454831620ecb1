//! `PerfRecorder`: a recorder of perf events over any number of shards.

use super::builder::PerfRecorderBuilder;
use super::call_sites::{CALL_SITES, NO_CALL_SITE};
use super::fields::FieldLimits;
use super::global::PERF;
use super::redact::RedactedFields;
use super::shards::Shards;
use super::switch::switch;
use super::tables::{Tables, Which};
use super::thread::ThreadState;
use crate::reader::{Reader, ReaderError};
use crate::recorder::{Recorder, RecorderStats};
use crate::schema::perf::{PerfEvent, PerfExt, ThreadView, tables};
use crate::sync::{AtomicU64, Ordering};
use std::path::Path;
use std::sync::Arc;
use tracing_core::Metadata;

/// Records what spans and log records do, into one ring for each few threads. Cloning gives another handle; the last one
/// closes the rings.
///
/// Made by [`PerfRecorder::builder`]; used by giving it to a [`RecorderSubscriber`](super::RecorderSubscriber) or a
/// [`RecorderLayer`](super::RecorderLayer). [`init`](super::init) does all of it in one line.
///
/// # Memory
/// Each shard is a ring of [`shard_bytes`](Self::shard_bytes), with as many shards as threads record at a time and at most
/// [`PerfRecorderBuilder::shards`]; shard 0 has tables of [`PerfRecorderBuilder::tables_shift`] beside. That is all that is shared,
/// however many threads there are and however long the program runs: by default 18 MiB for each thread, at
/// most two for each processor and two more, and never more than 16; and 4 MiB.
///
/// In the process's own memory there are, for as many spans as were ever open at a time, 16 to 32 bytes each (`RecorderSubscriber`, all of
/// them together) or 24 to 96 (each `RecorderLayer`, besides what its `Registry` has); about 2 KiB for each thread that runs; and about
/// 300 bytes for each call site. When nearly 2^24 spans are open, further ones are not recorded, but counted
/// ([`PerfStats::lost_spans`]).
///
/// In a forked child the recorder is disabled for good: its rings belong to the parent. Create a new one there, or
/// [`PERF.install`](crate::global::GlobalRecorder::install) one for the global subscriber.
#[derive(Clone)]
pub struct PerfRecorder {
    pub(super) core: Arc<PerfCore>,
}

/// No recorder's id.
const SWITCHED_OFF: u64 = u64::MAX;

/// What all handles share. What each event needs comes first, in one cache line.
#[repr(C, align(64))]
pub(super) struct PerfCore {
    /// The id while events are recorded, [`SWITCHED_OFF`] while not: one question for both.
    recording_id: AtomicU64,
    /// Never used twice in a process: threads find their shards by it.
    pub(super) id: u64,
    pub(super) limits: FieldLimits,
    pub(super) redacted: RedactedFields,
    pub(super) shards: Shards,
    tables: Tables,
    lost_spans: AtomicU64,
}

/// What a perf recorder counted since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfStats {
    /// The counters of each shard.
    pub shards: Vec<RecorderStats>,
    /// Shards that could not be made; their threads share others.
    pub shard_failures: u64,
    /// Why the last one could not.
    pub shard_error: Option<String>,
    /// Spans that were not recorded because nearly 2^24 were open.
    pub lost_spans: u64,
}

impl PerfRecorder {
    /// Starts the configuration of a recorder.
    pub fn builder() -> PerfRecorderBuilder {
        PerfRecorderBuilder::new()
    }

    pub(super) fn from_parts(shards: Shards, tables: Tables, limits: FieldLimits, redacted: RedactedFields) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let core = Arc::new(PerfCore {
            id,
            recording_id: AtomicU64::new(id),
            shards,
            tables,
            limits,
            redacted,
            lost_spans: AtomicU64::new(0),
        });
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

    /// Whether events are recorded now. Always false in a forked child.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.core.is_enabled() && self.core.belongs_to_this_process()
    }

    /// Switches recording on or off, for all handles, while the program runs.
    ///
    /// All call sites are asked again, by way of the calling thread's subscriber: if the program has only one, in a scope
    /// (`set_default`), call this in that scope. Off, call sites of a program whose only subscriber is a [`RecorderSubscriber`](super::RecorderSubscriber) cost what they
    /// cost without any subscriber. Spans that were created while it was off stay unrecorded when it is on again, except through a
    /// layer, which records them from the next time they are entered. What was recorded as begun gets its end also while recording is off: when a
    /// thread exits a span that it had entered before, and when a span is closed that was created before.
    pub fn set_enabled(&self, enabled: bool) {
        switch(|| {
            self.core.recording_id.store(if enabled { self.core.id } else { SWITCHED_OFF }, Ordering::Relaxed);
            if PERF.installed().is_some_and(|installed| Arc::ptr_eq(&installed.core, &self.core)) {
                PERF.store_switch(enabled);
            }
            true
        });
    }

    /// Whether the recorder was made by this process, and not inherited by a fork.
    #[must_use]
    pub fn belongs_to_this_process(&self) -> bool {
        self.core.belongs_to_this_process()
    }

    /// Path of shard 0; `None` for anonymous rings.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.core.shards.get(0)?.path()
    }

    /// How many shards there are by now.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        self.core.shards.iter().count()
    }

    /// Bytes of the file of one shard, without the tables that shard 0 has.
    #[must_use]
    pub fn shard_bytes(&self) -> u64 {
        let geometry = self.core.shards.get(0).map(Recorder::geometry);
        geometry.map_or(0, |geometry| geometry.file_bytes() - geometry.context_area_bytes())
    }

    /// Bytes of the tables.
    #[must_use]
    pub fn tables_bytes(&self) -> u64 {
        self.core.shards.get(0).map_or(0, |shard0| shard0.geometry().context_area_bytes())
    }

    /// Opens the shards there are by now for reading, in this process: for tests, and for anonymous rings.
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

    /// What the user should know about the rings' place (no huge pages, say); all works the same.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.core.shards.get(0)?.warning().map(ToString::to_string)
    }

    /// Whether the files stay when the recorder ends; changes what the builder was told, also for shards that are made later.
    pub fn keep(&self, keep: bool) {
        self.core.shards.keep(keep);
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> PerfStats {
        let (shard_failures, shard_error) = self.core.shards.failures();
        PerfStats {
            shards: self.core.shards.iter().map(Recorder::stats).collect(),
            shard_failures,
            shard_error,
            lost_spans: self.core.lost_spans.load(Ordering::Relaxed),
        }
    }
}

impl std::fmt::Debug for PerfRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerfRecorder").field("path", &self.path()).field("shards", &self.shard_count()).finish()
    }
}

impl Drop for PerfCore {
    fn drop(&mut self) {
        // Before the shards are.
        self.shards.publish_last_seqnos();
    }
}

impl PerfCore {
    #[inline(always)]
    pub(super) fn is_enabled(&self) -> bool {
        self.recording_id() != SWITCHED_OFF
    }

    /// The id, if events are recorded now; otherwise none that any recorder has.
    #[inline(always)]
    pub(super) fn recording_id(&self) -> u64 {
        // Relaxed: a switch, which orders nothing.
        self.recording_id.load(Ordering::Relaxed)
    }

    pub(super) fn belongs_to_this_process(&self) -> bool {
        self.shards.get(0).is_some_and(Recorder::belongs_to_this_process)
    }

    /// Records an event of the calling thread, whose id is put into `ext`.
    #[inline(always)]
    pub(super) fn record(
        self: &Arc<Self>,
        thread: &ThreadState,
        event: PerfEvent,
        ext: PerfExt,
        payload: &[u8],
    ) -> u64 {
        let [span_id, related, ids, counts] = ext.to_words();
        match thread.ring_of(self) {
            Some(ring) => ring.record(event as u16, [span_id, related, ids | thread.id_word(), counts], payload),
            None => 0,
        }
    }

    /// The id of a call site. A forked child does not ask for one that it does not know: another thread may have held the lock
    /// when it was made, and nothing is recorded anyway.
    #[inline(always)]
    pub(super) fn call_site_id(&self, metadata: &'static Metadata<'static>) -> u32 {
        match CALL_SITES.known_id_of(metadata) {
            Some(id) => id,
            None if self.belongs_to_this_process() => CALL_SITES.id_of(metadata),
            None => NO_CALL_SITE,
        }
    }

    /// Takes a call site into the tables. False if this recorder has no use for it: it was inherited by a fork.
    pub(super) fn add_call_site(&self, id: u32, body: &[u8]) -> bool {
        let Some(shard0) = self.shards.get(0).filter(|shard0| shard0.belongs_to_this_process()) else { return false };
        self.tables.add(shard0, Which::CallSites, id, body);
        // For streams, and for what did not fit. Of no thread: whose call made it known says nothing.
        let ext = PerfExt { call_site_id: id, ..PerfExt::default() };
        shard0.record(PerfEvent::CallSite as u16, ext.to_words(), body);
        true
    }

    /// Takes the calling thread into the tables and says that it has started. A thread that `is_ending` has lost what the
    /// standard library knows of it.
    pub(super) fn add_thread(&self, id: u32, shard: usize, is_ending: bool) {
        let (Some(shard0), Some(shard)) = (self.shards.get(0), self.shards.get(shard)) else { return };
        let name = if is_ending { None } else { std::thread::current().name().map(ToOwned::to_owned) };
        let name = name.or_else(|| Some(rustix::thread::name().ok()?.to_string_lossy().into_owned()));
        let os_thread_id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let body = ThreadView::encode(shard0.clock().now_epoch_nanos(), os_thread_id, &name.unwrap_or_default());
        self.tables.add(shard0, Which::Threads, id, &body);
        let ext = PerfExt { thread_id: id, ..PerfExt::default() };
        shard.record(PerfEvent::ThreadStarted as u16, ext.to_words(), &body);
    }

    /// A span could not be recorded because too many are open.
    #[cold]
    pub(super) fn count_lost_span(&self) {
        let lost = self.lost_spans.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(shard0) = self.shards.get(0) {
            shard0.publish_context_word(tables::LOST_SPANS_OFFSET, lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracing::CatalogLosses;

    #[test]
    fn spans_that_found_no_room_are_counted_where_a_reader_sees_it() {
        let builder = PerfRecorder::builder().anonymous().shifts(15, 21).tables_shift(13).prefault(false);
        let recorder = builder.build().unwrap();
        recorder.core.count_lost_span();
        recorder.core.count_lost_span();
        let readers = recorder.open_readers().unwrap();
        assert_eq!((recorder.stats().lost_spans, CatalogLosses::of(&readers[0]).spans), (2, 2));
    }
}
