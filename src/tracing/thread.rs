//! What a thread keeps while it records: its id, its shards, the spans that it is in.

use super::entered::{EnteredSpan, EnteredSpans};
use super::recorder::PerfCore;
use super::shards::Seat;
use super::span_cells::{FreeCells, ID_BITS, SPAN_CELLS};
use crate::global::set_current_span_id;
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::sync::{AtomicU64, Ordering};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// A few recorders are remembered without a search; most programs have one.
const REMEMBERED: usize = 4;
/// Ids that a thread takes at once.
const ID_BLOCK: u64 = 1 << 12;
/// Bit of a span id, the highest: it was not made from a cell.
const LAYER_BIT: u64 = 1 << ID_BITS;

/// The ring in which a thread records to one recorder.
#[derive(Clone, Copy)]
struct Home {
    recorder_id: u64,
    ring: NonNull<Recorder>,
}

/// No recorder has the id 0.
const NOWHERE: Home = Home { recorder_id: 0, ring: NonNull::dangling() };

/// See the [module](self). What each event needs lies together, where the spans that the thread is in begin.
#[repr(C, align(64))]
pub(super) struct ThreadState {
    /// Ids for spans of layers: next, and end.
    layer_ids: Cell<(u64, u64)>,
    /// The thread's id in the high half, as in word 2 of the content extension; 0 until it first records.
    id_word: Cell<u64>,
    /// Where it recorded last.
    last_home: Cell<Home>,
    pub(super) entered: EnteredSpans,
    pub(super) free_cells: FreeCells,
    homes: [Cell<Home>; REMEMBERED],
    /// Inside [`Self::settle`].
    is_settling: Cell<bool>,
    /// How deep in the formatting of values that record in turn.
    pub(super) formatting_depth: Cell<u32>,
}

/// A recorder that this thread has joined.
struct Joined {
    recorder: Weak<PerfCore>,
    recorder_id: u64,
    seat: Seat,
}

/// Everything to be done when the thread ends.
struct EndOfThread(RefCell<Vec<Joined>>);

thread_local! {
    // Without a destructor, so that access is an address and no check, and works until the thread's last instruction.
    static STATE: ThreadState = const { ThreadState::new() };
    static END: EndOfThread = const { EndOfThread(RefCell::new(Vec::new())) };
}

/// Calls `f` with the calling thread's state.
#[inline(always)]
pub(super) fn with<R>(f: impl FnOnce(&ThreadState) -> R) -> R {
    // `STATE.with(f)` is a function of its own for each `f`, and asks for the address by a call of another. This is one
    // instruction.
    let state = STATE.with(std::ptr::from_ref);
    // SAFETY: the calling thread's state, which has no destructor: it is valid and stays at its place until the thread's
    // last instruction, and `f` ends before. `f` knows no name for the reference's lifetime, so that it cannot keep it; and
    // other threads cannot get it, for it is not `Sync`.
    f(unsafe { &*state })
}

/// The ring of a home, if it is one at `recorder`.
#[inline(always)]
fn ring_at(home: Home, recorder: &PerfCore) -> Option<&Recorder> {
    if home.recorder_id != recorder.id {
        return None;
    }
    // SAFETY: the pointer was made from a ring of the recorder with this id (ids are never used twice, and none is that of
    // `NOWHERE`). Rings live, at the same address, as long as their recorder, which is borrowed.
    Some(unsafe { home.ring.as_ref() })
}

impl ThreadState {
    const fn new() -> Self {
        Self {
            id_word: Cell::new(0),
            last_home: Cell::new(NOWHERE),
            homes: [const { Cell::new(NOWHERE) }; REMEMBERED],
            is_settling: Cell::new(false),
            formatting_depth: Cell::new(0),
            entered: EnteredSpans::new(),
            free_cells: FreeCells::new(),
            layer_ids: Cell::new((0, 0)),
        }
    }

    /// The thread's id in the high half; 0 before it first records.
    #[inline(always)]
    pub(super) fn id_word(&self) -> u64 {
        self.id_word.get()
    }

