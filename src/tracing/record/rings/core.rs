//! `PerfCore`: the state of a perf recorder, which all handles to the recorder share.

use crate::now::NowTable;
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt, ThreadView, tables};
use crate::sync::interrupted::OwnerTag;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::tracing::record::fields::limits::FieldLimits;
use crate::tracing::record::fields::redact::RedactedFields;
use crate::tracing::record::rings::shards::Shards;
use crate::tracing::record::rings::tables::{TableKind, Tables};
use crate::tracing::record::threads::time::ThreadTimes;
#[cfg(feature = "context")]
use crate::tracing::trace_context::ids::ProcessIds;

/// Value of [`PerfCore::recording_tag`] while the recorder is switched off.
const SWITCHED_OFF: OwnerTag = OwnerTag::NOBODY;

/// The state of a perf recorder, which all handles to the recorder share. The fields that are needed to record an
/// event come first and lie in one cache line.
#[repr(C, align(64))]
pub(in crate::tracing::record) struct PerfCore {
    /// The recorder's tag while the recorder is on, and [`SWITCHED_OFF`] while it is off. Each thread keeps the ring
    /// that it recorded to last, together with the tag of the ring's recorder. If the kept tag equals `recording_tag`,
    /// this recorder is on, and the kept ring belongs to it.
    recording_tag: AtomicUsize,
    /// The tag of the recorder's id, by which a thread finds its ring of this recorder.
    pub(in crate::tracing::record) tag: OwnerTag,
    /// The recorder's id, by which a thread finds its shard of this recorder. No two recorders of a process have the
    /// same id.
    pub(in crate::tracing::record) id: u64,
    /// The tables of the present, if they could be made.
    pub(in crate::tracing::record) now: Option<NowTable>,
    pub(in crate::tracing::record) limits: FieldLimits,
    pub(in crate::tracing::record) redacted: RedactedFields,
    /// True if the text of a log record is stored as its arguments. Otherwise the program formats it, so that redacted
    /// fields are found by their names, and a low limit of texts holds.
    pub(in crate::tracing::record) stores_arguments: bool,
    pub(in crate::tracing::record) shards: Shards,
    tables: Tables,
    pub(in crate::tracing::record) thread_times: ThreadTimes,
    lost_spans: AtomicU64,
    #[cfg(feature = "context")]
    process_ids: std::sync::OnceLock<ProcessIds>,
}

impl Drop for PerfCore {
    fn drop(&mut self) {
        // The last seqnos are published here, while the files still exist. After this function `shards` is dropped,
        // which removes the files.
        self.shards.publish_last_seqnos();
    }
}

impl PerfCore {
    pub(in crate::tracing::record) fn new(
        shards: Shards,
        tables: Tables,
        thread_times: ThreadTimes,
        now: Option<NowTable>,
        limits: FieldLimits,
        redacted: RedactedFields,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let tag = OwnerTag::from_number(id);
        Self {
            recording_tag: AtomicUsize::new(tag.to_bits()),
            tag,
            id,
            shards,
            tables,
            thread_times,
            now,
            stores_arguments: redacted.is_empty() && limits.allow_any_small_text(),
            limits,
            redacted,
            lost_spans: AtomicU64::new(0),
            #[cfg(feature = "context")]
            process_ids: std::sync::OnceLock::new(),
        }
    }

    /// Returns what makes the ids of spans that readers of this recorder's rings will see.
    #[cfg(feature = "context")]
    pub(in crate::tracing) fn process_ids(&self) -> Option<&ProcessIds> {
        let shard0 = self.shards.get(0)?;
        Some(self.process_ids.get_or_init(|| {
            let (pid, created_epoch_nanos) = shard0.core.writer_and_creation();
            ProcessIds::new(pid, &crate::recorder::recorded_program_name(), created_epoch_nanos)
        }))
    }

    /// Returns true if the recorder is switched on.
    #[inline(always)]
    pub(in crate::tracing::record) fn is_enabled(&self) -> bool {
        self.recording_tag() != SWITCHED_OFF
    }

    /// Switches the recorder on or off. Call this only in the closure that you pass to
    /// [`switch`](crate::tracing::filter::switch::switch). After the closure, `switch` makes `tracing` ask again which
    /// call sites are wanted.
    pub(in crate::tracing::record) fn store_enabled(&self, enabled: bool) {
        let tag = if enabled { self.tag } else { SWITCHED_OFF };
        self.recording_tag.store(tag.to_bits(), Ordering::Relaxed);
    }

    /// Returns the recorder's tag if the recorder is switched on. Otherwise returns [`SWITCHED_OFF`], which is the tag
    /// of no ring.
    #[inline(always)]
    pub(in crate::tracing::record) fn recording_tag(&self) -> OwnerTag {
        // Relaxed: this word publishes no other memory. A thread that sees the new value relies on nothing that was
        // written before it.
        OwnerTag::from_bits(self.recording_tag.load(Ordering::Relaxed))
    }

    /// Returns true if this process made the recorder. Returns false if the process inherited the recorder by a fork.
    pub(in crate::tracing::record) fn belongs_to_this_process(&self) -> bool {
        self.shards.get(0).is_some_and(Recorder::belongs_to_this_process)
    }

    /// Adds a call site to the recorder's table and records it as an event. Returns false if the process inherited
    /// the recorder by a fork: such a recorder records nothing, and needs no more call sites.
    pub(in crate::tracing::record) fn add_call_site(&self, id: u32, body: &[u8]) -> bool {
        let Some(shard0) = self.shards.get(0).filter(|shard0| shard0.belongs_to_this_process()) else { return false };
        self.tables.add(shard0, TableKind::CallSites, id, body);
        // The call site is also recorded as an event. Readers of the event stream need this, and the table may have
        // had no room. The event names no thread, because it does not matter which thread met the call site first.
        let ext = PerfExt { call_site_id: id, ..PerfExt::default() };
        shard0.record(PerfEvent::CallSite as u16, ext.to_words(), body);
        true
    }

    /// Adds the calling thread to the recorder's table of threads, and records in the thread's shard that the thread
    /// has started, and whether it will record its times. If `is_ending` is true, the standard library does not know the thread's name any more.
    pub(in crate::tracing::record) fn add_thread(&self, id: u32, shard: usize, is_ending: bool, measures_times: bool) {
        let (Some(shard0), Some(shard)) = (self.shards.get(0), self.shards.get(shard)) else { return };
        let name = crate::shm::current_thread_name(is_ending);
        let os_thread_id = crate::shm::current_thread_id();
        let epoch_nanos = shard0.clock().now_epoch_nanos();
        if let Some(now) = &self.now {
            now.begin_thread(id, os_thread_id, shard.core.shard_index(), epoch_nanos, &name);
        }
        let body = ThreadView::encode_measured(epoch_nanos, os_thread_id, &name, measures_times);
        self.tables.add(shard0, TableKind::Threads, id, &body);
        let ext = PerfExt { thread_id: id, ..PerfExt::default() };
        shard.record(PerfEvent::ThreadStarted as u16, ext.to_words(), &body);
    }

    /// Returns the number of spans that could not be recorded.
    pub(in crate::tracing::record) fn lost_spans(&self) -> u64 {
        self.lost_spans.load(Ordering::Relaxed)
    }

    /// Counts a span that was not recorded, because too many spans are open.
    #[cold]
    pub(in crate::tracing::record) fn count_lost_span(&self) {
        let lost = self.lost_spans.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(shard0) = self.shards.get(0) {
            shard0.publish_context_word(tables::LOST_SPANS_OFFSET, lost);
        }
    }
}
