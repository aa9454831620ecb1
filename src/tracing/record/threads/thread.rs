//! The state of a thread that records: its id, the rings that it records to, its span stack and its free span cells.

use crate::global::set_current_span_id;
use crate::recorder::Recorder;
use crate::span_slab::FreeList;
use crate::sync::interrupted::{Owned, OwnedWord};
use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicU64, Ordering};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::rings::shards::Assignment;
use crate::tracing::record::threads::allocated::Allocations;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::stack::{Popped, SpanEntry, SpanStack};
use crate::tracing::record::threads::time::SwitchWord;
use std::cell::Cell;
use std::sync::Arc;

/// Number of places in a thread's cache of rings. The tag of a recorder selects the place of its ring, so no search is
/// needed. One place would be enough for most programs, because they have one recorder.
const CACHED_RINGS: usize = 4;

/// A cached ring: the ring of the shard that a recorder has assigned to the thread.
type CachedRing = Owned<Recorder>;

/// The ring in which the thread recorded last, taken from it for a while.
#[derive(Clone, Copy)]
pub(in crate::tracing::record) struct LastRing(CachedRing);

/// An answer to the question whether a thread counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tracing::record) enum Counting {
    /// The thread has not recorded yet.
    Unknown,
    No,
    Yes,
}

/// The state of a thread that records. The fields that are needed to record an event lie together, and next to them
/// the first entries of the span stack.
#[repr(C, align(64))]
pub(in crate::tracing::record) struct ThreadState {
    /// The thread's id in the high half of a word, as in extension word 2 of an event. 0 until the thread first
    /// records.
    id_word: AtomicU64,
    /// The ring in which the thread recorded last.
    last_ring: OwnedWord<Recorder>,
    /// Tells whether the thread has left its processor.
    pub(in crate::tracing::record) switches: SwitchWord,
    pub(in crate::tracing::record) span_stack: SpanStack,
    pub(in crate::tracing::record) free_list: FreeList,
    cached_rings: [OwnedWord<Recorder>; CACHED_RINGS],
    /// The answer whether the program's instructions on this thread are counted.
    pub(in crate::tracing::record) counting: Cell<Counting>,
    /// Depth to which the formatting of values is nested at present. A value's `Debug` code may record an event,
    /// which formats other values.
    pub(in crate::tracing::record) formatting_depth: Cell<u32>,
    /// What the thread has allocated and freed, if the program's allocator counts.
    pub(in crate::tracing::record) allocations: Allocations,
}

thread_local! {
    // This thread-local has no destructor. So its address can be computed without a check, and it can be used until
    // the thread's last instruction.
    static STATE: ThreadState = const { ThreadState::new() };
}

/// Calls `f` with the calling thread's state.
#[inline(always)]
pub(in crate::tracing::record) fn with<R>(f: impl FnOnce(&ThreadState) -> R) -> R {
    // This line compiles to one instruction. `STATE.with(f)` would compile to a separate function for each `f`, and
    // that function would call another function to get the address of the state.
    let state = STATE.with(std::ptr::from_ref);
    // SAFETY: `state` points to the calling thread's state. The state has no destructor, so it is valid and stays at
    // its place until the thread's last instruction, and `f` returns before that. `f` cannot keep the reference,
    // because its type cannot name the reference's lifetime. Other threads cannot get the reference, because the
    // state is not `Sync`.
    f(unsafe { &*state })
}

/// Returns the cached ring, if it is a ring of `recorder`.
#[inline(always)]
fn ring_if_of(cached: CachedRing, recorder: &PerfCore) -> Option<&Recorder> {
    // SAFETY: the pointer was made, in `cache_ring`, from a ring of the recorder that has this tag. No two recorders
    // have the same tag, so this recorder is `recorder`. A ring stays at the same address as long as its recorder
    // lives, and the recorder is borrowed here.
    cached.of(recorder.tag).map(|ring| unsafe { &*ring })
}

/// The ring in which the thread records.
impl ThreadState {
    const fn new() -> Self {
        Self {
            id_word: AtomicU64::new(0),
            last_ring: OwnedWord::nothing(),
            switches: SwitchWord::not_told(),
            cached_rings: [const { OwnedWord::nothing() }; CACHED_RINGS],
            counting: Cell::new(Counting::Unknown),
            formatting_depth: Cell::new(0),
            allocations: Allocations::new(),
            span_stack: SpanStack::new(),
            free_list: FreeList::new(),
        }
    }

    /// Returns the thread's id, shifted to the high half of the word. Returns 0 until the thread first records.
    #[inline(always)]
    pub(in crate::tracing::record) fn id_word(&self) -> u64 {
        // Relaxed, here and in `take_id`: only this thread uses the word.
        self.id_word.load(Ordering::Relaxed)
    }

