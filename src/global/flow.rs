//! What the calling thread is busy with: flow tags and the current span, put on exec events without being named each time.

use crate::schema::{EventType, SPAN_WORD};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

thread_local! {
    // No destructor: works until the thread's last instruction.
    // Word by word: storing one must not wait for the others.
    static AMBIENT: [Cell<u64>; 4] = const { [const { Cell::new(0) }; 4] };
}

/// Index of the word that holds the id of the enclosing span. (Unused in the published schema.)
const SPAN_ID: usize = SPAN_WORD;

/// The calling thread's ambient content extension: block tag, transaction tag, account index, span id; 0 where there is none.
#[inline(always)]
pub fn ambient_ext() -> [u64; 4] {
    AMBIENT.with(|[block, transaction, account, span]| [block.get(), transaction.get(), account.get(), span.get()])
}

/// The id of the span the calling thread is in, 0 for none. Kept by the tracing capture.
#[inline(always)]
pub fn current_span_id() -> u64 {
    AMBIENT.with(|ext| ext[SPAN_ID].get())
}

/// Sets the id of the span that the calling thread is in; 0 for none.
#[inline(always)]
pub fn set_current_span_id(span_id: u64) {
    AMBIENT.with(|ext| ext[SPAN_ID].set(span_id));
}

/// The content extension of an event of `E` that is recorded now: the id of the current span, if `E` carries it; the rest is 0.
///
/// One load from the thread's own memory; nothing where there are no spans.
#[inline(always)]
pub(crate) fn span_ext<E: EventType>() -> [u64; 4] {
    let mut ext = [0; 4];
    if const { cfg!(feature = "tracing") && E::INFO.carries_span } {
        ext[SPAN_ID] = current_span_id();
    }
    ext
}

/// Sets one word of the calling thread's ambient extension until it is dropped.
///
/// Guards may be dropped in any order: the word is that of the guard that was made last of those that still live, and what it
/// was before when there is none. (One that is leaked lives for ever.)
#[derive(Debug)]
#[must_use = "the word is restored when this is dropped"]
pub struct AmbientExt {
    guard: Guard,
    /// The word belongs to a thread.
    _not_send: PhantomData<*const ()>,
}

/// A guard that lives.
#[derive(Clone, Copy, Debug)]
struct Guard {
    /// Which of the thread's guards it is.
    id: u64,
    index: usize,
    /// What the word is without it.
    before: u64,
}

thread_local! {
    /// The calling thread's guards, in the order in which they were made.
    static GUARDS: RefCell<Vec<Guard>> = const { RefCell::new(Vec::new()) };
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
}

impl AmbientExt {
    /// Sets word `index` to `value`.
    ///
    /// # Panics
    /// If `index` is not below 4.
    pub fn set(index: usize, value: u64) -> Self {
        let before = AMBIENT.with(|ext| ext[index].replace(value));
        let guard = Guard { id: NEXT_ID.replace(NEXT_ID.get() + 1), index, before };
        // Where the thread ends there is no list any more: then the guard restores what it found.
        let _ = GUARDS.try_with(|guards| guards.borrow_mut().push(guard));
        Self { guard, _not_send: PhantomData }
    }
}

impl Drop for AmbientExt {
    fn drop(&mut self) {
        if let Some(before) =
            GUARDS.try_with(|guards| take_out(&mut guards.borrow_mut(), self.guard)).unwrap_or(Some(self.guard.before))
        {
            AMBIENT.with(|ext| ext[self.guard.index].set(before));
        }
    }
}

/// Takes `guard` out of those that live. Gives what its word is from now on; `None` if a later guard still sets it.
fn take_out(guards: &mut Vec<Guard>, guard: Guard) -> Option<u64> {
    let Some(at) = guards.iter().rposition(|living| living.id == guard.id) else { return Some(guard.before) };
    let before = guards.remove(at).before;
    match guards[at..].iter_mut().find(|later| later.index == guard.index) {
        Some(later) => {
            later.before = before;
            None
        }
        None => Some(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_restored_and_the_others_are_left_alone() {
        set_current_span_id(9);
        {
            let _block = AmbientExt::set(0, 5);
            {
                let _txn = AmbientExt::set(1, 6);
                assert_eq!(ambient_ext(), [5, 6, 0, 9]);
            }
            assert_eq!(ambient_ext(), [5, 0, 0, 9]);
        }
        assert_eq!(ambient_ext(), [0, 0, 0, 9]);
        set_current_span_id(0);
    }

    #[test]
    fn guards_are_dropped_in_any_order() {
        // Three guards of a word and one of another, in each order.
        for order in 0..24 {
            let mut guards: Vec<_> = [(0, 5), (1, 9), (0, 6), (0, 7)]
                .map(|(index, value)| (index, value, AmbientExt::set(index, value)))
                .into();
            let mut left = order;
            for divisor in (1..=4).rev() {
                let shown = |index| guards.iter().rfind(|(of, ..)| *of == index).map_or(0, |(_, value, _)| *value);
                assert_eq!(ambient_ext()[..2], [shown(0), shown(1)], "order {order}, {divisor} left");
                drop(guards.remove(left % divisor));
                left /= divisor;
            }
            assert_eq!(ambient_ext(), [0; 4]);
            GUARDS.with_borrow(|guards| assert!(guards.is_empty()));
        }
    }

    #[test]
    fn a_word_that_is_set_between_guards_is_restored_to_what_each_found() {
        set_current_span_id(1);
        let outer = AmbientExt::set(SPAN_ID, 2);
        set_current_span_id(3);
        let inner = AmbientExt::set(SPAN_ID, 4);
        drop(inner);
        assert_eq!(current_span_id(), 3);
        drop(outer);
        assert_eq!(current_span_id(), 1);
        set_current_span_id(0);
    }
}
