//! Extension words that an event gets from its recording thread: the id of the current span, and the words that scopes
//! ([`ExtScope`]) have set.

use super::global_recorder::GlobalRecorder;
use crate::schema::EventType;
use crate::sync::{AtomicU64, local_fetch_add};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::thread::LocalKey;

/// Index of the word that holds the id of the span.
const SPAN_ID: usize = 3;

thread_local! {
    // This thread-local has no destructor, so it can be used until the thread's last instruction. Even the
    // destructors of other thread-locals can record events.
    static CURRENT_SPAN: Cell<u64> = const { Cell::new(0) };
}

/// Returns the id of the calling thread's current span, or 0 if the thread has none. A span that is closed is no
/// current span, even if the thread has not exited it.
#[inline(always)]
pub fn current_span_id() -> u64 {
    let span_id = CURRENT_SPAN.get();
    if span_id != 0 && !crate::span_slab::SPAN_SLAB.is_open(span_id) {
        return 0;
    }
    span_id
}

/// Returns the same as [`current_span_id`], or the id of a span that is closed. It costs one load.
#[inline(always)]
pub(crate) fn current_span_word() -> u64 {
    CURRENT_SPAN.get()
}

/// Sets the id of the span that the calling thread is in. An id of 0 means that the thread is in no span. The span may
/// close without another call.
#[inline(always)]
pub(crate) fn set_current_span_id(span_id: u64) {
    CURRENT_SPAN.set(span_id);
}

/// Returns the four extension words for an event of `E` that is recorded now. If events of `E` have a word for the id
/// of the current span, this word has the id. All other words are 0.
///
/// The call costs one load of a thread-local, and in a span a load of the span's cell. In a build without the feature
/// `tracing` it costs nothing.
#[inline(always)]
pub(crate) fn span_ext<E: EventType>() -> [u64; 4] {
    let mut ext = [0; 4];
    if const { cfg!(feature = "tracing") && E::INFO.ext_words.has_span() } {
        ext[SPAN_ID] = current_span_id();
    }
    ext
}

/// Returns the extension words that the calling thread gives to `event`: the words that scopes have set, if this
/// event carries them, and the id of the current span.
#[inline(always)]
pub(super) fn ambient_ext<E: RecordsTo>(event: E) -> [u64; 4] {
    let mut ext = span_ext::<E>();
    if const { E::INFO.ext_words.own_bits() != 0 } {
        let carried = event.carried_words();
        E::with_ambient(|words| {
            for (index, word) in words.0.iter().enumerate() {
                if carried >> index & 1 == 1 {
                    ext[index] = word.get();
                }
            }
        });
    }
    ext
}

/// The extension words that scopes have set on one thread, for the events of one type. Only code that the derive
/// `EventType` generates uses this type.
// Each word has its own cell, so that storing one word is one store, without a load of the other words.
/// A type of events that names the global recorder to which its events are recorded. The derive `EventType`
/// implements this trait for an enum with the attribute `#[event(recorder = …)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no recorder of its own",
    note = "declare one: `#[event(recorder = GLOBAL)]` on the enum; or name one: `record!(recorder => EVENT, …)`"
)]
pub trait RecordsTo: EventType {
    /// Returns the global recorder.
    fn global_recorder() -> &'static GlobalRecorder;

    /// Calls `f` with the extension words that scopes ([`ExtScope`](super::ExtScope)) have set on the calling thread
    /// for events of this type. This default passes words that are all 0.
    #[doc(hidden)]
    #[inline(always)]
    fn with_ambient<R>(f: impl FnOnce(&AmbientWords) -> R) -> R {
        f(&AmbientWords::new())
    }

    /// Returns the extension words of this event for a call of `record!` that gives no extension words. They are the
    /// words that scopes ([`ExtScope`](super::ExtScope)) have set, and the id of the current span.
    #[inline(always)]
    fn default_ext(self) -> [u64; 4] {
        ambient_ext(self)
    }
}

#[doc(hidden)]
#[derive(Debug, Default)]
pub struct AmbientWords([Cell<u64>; 4]);

impl AmbientWords {
    /// Creates the words, all 0.
    pub const fn new() -> Self {
        Self([const { Cell::new(0) }; 4])
    }
}