    /// Returns the thread's ring of `recorder`, if `recorder` is switched on and the thread's last event went to it.
    /// Otherwise returns `None`.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_ring<'r>(&self, recorder: &'r PerfCore) -> Option<&'r Recorder> {
        let ring = self.last_ring.get().of(recorder.recording_tag())?;
        // SAFETY: here `recording_tag` has returned the tag of `recorder`. (While `recorder` is switched off, it returns
        // a tag that no cached ring has.) So, as in `ring_if_of`, the pointer was made from a ring of `recorder`, and
        // this ring stays at its address while `recorder` is borrowed.
        Some(unsafe { &*ring })
    }

    /// Returns the thread's ring of `recorder`, whether the recorder is switched on or not. If the thread has no
    /// shard of this recorder yet, assigns one.
    #[inline(always)]
    pub(in crate::tracing::record) fn ring_of<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        match ring_if_of(self.last_ring.get(), recorder) {
            Some(ring) => Some(ring),
            None => self.ring_of_slow(recorder),
        }
    }

    #[inline(never)]
    fn ring_of_slow<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        let cached = self.cached_rings[recorder.tag.place(CACHED_RINGS)].get();
        match ring_if_of(cached, recorder) {
            Some(ring) => {
                self.set_last_ring(cached);
                Some(ring)
            }
            None => self.assign_ring(recorder),
        }
    }

    /// Finds the thread's ring of a recorder if the ring is not in the thread's cache. Assigns a shard to the thread
    /// if it has none.
    #[cold]
    #[inline(never)]
    fn assign_ring<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        self.take_id();
        // In two cases the thread gets the ring of shard 0, without an assignment. In the first case, the process is a
        // forked child. It must not take locks, because another thread may have held them at the fork. In the second
        // case, the thread is inside a locked section: for example, the program's allocator records spans, and this
        // function has allocated memory.
        let section = if recorder.belongs_to_this_process() { LockedSection::enter() } else { None };
        let Some(_section) = section else { return recorder.shards.get(0) };
        let assignment = match end_of_thread::find(recorder) {
            Some(assignment) if assignment.is_provisional => self.reassign(recorder, assignment),
            Some(assignment) => assignment,
            None => self.assign(recorder),
        };
        if !assignment.is_provisional {
            self.cache_ring(recorder, assignment);
        }
        recorder.shards.get(assignment.shard)
    }

    pub(in crate::tracing::record) fn cache_ring(&self, recorder: &PerfCore, assignment: Assignment) {
        let Some(ring) = recorder.shards.get(assignment.shard) else { return };
        let cached = CachedRing::new(recorder.tag, ring);
        self.cached_rings[recorder.tag.place(CACHED_RINGS)].set(cached);
        self.set_last_ring(cached);
    }

    fn set_last_ring(&self, cached: CachedRing) {
        // A thread that has begun to end does not cache its ring here, so it takes the slow paths. The fast paths
        // would put cells into its free list, which must stay empty. Nor does a thread that counts instructions: only
        // slow paths count.
        if !self.free_list.has_ended() && self.counting.get() == Counting::No {
            self.last_ring.set(cached);
        }
    }

    /// Returns the thread's id as [`Self::id_word`] does. The thread gets its id if it has none.
    #[inline(always)]
    pub(in crate::tracing::record) fn own_id_word(&self) -> u64 {
        match self.id_word() {
            0 => self.take_id(),
            id_word => id_word,
        }
    }

    /// Gives the thread its id if it has none, and returns it.
    #[cold]
    #[inline(never)]
    fn take_id(&self) -> u64 {
        static NEXT_THREAD_ID: AtomicU64 = AtomicU64::new(1);
        if self.id_word() == 0 {
            // Relaxed: the increment is atomic, so no two threads get the same number, and no other memory is ordered
            // by the number. The id is the low 32 bits of the number. So after 2^32 threads the ids begin again, and
            // one thread gets the id 0.
            let id_word = NEXT_THREAD_ID.fetch_add(1, Ordering::Relaxed) << 32;
            // A signal handler may have given the thread an id meanwhile. It stays.
            let _ = self.id_word.compare_exchange(0, id_word, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.id_word()
    }

    fn assign(&self, recorder: &Arc<PerfCore>) -> Assignment {
        let mut assignment = recorder.shards.assign();
        let is_ending = !end_of_thread::add(recorder, assignment);
        if is_ending {
            // The destructor of the thread has already run and will not release the assignment. So it is released
            // here.
            recorder.shards.release(assignment.shard);
            assignment.is_provisional = false;
        }
        #[cfg(feature = "allocations")]
        super::live_bytes::set_recording(!is_ending);
        let measures_times = !is_ending && recorder.begin_times(self, assignment.shard);
        recorder.add_thread((self.id_word() >> 32) as u32, assignment.shard, is_ending, measures_times);
        assignment
    }

    /// Replaces a provisional assignment by another one. Keeps the provisional assignment while a new shard is still
    /// being made.
    fn reassign(&self, recorder: &Arc<PerfCore>, provisional: Assignment) -> Assignment {
        let assignment = recorder.shards.reassign(provisional);
        end_of_thread::change(recorder, assignment);
        assignment
    }

    /// Forgets the ring in which the thread recorded last, and returns it for [`Self::put_last_ring`].
    #[inline(always)]
    pub(in crate::tracing::record) fn take_last_ring(&self) -> LastRing {
        let last = self.last_ring.get();
        self.forget_last_ring();
        LastRing(last)
    }

    /// Returns true if the thread has recorded nothing since [`Self::take_last_ring`]. Returns false if nobody can
    /// tell: the thread had no last ring.
    #[inline(always)]
    pub(in crate::tracing::record) fn has_recorded_nothing_since(&self, taken: LastRing) -> bool {
        !taken.0.is_nothing() && self.last_ring.get().is_nothing()
    }

    /// Makes a ring the last one again, unless the thread has recorded since, or ends.
    #[inline(always)]
    pub(in crate::tracing::record) fn put_last_ring(&self, taken: LastRing) {
        if self.has_recorded_nothing_since(taken) && !self.free_list.has_ended() {
            self.last_ring.set(taken.0);
        }
    }

    /// Forgets the ring in which the thread recorded last.
    pub(in crate::tracing::record) fn forget_last_ring(&self) {
        self.last_ring.set(CachedRing::NOTHING);
    }
}

/// Sets the span that the calling thread is in, for its typed events and for profilers. An id of 0 means none.
#[inline(always)]
fn set_current_span(span_id: u64) {
    set_current_span_id(span_id);
    #[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
    crate::tracing::record::otel::shown::show_span(span_id);
}

/// The spans that the thread is in.
impl ThreadState {
    /// Enters a span like [`Self::enter`]. Returns `None` and changes nothing if [`SpanStack::try_push`] cannot add
    /// the entry.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_enter(
        &self,
        span_id: u64,
        local_id: u64,
        call_site_id: u32,
        owner: u32,
    ) -> Option<()> {
        if !self.span_stack.try_push(span_id, local_id, call_site_id, owner) {
            return None;
        }
        set_current_span(span_id);
        Some(())
    }

    /// Exits a span like [`Self::exit`], and returns the removed entry. Returns `None` and changes nothing if
    /// [`SpanStack::try_pop`] cannot remove it.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_exit(&self, local_id: u64, owner: u32) -> Option<SpanEntry> {
        let Popped { entry, current_span_id } = self.span_stack.try_pop(local_id, owner)?;
        set_current_span(current_span_id);
        Some(entry)
    }

    /// Enters a scope that has just been made. The caller has seen that there is [room](SpanStack::has_inline_room).
    #[inline(always)]
    pub(in crate::tracing::record) fn enter_new_scope(&self, span_id: u64, call_site_id: u32) {
        self.span_stack.push_new_scope(span_id, call_site_id);
        set_current_span(span_id);
    }

    /// Enters a scope that has just been made, wherever there is room.
    pub(in crate::tracing::record) fn enter_new_scope_slow(&self, span_id: u64, call_site_id: u32) {
        if self.span_stack.push_new_scope_slow(span_id, call_site_id) {
            set_current_span(span_id);
        }
    }

    /// Enters a span; see [`SpanStack::push`].
    #[inline(always)]
    pub(in crate::tracing::record) fn enter(
        &self,
        span_id: u64,
        local_id: u64,
        call_site_id: u32,
        owner: u32,
        is_recorded: bool,
    ) {
        if self.span_stack.push(span_id, local_id, call_site_id, owner, is_recorded) {
            set_current_span(span_id);
        }
    }

    /// Exits the span of this entry.
    pub(in crate::tracing::record) fn exit_entry(&self, entry: &SpanEntry) {
        self.exit(entry.local_id, entry.owner());
    }

    /// Exits a span; see [`SpanStack::pop`].
    #[inline(always)]
    pub(in crate::tracing::record) fn exit(&self, local_id: u64, owner: u32) -> Option<SpanEntry> {
        let entry = self.span_stack.pop(local_id, owner);
        set_current_span(self.span_stack.current_span_id());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_runs_takes_2_kib() {
        assert!(size_of::<ThreadState>() <= 2 << 10, "{}", size_of::<ThreadState>());
    }
}