    /// The ring in which this thread records to `recorder`, if it recorded there last and events are recorded now.
    #[inline(always)]
    pub(super) fn ring_at_once<'r>(&self, recorder: &'r PerfCore) -> Option<&'r Recorder> {
        let home = self.last_home.get();
        if home.recorder_id != recorder.recording_id() {
            return None;
        }
        // SAFETY: as in `ring_at`; for what a recorder gives as its id while it is switched off is no home's id either.
        Some(unsafe { home.ring.as_ref() })
    }

    /// Sees to it that what the thread keeps is given back at its end, also if it never joins a recorder. To be called before it is given
    /// or takes a span cell, unless it is known to have joined one.
    pub(super) fn gives_back_at_its_end(&self) {
        // Using it is enough. An error: it has ended, and keeps nothing.
        let _ = END.try_with(|_| ());
    }

    /// The ring in which this thread records to `recorder`.
    #[inline(always)]
    pub(super) fn ring_of<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        match ring_at(self.last_home.get(), recorder) {
            Some(ring) => Some(ring),
            None => self.find_ring(recorder),
        }
    }

    #[inline(never)]
    fn find_ring<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        let home = self.homes[recorder.id as usize % REMEMBERED].get();
        match ring_at(home, recorder) {
            Some(ring) => {
                self.set_last_home(home);
                Some(ring)
            }
            None => self.settle(recorder),
        }
    }

    /// Finds the thread's ring of a recorder that is not remembered; joins it if the thread has none.
    #[cold]
    #[inline(never)]
    fn settle<'r>(&self, recorder: &'r Arc<PerfCore>) -> Option<&'r Recorder> {
        // A memory allocator that traces its work comes here from inside; a forked child must not touch locks that were
        // held when it was made.
        if self.is_settling.get() || !recorder.belongs_to_this_process() {
            return recorder.shards.get(0);
        }
        self.is_settling.set(true);
        let seat = match END.try_with(|end| end.find(recorder)).ok().flatten() {
            Some(seat) if seat.is_provisional => self.move_on(recorder, seat),
            Some(seat) => seat,
            None => self.join(recorder),
        };
        if !seat.is_provisional {
            self.remember(recorder, seat);
        }
        self.is_settling.set(false);
        recorder.shards.get(seat.shard)
    }

    fn remember(&self, recorder: &PerfCore, seat: Seat) {
        let Some(ring) = recorder.shards.get(seat.shard) else { return };
        let home = Home { recorder_id: recorder.id, ring: NonNull::from(ring) };
        self.homes[recorder.id as usize % REMEMBERED].set(home);
        self.set_last_home(home);
    }

    fn set_last_home(&self, home: Home) {
        // A thread at its end does nothing at once, for it may keep no span cells.
        if !self.free_cells.has_ended() {
            self.last_home.set(home);
        }
    }

    fn join(&self, recorder: &Arc<PerfCore>) -> Seat {
        static NEXT_THREAD_ID: AtomicU64 = AtomicU64::new(1);
        if self.id_word.get() == 0 {
            // Relaxed: unique by atomicity. After 2^32 threads they begin again, and 0 stands for one of them.
            self.id_word.set(NEXT_THREAD_ID.fetch_add(1, Ordering::Relaxed) << 32);
        }
        let mut seat = recorder.shards.join();
        let is_ending = END.try_with(|end| end.remember(recorder, seat)).is_err();
        if is_ending {
            // Nobody would say when it leaves.
            recorder.shards.leave(seat.shard);
            seat.is_provisional = false;
        }
        recorder.learn_thread((self.id_word.get() >> 32) as u32, seat.shard, is_ending);
        seat
    }

    /// From a provisional seat to one that stays, if nobody is making a shard any more.
    fn move_on(&self, recorder: &Arc<PerfCore>, provisional: Seat) -> Seat {
        let seat = recorder.shards.join_again(provisional);
        // Not ending: it was found there.
        let _ = END.try_with(|end| end.change(recorder, seat));
        seat
    }

    /// As [`Self::enter`] in the ordinary case; otherwise false, and nothing has changed.
    #[inline(always)]
    pub(super) fn enter_at_once(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32) -> bool {
        let is_entered = self.entered.push_at_once(span_id, local_id, call_site_id, owner);
        if is_entered {
            set_current_span_id(span_id);
        }
        is_entered
    }

    /// As [`Self::exit`] in the ordinary case; otherwise `None`, and nothing has changed.
    #[inline(always)]
    pub(super) fn exit_at_once(&self, local_id: u64, owner: u32) -> Option<EnteredSpan> {
        let (exited, current_span_id) = self.entered.pop_at_once(local_id, owner)?;
        set_current_span_id(current_span_id);
        Some(exited)
    }

    /// The thread enters a span; see [`EnteredSpans::push`].
    #[inline(always)]
    pub(super) fn enter(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32, is_recorded: bool) {
        if self.entered.push(span_id, local_id, call_site_id, owner, is_recorded) {
            set_current_span_id(span_id);
        }
    }

    /// The thread exits a span; see [`EnteredSpans::pop`].
    #[inline(always)]
    pub(super) fn exit(&self, local_id: u64, owner: u32) -> Option<EnteredSpan> {
        let exited = self.entered.pop(local_id, owner);
        set_current_span_id(self.entered.current_span_id());
        exited
    }

    /// An id for a span of a layer: never used twice, with [`LAYER_BIT`]. `None` if all have been used.
    #[inline(always)]
    pub(super) fn next_layer_span_id(&self) -> Option<u64> {
        let (next, end) = self.layer_ids.get();
        if next == end {
            return self.take_id_block();
        }
        self.layer_ids.set((next + 1, end));
        Some(next)
    }

    #[cold]
    fn take_id_block(&self) -> Option<u64> {
        static NEXT_BLOCK: AtomicU64 = AtomicU64::new(LAYER_BIT);
        let first = next_id_block(&NEXT_BLOCK)?;
        self.layer_ids.set((first + 1, first + ID_BLOCK));
        Some(first)
    }
}

