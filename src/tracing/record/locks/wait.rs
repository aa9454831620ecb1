//! One wait for a lock: its cells in the tables of the present, and its event.

use super::word::{LockWord, Owner};
use crate::global::current_span_id;
use crate::now::{LockCell, LockMode};
use crate::schema::perf::{PerfEvent, PerfExt, ValueType};
use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicU64, Ordering};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::thread;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The names of the fields of the event, in their order.
pub(super) const FIELDS: [&str; 5] = ["lock", "mode", "holder", "holder_thread", "waited_ns"];

/// The most bytes of these fields: four numbers and a mode.
const FIELD_BYTES: usize = 4 * 12 + 4 + 9;

/// Numbers of these locks and guards begin here, so that they are none of the locks of tokio, which have cells in the
/// same tables.
const FIRST_NUMBER: u64 = 1 << 48;

fn next(numbers: &AtomicU64) -> u64 {
    FIRST_NUMBER + numbers.fetch_add(1, Ordering::Relaxed)
}

fn next_guard() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    next(&NEXT)
}

impl LockWord {
    /// Returns the number of the lock.
    fn number(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self.number.load(Ordering::Relaxed) {
            0 => {
                let new = next(&NEXT);
                let set = self.number.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
                set.map_or_else(|number| number, |_| new)
            }
            number => number,
        }
    }

    /// Returns a cell that says who holds the lock.
    fn held_cell(&self, guard: u64, by: Owner, since_epoch_nanos: u64) -> LockCell {
        LockCell {
            guard,
            is_held: true,
            lock: self.number(),
            since_epoch_nanos,
            mode: LockMode::from_code(by.mode.into()),
            thread: by.thread,
            span: by.span,
            site: self.site.load(Ordering::Relaxed),
        }
    }

    /// Puts a cell, which has its words, in the place of the one that says who holds the lock, and frees that one.
    fn replace_held(&self, core: &PerfCore, guard: u64, epoch_nanos: u64) {
        // Release for the new cell, and acquire for the old one: who frees a cell sees its words.
        let old = self.held.swap(guard, Ordering::AcqRel);
        if let Some(now) = core.now.as_ref().filter(|_| old != 0) {
            now.free_lock(old, epoch_nanos);
        }
    }
}

/// Returns the recorder, if the thread may write to it now.
fn recorder() -> Option<&'static Arc<PerfCore>> {
    let recorder = PERF.active().filter(|recorder| recorder.belongs_to_this_process())?;
    (!LockedSection::is_inside()).then_some(&recorder.core)
}

fn now_nanos(core: &PerfCore) -> u64 {
    core.shards.get(0).map_or(0, |shard0| shard0.clock().now_epoch_nanos())
}

/// Shows that the calling thread holds the lock, for which others wait.
///
/// It never unwinds, so that the path of a lock that is free is small.
#[allow(improper_ctypes_definitions, reason = "only Rust calls it")]
#[cold]
#[inline(never)]
pub(super) extern "C" fn show_holder(lock: &LockWord, mode: LockMode) {
    let Some(core) = recorder().filter(|_| mode != LockMode::Condition) else { return };
    let (guard, epoch_nanos) = (next_guard(), now_nanos(core));
    if let Some(now) = &core.now {
        now.set_lock(&lock.held_cell(guard, lock.owner(), epoch_nanos));
    }
    lock.replace_held(core, guard, epoch_nanos);
}

/// Shows that the calling thread does not hold the lock any more, if a cell says that it does. A reader does not speak
/// for other readers.
#[cold]
#[inline(never)]
pub(super) fn hide_holder(lock: &LockWord) {
    let own = thread::with(|thread| thread.id_word()) >> 32;
    if let Some(core) = recorder().filter(|_| u64::from(lock.owner().thread) == own) {
        lock.replace_held(core, 0, now_nanos(core));
    }
}

/// A wait of the calling thread.
pub(super) struct Waiting<'l> {
    lock: &'l LockWord,
    core: &'static Arc<PerfCore>,
    mode: LockMode,
    guard: u64,
    thread: u32,
    /// Who held the lock when the wait began.
    holder: Owner,
    begun_nanos: u64,
}

impl<'l> Waiting<'l> {
    /// Begins a wait. Returns `None` if nobody records it.
    ///
    /// Everything that may allocate happens here, and not when the thread has the lock: it may be a lock of the
    /// program's allocator. So the end of a wait is a locked section, in which recording allocates nothing.
    pub(super) fn begin(lock: &'l LockWord, mode: LockMode) -> Option<Self> {
        let core = recorder()?;
        let thread = thread::with(|thread| thread.ring_of(core).map(|_| (thread.id_word() >> 32) as u32))?;
        let site = lock.site_id();
        lock.waiters.fetch_add(1, Ordering::Relaxed);
        let (guard, begun_nanos) = (next_guard(), now_nanos(core));
        let mut waiting = Self { lock, core, mode, guard, thread, holder: Owner::default(), begun_nanos };
        let span = current_span_id();
        let cell = LockCell {
            guard,
            is_held: false,
            lock: lock.number(),
            since_epoch_nanos: begun_nanos,
            mode,
            thread,
            span,
            site,
        };
        if let Some(now) = &core.now {
            now.set_lock(&cell);
        }
        // Last: who has got the lock just now has left its word meanwhile, or sees that somebody waits.
        if mode != LockMode::Condition {
            waiting.holder = waiting.show_other();
        }
        Some(waiting)
    }