/// A scope that gives one extension word a value. Until the scope is dropped, the events that the calling thread
/// records carry this value.
///
/// The macro [`ext_scope!`](crate::ext_scope) makes a scope. A scope applies to each `record!` and `recordv!` that
/// names no recorder. Such a call records to the recorder that the event type names (`#[event(recorder = …)]`). If
/// the call itself gives a value for the word, that value is recorded instead of the scope's value.
///
/// Scopes may be dropped in any order: the word always has the value of the newest scope that still lives. After the
/// last scope was dropped, the word has the value from before the first scope. A leaked scope lives for ever.
#[derive(Debug)]
#[must_use = "the word is restored when this is dropped"]
pub struct ExtScope {
    guard: Guard,
    /// Stores a word of the events that the scope is for.
    store: fn(usize, u64) -> u64,
    /// Marker: the word belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

/// A living scope, as an entry of its thread's list `GUARDS`.
#[derive(Clone, Copy, Debug)]
struct Guard {
    /// The scope's number among those of the thread.
    id: u64,
    /// The address of the static `INFO` of an event type. The scope sets a word of the events of this type.
    events: usize,
    index: usize,
    /// The value that the word had before this scope. When the scope is dropped, the word gets this value back. But if
    /// a newer scope of the same word still lives at that time, the word keeps its value, and the next newer scope
    /// takes over this value as its own `before`.
    before: u64,
}

thread_local! {
    /// The scopes that live on the calling thread, oldest first.
    static GUARDS: RefCell<Vec<Guard>> = const { RefCell::new(Vec::new()) };
    static NEXT_ID: AtomicU64 = const { AtomicU64::new(0) };
}

/// Returns a number that the calling thread has not got before, and neither has code that interrupts the thread.
pub(super) fn next_id(next: &'static LocalKey<AtomicU64>) -> u64 {
    next.with(|next| local_fetch_add(next, 1))
}

impl ExtScope {
    /// Sets word `index` of the events of `E` to `value`.
    ///
    /// # Panics
    /// If `index` is not below 4.
    #[doc(hidden)]
    pub fn set<E: RecordsTo>(index: usize, value: u64) -> Self {
        let store = |index: usize, value| E::with_ambient(|words| words.0[index].replace(value));
        let before = store(index, value);
        let events = std::ptr::from_ref(E::INFO).addr();
        let guard = Guard { id: next_id(&NEXT_ID), events, index, before };
        // While the thread ends, its `GUARDS` may already be destroyed. Then `try_with` fails, and the scope is in no
        // list. When such a scope is dropped, the word gets the value that it had before the scope.
        // The same happens if the list is in use: if the program's allocator makes a scope while the list grows, or a
        // signal handler does.
        let _ = GUARDS.try_with(|guards| guards.try_borrow_mut().map(|mut guards| guards.push(guard)));
        Self { guard, store, _not_send: PhantomData }
    }
}

impl Drop for ExtScope {
    fn drop(&mut self) {
        let take = |guards: &RefCell<Vec<Guard>>| Some(take_out(&mut *guards.try_borrow_mut().ok()?, self.guard));
        let taken = GUARDS.try_with(take).ok().flatten();
        if let Some(before) = taken.unwrap_or(Some(self.guard.before)) {
            (self.store)(self.guard.index, before);
        }
    }
}

/// Removes `guard` from the thread's list of living guards. Returns the value that the word must get now. Returns
/// `None` if a newer guard of the same word still lives: the word then keeps its value.
fn take_out(guards: &mut Vec<Guard>, guard: Guard) -> Option<u64> {
    let Some(at) = guards.iter().rposition(|living| living.id == guard.id) else { return Some(guard.before) };
    let before = guards.remove(at).before;
    let sets_the_same = |later: &&mut Guard| (later.events, later.index) == (guard.events, guard.index);
    match guards[at..].iter_mut().find(sets_the_same) {
        Some(later) => {
            later.before = before;
            None
        }
        None => Some(before),
    }
}

#[cfg(all(test, feature = "macros"))]
mod tests {
    use super::*;

    static SLOT: GlobalRecorder = GlobalRecorder::new("slot");

    #[derive(EventType, Clone, Copy)]
    #[event(content_type = 300, recorder = SLOT, ext(0 = order: seqno, 1 = line: index))]
    #[repr(u16)]
    enum Shop {
        OrderPlaced = 2,
        #[event(carries(order))]
        OrderPaid = 3,
        #[event(carries())]
        DayEnded = 4,
    }

    #[derive(EventType, Clone, Copy)]
    #[event(content_type = 301, recorder = SLOT, no_span, ext(0 = shelf, 3 = row))]
    #[repr(u16)]
    enum Stock {
        Counted = 2,
    }

    #[test]
    fn an_event_carries_its_words_and_the_span_and_no_other() {
        use crate::span_slab::{FreeList, SPAN_SLAB};

        let free = FreeList::new();
        let span = SPAN_SLAB.create::<false>(&free, 1).unwrap();
        CURRENT_SPAN.set(span);
        let _line = crate::ext_scope!(Shop, line = 6);
        let _shelf = crate::ext_scope!(Stock, shelf = 1);
        let _row = crate::ext_scope!(Stock, row = 2);
        {
            let _order = crate::ext_scope!(Shop, order = 5);
            assert_eq!(ambient_ext(Shop::OrderPlaced), [5, 6, 0, span]);
            assert_eq!(ambient_ext(Shop::OrderPaid), [5, 0, 0, span]);
            assert_eq!(ambient_ext(Shop::DayEnded), [0, 0, 0, span]);
        }
        assert_eq!(ambient_ext(Shop::OrderPlaced), [0, 6, 0, span]);
        assert_eq!(ambient_ext(Stock::Counted), [1, 0, 0, 2]);
        // Another thread may close the span while this thread is in it.
        SPAN_SLAB.drop_handle(&free, span);
        assert_eq!(ambient_ext(Shop::OrderPlaced), [0, 6, 0, 0]);
        CURRENT_SPAN.set(0);
    }

    #[test]
    fn scopes_are_dropped_in_any_order() {
        // Makes three scopes of word 0 and one scope of word 1, and drops them in each of the 24 possible orders.
        for order in 0..24 {
            let mut scopes: Vec<_> = [(0, 5), (1, 9), (0, 6), (0, 7)]
                .map(|(index, value)| (index, value, ExtScope::set::<Shop>(index, value)))
                .into();
            let mut left = order;
            for divisor in (1..=4).rev() {
                let shown = |index| scopes.iter().rfind(|(of, ..)| *of == index).map_or(0, |(_, value, _)| *value);
                assert_eq!(ambient_ext(Shop::OrderPlaced)[..2], [shown(0), shown(1)], "order {order}, {divisor} left");
                drop(scopes.remove(left % divisor));
                left /= divisor;
            }
            assert_eq!(ambient_ext(Shop::OrderPlaced), [0; 4]);
            GUARDS.with_borrow(|guards| assert!(guards.is_empty()));
        }
    }
}