/// The first of [`ID_BLOCK`] ids that nobody has; `None` if all have been used.
fn next_id_block(next: &AtomicU64) -> Option<u64> {
    let behind = |first: u64| (first < 2 * LAYER_BIT).then_some(first + ID_BLOCK);
    // Relaxed: unique by atomicity. 2^52 ids last for more than ten years of a program that does nothing but make spans.
    next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()
}

impl EndOfThread {
    fn find(&self, recorder: &Arc<PerfCore>) -> Option<Seat> {
        let joined = self.0.try_borrow().ok()?;
        joined.iter().find(|joined| joined.recorder_id == recorder.id).map(|joined| joined.seat)
    }

    fn remember(&self, recorder: &Arc<PerfCore>, seat: Seat) {
        if let Ok(mut joined) = self.0.try_borrow_mut() {
            joined.retain(|joined| joined.recorder.strong_count() > 0);
            joined.push(Joined { recorder: Arc::downgrade(recorder), recorder_id: recorder.id, seat });
        }
    }

    fn change(&self, recorder: &Arc<PerfCore>, seat: Seat) {
        if let Ok(mut joined) = self.0.try_borrow_mut() {
            joined.iter_mut().filter(|joined| joined.recorder_id == recorder.id).for_each(|joined| joined.seat = seat);
        }
    }
}

impl Drop for EndOfThread {
    fn drop(&mut self) {
        STATE.with(|state| {
            state.free_cells.give_up(&SPAN_CELLS);
            state.last_home.set(NOWHERE);
            for joined in self.0.get_mut().drain(..) {
                let Some(recorder) = joined.recorder.upgrade() else { continue };
                if !recorder.belongs_to_this_process() {
                    continue;
                }
                // Also a provisional seat, which is not remembered: nobody can be asked for it any more.
                state.remember(&recorder, joined.seat);
                recorder.record(state, PerfEvent::ThreadEnded, PerfExt::default(), &[]);
                recorder.shards.leave(joined.seat.shard);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_layers_end_where_a_double_does_not_hold_them_any_more() {
        let next = AtomicU64::new(2 * LAYER_BIT - 2 * ID_BLOCK);
        assert_eq!(next_id_block(&next), Some(2 * LAYER_BIT - 2 * ID_BLOCK));
        assert_eq!(next_id_block(&next), Some(2 * LAYER_BIT - ID_BLOCK));
        assert_eq!((next_id_block(&next), next_id_block(&next)), (None, None));
        // The last of them.
        assert_eq!((2 * LAYER_BIT - 1) as f64 as u64, 2 * LAYER_BIT - 1);
        assert_ne!((2 * LAYER_BIT + 1) as f64 as u64, 2 * LAYER_BIT + 1);
    }

    #[test]
    fn a_thread_that_runs_takes_2_kib() {
        assert!(size_of::<ThreadState>() <= 2 << 10, "{}", size_of::<ThreadState>());
    }
}