    /// Shows who holds the lock, and returns it. The time is that at which it was certainly held.
    ///
    /// The holder may free the lock meanwhile. Then the cell is wrong until somebody else gets the lock, which this
    /// thread waits for.
    fn show_other(&self) -> Owner {
        let Self { lock, core, begun_nanos, .. } = *self;
        let seen = lock.held.load(Ordering::Relaxed);
        let holder = lock.owner();
        let Some(now) = core.now.as_ref().filter(|_| holder.thread != 0) else { return holder };
        let guard = next_guard();
        now.set_lock(&lock.held_cell(guard, holder, begun_nanos));
        // As in `replace_held`. If the holder has changed since, it has said so itself.
        let replaced = lock.held.compare_exchange(seen, guard, Ordering::AcqRel, Ordering::Relaxed);
        now.free_lock(if replaced.is_ok() { seen } else { guard }, begun_nanos);
        holder
    }

    /// Ends the wait: the thread has the lock, or has given it up.
    pub(super) fn end(self, is_held: bool) {
        let Self { lock, core, mode, guard, thread, begun_nanos, holder } = *ManuallyDrop::new(self);
        let _section = LockedSection::enter();
        let others = lock.waiters.fetch_sub(1, Ordering::Relaxed) > 1;
        let holder = match (mode, is_held) {
            // A condition has no holder, but somebody who has notified its waiters last.
            (LockMode::Condition, true) => lock.owner(),
            (LockMode::Condition, false) => Owner::default(),
            _ => holder,
        };
        let epoch_nanos = record(core, lock, mode, holder, begun_nanos);
        let Some(now) = &core.now else { return };
        let is_held = is_held && mode != LockMode::Condition;
        if is_held && others {
            let by = Owner { thread, ..lock.owner() };
            now.set_lock(&lock.held_cell(guard, by, epoch_nanos));
            return lock.replace_held(core, guard, epoch_nanos);
        }
        now.free_lock(guard, epoch_nanos);
        if is_held {
            lock.replace_held(core, 0, epoch_nanos);
        }
    }
}

impl Drop for Waiting<'_> {
    /// The thread has panicked while it waited: it does not wait any more, and nobody knows for how long it did.
    fn drop(&mut self) {
        self.lock.waiters.fetch_sub(1, Ordering::Relaxed);
        if let Some(now) = &self.core.now {
            now.free_lock(self.guard, now_nanos(self.core));
        }
    }
}

impl Drop for LockWord {
    /// If a guard was leaked, a cell still says that somebody holds the lock.
    fn drop(&mut self) {
        if self.held.load(Ordering::Relaxed) != 0
            && let Some(core) = recorder()
        {
            self.replace_held(core, 0, now_nanos(core));
        }
    }
}

/// Records as many waits for a lock as are asked for, without their cells: for benchmarks.
pub fn record_waits(name: &'static str, count: u64) {
    let lock = LockWord::new(name, false);
    let Some(core) = recorder() else { return };
    lock.site_id();
    let mut nanos = now_nanos(core);
    for _ in 0..count {
        nanos = record(core, &lock, LockMode::Mutex, Owner::default(), nanos);
    }
}

/// Records a wait that has ended, and returns the time of its end.
pub(super) fn record(
    core: &'static Arc<PerfCore>,
    lock: &LockWord,
    mode: LockMode,
    holder: Owner,
    begun_nanos: u64,
) -> u64 {
    thread::with(|thread| {
        let Some(ring) = thread.ring_of(core) else { return begun_nanos };
        let epoch_nanos = core.measured_now(thread, ring).unwrap_or_else(|| ring.clock().now_epoch_nanos());
        let (mut bytes, mut end) = ([0; FIELD_BYTES], 0);
        let mut put = |index: u8, kind: ValueType, value: &[u8]| {
            let field = &mut bytes[end..end + 4 + value.len()];
            field[..4].copy_from_slice(&[index, kind as u8, value.len() as u8, 0]);
            field[4..].copy_from_slice(value);
            end += field.len();
        };
        put(0, ValueType::U64, &lock.number().to_le_bytes());
        put(1, ValueType::Str, mode.name().as_bytes());
        put(2, ValueType::U64, &holder.span.to_le_bytes());
        put(3, ValueType::U64, &u64::from(holder.thread).to_le_bytes());
        put(4, ValueType::U64, &epoch_nanos.saturating_sub(begun_nanos).to_le_bytes());
        let site = lock.site.load(Ordering::Relaxed);
        let ext = PerfExt { field_count: FIELDS.len() as u16, ..PerfExt::of_span(current_span_id(), site) };
        let [span_id, related, ids, counts] = ext.to_words();
        let words = [span_id, related, ids | thread.id_word(), counts];
        ring.core.record_stamped(epoch_nanos, PerfEvent::Event as u16, words, &bytes[..end]);
        epoch_nanos
    })
}
