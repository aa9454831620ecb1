//! What the calling thread is busy with: flow tags and the current span, put on exec events without being named each time.

use crate::schema::{EventType, SPAN_WORD};
use std::cell::Cell;
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

/// Sets one word of the calling thread's ambient extension until it is dropped, then restores the old one.
#[derive(Debug)]
#[must_use = "the word is restored when this is dropped"]
pub struct AmbientExt {
    index: usize,
    before: u64,
    /// The word belongs to a thread.
    _not_send: PhantomData<*const ()>,
}

impl AmbientExt {
    /// Sets word `index` to `value`.
    ///
    /// # Panics
    /// If `index` is not below 4.
    pub fn set(index: usize, value: u64) -> Self {
        let before = AMBIENT.with(|ext| ext[index].replace(value));
        Self { index, before, _not_send: PhantomData }
    }
}

impl Drop for AmbientExt {
    fn drop(&mut self) {
        AMBIENT.with(|ext| ext[self.index].set(self.before));
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
}
