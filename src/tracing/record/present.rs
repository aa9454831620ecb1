//! What each recorded event changes in the tables of the present: the one place that knows it.

use crate::global::current_span_id;
use crate::now::{Begun, LockCell, LockMode};
use crate::recorder::{Recorded, Recorder};
use crate::schema::perf::{PerfEvent, PerfExt, RawField, RawFields, ValueType, flags};
use crate::tracing::record::core::PerfCore;
use crate::tracing::record::thread::ThreadState;
use std::sync::atomic::{AtomicU32, Ordering};
use tracing_core::{Level, Metadata};

/// The target of the spans of tasks, and of their events (`crates/tokio`).
const TASK_TARGET: &str = "eventring::task";

/// Ids of call sites of tasks, or 0 while the process has not met them.
static TASK: AtomicU32 = AtomicU32::new(0);
static WOKEN: AtomicU32 = AtomicU32::new(0);
static UNWAKEABLE: AtomicU32 = AtomicU32::new(0);

/// What the log records of a call site mean for the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// Nothing.
    None,
    /// That something failed in the span.
    Error,
    /// That a lock is waited for.
    LockWait,
    /// That a lock is held.
    LockHeld,
    /// That a wait has ended, or a guard was dropped.
    LockFree,
}

impl Meaning {
    /// Returns what the records of a call site mean, and notes the call site if it is one of tasks.
    pub(super) fn learn(id: u32, metadata: &Metadata<'_>) -> Self {
        let of_task = metadata.target() == TASK_TARGET;
        match metadata.name() {
            "task" if of_task && metadata.is_span() => TASK.store(id, Ordering::Relaxed),
            "woken" if of_task => WOKEN.store(id, Ordering::Relaxed),
            "unwakeable" if of_task => UNWAKEABLE.store(id, Ordering::Relaxed),
            "lock_wait" if of_task => return Self::LockWait,
            "lock_held" if of_task => return Self::LockHeld,
            "lock_free" if of_task => return Self::LockFree,
            _ if metadata.is_event() && *metadata.level() == Level::ERROR => return Self::Error,
            _ => {}
        }
        Self::None
    }
}

#[inline(always)]
fn is(site: &AtomicU32, call_site_id: u32) -> bool {
    // Relaxed: a call site's id is stored before its first event.
    site.load(Ordering::Relaxed) == call_site_id && call_site_id != 0
}

impl PerfCore {
    /// Changes the tables as an event says that has been recorded. `payload` are the encoded fields.
    #[inline(always)]
    pub(super) fn show(
        &self,
        ring: &Recorder,
        thread: &ThreadState,
        event: PerfEvent,
        ext: &PerfExt,
        recorded: Recorded,
        payload: &[u8],
    ) {
        let Some(now) = &self.now else { return };
        let Recorded { seqno, epoch_nanos } = recorded;
        if seqno == 0 {
            return;
        }
        let thread_id = (thread.id_word() >> 32) as u32;
        let PerfExt { span_id: id, call_site_id, .. } = *ext;
        now.touch_thread(thread_id, epoch_nanos);
        match event {
            PerfEvent::SpanNew => {
                let (parent, shard) = (ext.related, ring.core.shard_index());
                let (flags, field_count) = (ext.flags, ext.field_count);
                let span = Begun { id, call_site_id, parent, shard, epoch_nanos, seqno, flags, field_count };
                let entered_by = (ext.flags & flags::ENTERED != 0).then_some(thread_id);
                now.begin_span(&span, entered_by, payload);
                if is(&TASK, call_site_id) {
                    now.begin_task(id, payload);
                }
            }
            PerfEvent::SpanEnter => {
                now.set_presence(id, thread_id, true, epoch_nanos);
                if is(&TASK, call_site_id) {
                    now.begin_poll(id, epoch_nanos);
                }
            }
            PerfEvent::SpanExit if ext.flags & flags::CLOSED == 0 => {
                now.set_presence(id, thread_id, false, epoch_nanos);
            }
            PerfEvent::Event if is(&WOKEN, call_site_id) => {
                now.wake_task(id, thread_id, current_span_id(), epoch_nanos);
            }
            PerfEvent::Event if is(&UNWAKEABLE, call_site_id) => now.set_unwakeable(id),
            PerfEvent::ThreadEnded => now.end_thread(thread_id, epoch_nanos),
            _ => {}
        }
    }

    /// Ends a span in the tables. Call this before another span may have its cell, so not after its end was recorded.
    #[inline(always)]
    pub(super) fn show_end(&self, ring: &Recorder, id: u64, call_site_id: u32) {
        // A forked child has its parent's tables mapped.
        let Some(now) = self.now.as_ref().filter(|_| ring.core.is_original_process()) else { return };
        if is(&TASK, call_site_id) {
            now.end_task(id);
        }
        now.end_span(id);
    }

    /// Ends a span in the tables, without a ring of the thread.
    pub(super) fn show_end_slow(&self, id: u64, call_site_id: u32) {
        self.shards.get(0).into_iter().for_each(|ring| self.show_end(ring, id, call_site_id));
    }

    /// Changes the tables as a log record says whose call site has a meaning.
    #[cold]
    #[inline(never)]
    pub(super) fn show_meaning(
        &self,
        thread: &ThreadState,
        meaning: Meaning,
        span_id: u64,
        epoch_nanos: u64,
        payload: &[u8],
    ) {
        let Some(now) = self.now.as_ref().filter(|_| epoch_nanos != 0) else { return };
        if meaning == Meaning::Error {
            return now.set_error(span_id);
        }
        let Some(of) = lock_of(payload) else { return };
        let thread = (thread.id_word() >> 32) as u32;
        let span = current_span_id();
        let of = LockCell { is_held: meaning == Meaning::LockHeld, since_epoch_nanos: epoch_nanos, thread, span, ..of };
        match meaning {
            Meaning::LockFree => now.free_lock(of.guard),
            _ => now.set_lock(&of),
        }
    }
}

/// Returns the lock, the guard and the mode of an event about a lock: its numbers in this order, and its text.
fn lock_of(payload: &[u8]) -> Option<LockCell> {
    let number = |field: &RawField<'_>| {
        let is_number = matches!(ValueType::from_code(field.type_code), Some(ValueType::U64 | ValueType::I64));
        Some(u64::from_le_bytes(field.value.try_into().ok().filter(|_| is_number)?))
    };
    let fields = || RawFields::new(payload).filter_map(Result::ok);
    let mut numbers = fields().filter_map(|field| number(&field));
    let (lock, guard) = (numbers.next()?, numbers.next()?);
    let is_text = |field: &RawField<'_>| ValueType::from_code(field.type_code) == Some(ValueType::Str);
    let mode = fields().find(is_text).and_then(|field| std::str::from_utf8(field.value).ok());
    let mode = LockMode::from_name(mode.unwrap_or_default());
    Some(LockCell { guard, is_held: false, lock, since_epoch_nanos: 0, mode, thread: 0, span: 0 })
}
