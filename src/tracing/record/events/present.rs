//! The changes that each recorded event makes to the tables of the present. Only this module decides them.

use crate::global::current_span_id;
use crate::now::{Begun, HAS_ERROR, HAS_RECORDED, LockCell, LockMode};
use crate::recorder::{Recorded, Recorder};
use crate::schema::perf::{PerfEvent, PerfExt, RawField, RawFields, ValueType, flags};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::task_sites::{TASK, TASK_TARGET, UNWAKEABLE, WOKEN};
use crate::tracing::record::threads::thread;
use std::sync::atomic::{AtomicU32, Ordering};
use tracing_core::{Level, Metadata};

/// What log records of a call site mean for the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
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
    fn from_metadata(metadata: &Metadata<'_>) -> Option<Self> {
        match metadata.name() {
            "lock_wait" if metadata.target() == TASK_TARGET => Some(Self::LockWait),
            "lock_held" if metadata.target() == TASK_TARGET => Some(Self::LockHeld),
            "lock_free" if metadata.target() == TASK_TARGET => Some(Self::LockFree),
            _ => (*metadata.level() == Level::ERROR).then_some(Self::Error),
        }
    }
}

/// Returns true if log records of a call site may mean something for the tables. Nearly all mean nothing, and this
/// costs two comparisons.
#[inline(always)]
pub(in crate::tracing::record) fn may_mean(metadata: &Metadata<'_>) -> bool {
    *metadata.level() == Level::ERROR || metadata.target().len() == TASK_TARGET.len()
}

#[inline(always)]
fn is(site: &AtomicU32, call_site_id: u32) -> bool {
    // Relaxed: a call site's id is stored before its first event.
    site.load(Ordering::Relaxed) == call_site_id
}

impl PerfCore {
    /// Changes the tables as an event says that has been recorded. `ext` has the thread, and `payload` are the encoded
    /// fields.
    #[inline(always)]
    pub(in crate::tracing::record) fn show(
        &self,
        ring: &Recorder,
        event: PerfEvent,
        ext: &PerfExt,
        recorded: Recorded,
        payload: &[u8],
    ) {
        let Some(now) = self.now.as_ref() else { return };
        let Recorded { seqno, epoch_nanos } = recorded;
        let PerfExt { span_id: id, call_site_id, thread_id, .. } = *ext;
        match event {
            PerfEvent::SpanNew => {
                let (parent, shard) = (ext.related, ring.core.shard_index());
                let (flags, field_count) = (ext.flags, ext.field_count);
                let span = Begun { id, call_site_id, parent, shard, epoch_nanos, seqno, flags, field_count };
                let entered_by = (ext.flags & flags::ENTERED != 0).then_some(thread_id);
                now.begin_span(&span, entered_by, payload);
                // No scope is a task.
                if ext.flags & flags::SCOPE == 0 && is(&TASK, call_site_id) {
                    now.begin_task(id, payload);
                }
            }
            PerfEvent::SpanEnter => {
                let is_first = now.set_presence(id, thread_id, true, epoch_nanos);
                // Another thread that enters the span of a task polls nothing.
                if is(&TASK, call_site_id) && is_first {
                    now.begin_poll(id, epoch_nanos);
                }
            }
            PerfEvent::SpanExit if ext.flags & flags::CLOSED == 0 => {
                now.set_presence(id, thread_id, false, epoch_nanos);
            }
            PerfEvent::Event if payload.is_empty() && is(&WOKEN, call_site_id) => {
                now.wake_task(id, thread_id, current_span_id(), epoch_nanos);
            }
            PerfEvent::Event if payload.is_empty() && is(&UNWAKEABLE, call_site_id) => now.set_unwakeable(id),
            PerfEvent::SpanRecord => now.mark_span(id, HAS_RECORDED),
            PerfEvent::ThreadEnded => now.end_thread(thread_id, epoch_nanos),
            _ => {}
        }
    }

    /// Ends a span in the tables. Call this before another span may have its cell, so not after its end was recorded.
    /// The caller has seen that this is no forked child, which has its parent's tables mapped.
    #[inline(always)]
    pub(in crate::tracing::record) fn show_end(&self, id: u64) {
        if let Some(now) = &self.now {
            now.end_span(id);
        }
    }

    /// Ends a span in the tables, unless this is a forked child.
    pub(in crate::tracing::record) fn show_end_slow(&self, id: u64) {
        if self.belongs_to_this_process() {
            self.show_end(id);
        }
    }

    /// Changes the tables as a log record of the calling thread says that has been recorded, if it says anything.
    #[cold]
    #[inline(never)]
    pub(in crate::tracing::record) fn show_meaning(
        &self,
        metadata: &Metadata<'_>,
        span_id: u64,
        epoch_nanos: u64,
        payload: &[u8],
    ) {
        let Some(now) = self.now.as_ref().filter(|_| epoch_nanos != 0) else { return };
        let Some(meaning) = Meaning::from_metadata(metadata) else { return };
        if meaning == Meaning::Error {
            return now.mark_span(span_id, HAS_ERROR);
        }
        let Some(of) = lock_of(payload) else { return };
        let task = TASK.load(Ordering::Relaxed);
        let (thread, task) =
            thread::with(|thread| ((thread.id_word() >> 32) as u32, thread.span_stack.innermost_of_call_site(task)));
        let span = task.unwrap_or_else(current_span_id);
        let of = LockCell { is_held: meaning == Meaning::LockHeld, since_epoch_nanos: epoch_nanos, thread, span, ..of };
        match meaning {
            Meaning::LockFree => now.free_lock(of.guard, epoch_nanos),
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
    Some(LockCell { guard, is_held: false, lock, since_epoch_nanos: 0, mode, thread: 0, span: 0, site: 0 })
}
