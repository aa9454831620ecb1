//! The spans that a thread is in.
//!
//! The rules are those of tracing-subscriber's `Registry`: entering a span that the thread is in already makes a *duplicate*,
//! which does not count as current; exiting a span removes the last entry of it, wherever it is. So a program sees the same
//! parents whichever subscriber it uses.

use crate::sync::{AtomicU64, Ordering};
use std::cell::{Cell, RefCell};

/// One entering of a span that has not been exited.
///
/// Whole words only: an entry that is read soon after it was written in parts of words makes the processor wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EnteredSpan {
    /// The span's id in the ring.
    pub(super) span_id: u64,
    /// The id that its subscriber knows it by.
    pub(super) local_id: u64,
    /// Its call site (high half), its owner (low half), [`DUPLICATE`] and [`UNRECORDED`].
    tag: u64,
}

/// Bit of an entry's tag: the thread was in the span already.
const DUPLICATE: u64 = 1 << 31;
/// Bit of an entry's tag: the entering was not recorded, for recording was switched off.
const UNRECORDED: u64 = 1 << 30;
/// Bits of an entry's tag: which subscriber or layer.
const OWNER_MASK: u64 = UNRECORDED - 1;

impl EnteredSpan {
    /// Its call site.
    #[inline(always)]
    pub(super) fn call_site_id(&self) -> u32 {
        (self.tag >> 32) as u32
    }

    #[inline(always)]
    fn is(&self, local_id: u64, owner: u32) -> bool {
        self.local_id == local_id && self.tag & OWNER_MASK == u64::from(owner)
    }

    #[inline(always)]
    fn is_current(&self) -> bool {
        self.tag & DUPLICATE == 0
    }

    /// All at once: not a duplicate, of that owner, and recorded.
    #[inline(always)]
    fn is_current_and_recorded_of(&self, owner: u32) -> bool {
        self.tag as u32 == owner
    }

    fn is_current_of(&self, owner: u32) -> bool {
        self.tag as u32 & !(UNRECORDED as u32) == owner
    }

    /// Whether the ring has the entering.
    pub(super) fn is_recorded(&self) -> bool {
        self.tag & UNRECORDED == 0
    }
}

/// A number for each subscriber and layer of the process, to tell their entries apart.
pub(super) fn next_owner() -> u32 {
    static NEXT_OWNER: AtomicU64 = AtomicU64::new(1);
    // After 2^30 of them the numbers begin again; hardly two of a number will be in use at a time.
    (NEXT_OWNER.fetch_add(1, Ordering::Relaxed) & OWNER_MASK) as u32
}

/// As deep as this, the entries lie in the thread's own block; deeper ones on the heap.
const INLINE: usize = 32;
const EMPTY: EnteredSpan = EnteredSpan { span_id: 0, local_id: 0, tag: 0 };

thread_local! {
    static DEEPER: RefCell<Vec<EnteredSpan>> = const { RefCell::new(Vec::new()) };
}

/// The spans that a thread is in, of all subscribers; the last entered last.
#[repr(C)]
pub(super) struct EnteredSpans {
    len: Cell<usize>,
    inline: [Place; INLINE],
}

/// An [`EnteredSpan`], word by word.
struct Place {
    span_id: Cell<u64>,
    local_id: Cell<u64>,
    tag: Cell<u64>,
}

impl Place {
    const fn new() -> Self {
        Self { span_id: Cell::new(0), local_id: Cell::new(0), tag: Cell::new(0) }
    }

    #[inline(always)]
    fn get(&self) -> EnteredSpan {
        EnteredSpan { span_id: self.span_id.get(), local_id: self.local_id.get(), tag: self.tag.get() }
    }

    #[inline(always)]
    fn set(&self, entry: EnteredSpan) {
        self.span_id.set(entry.span_id);
        self.local_id.set(entry.local_id);
        self.tag.set(entry.tag);
    }
}

impl EnteredSpans {
    pub(super) const fn new() -> Self {
        Self { inline: [const { Place::new() }; INLINE], len: Cell::new(0) }
    }

    /// As [`Self::push`] if that is no duplicate and lies in the thread's own block; otherwise false, and nothing has changed.
    #[inline(always)]
    pub(super) fn push_at_once(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32) -> bool {
        let len = self.len.get();
        let Some(place) = self.inline.get(len) else { return false };
        if self.inline[..len].iter().any(|place| place.get().is(local_id, owner)) {
            return false;
        }
        place.set(EnteredSpan { span_id, local_id, tag: u64::from(call_site_id) << 32 | u64::from(owner) });
        self.len.set(len + 1);
        true
    }

    /// As [`Self::pop`] of the last entry, with [`Self::current_span_id`] as it is then; `None`, and nothing has changed, if that
    /// takes a longer look.
    #[inline(always)]
    pub(super) fn pop_at_once(&self, local_id: u64, owner: u32) -> Option<(EnteredSpan, u64)> {
        let last = self.len.get().wrapping_sub(1);
        let exited = self.inline.get(last)?.get();
        if exited.local_id != local_id || !exited.is_current_and_recorded_of(owner) {
            return None;
        }
        let current = match self.inline[..last].last().map(Place::get) {
            None => 0,
            Some(below) if below.is_current() => below.span_id,
            Some(_) => return None,
        };
        self.len.set(last);
        Some((exited, current))
    }

    /// The id of the span of `owner` that the thread is in, 0 for none, if the last entry tells; otherwise `None`.
    #[inline(always)]
    pub(super) fn current_at_once(&self, owner: u32) -> Option<u64> {
        let len = self.len.get();
        if len == 0 {
            return Some(0);
        }
        let last = self.inline.get(len - 1)?.get();
        last.is_current_and_recorded_of(owner).then_some(last.span_id)
    }

    /// The thread enters a span; false if that is a duplicate, and the current span stays what it was.
    pub(super) fn push(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32, is_recorded: bool) -> bool {
        let len = self.len.get();
        let tag = u64::from(call_site_id) << 32 | u64::from(owner) | if is_recorded { 0 } else { UNRECORDED };
        let Some(place) = self.inline.get(len) else {
            return self.push_deep(EnteredSpan { span_id, local_id, tag });
        };
        let is_duplicate = self.inline[..len].iter().any(|place| place.get().is(local_id, owner));
        let tag = if is_duplicate { tag | DUPLICATE } else { tag };
        place.set(EnteredSpan { span_id, local_id, tag });
        self.len.set(len + 1);
        !is_duplicate
    }

    #[cold]
    fn push_deep(&self, entry: EnteredSpan) -> bool {
        let owner = (entry.tag & OWNER_MASK) as u32;
        let is_duplicate = self.last_where(|other| other.is(entry.local_id, owner)).is_some();
        let tag = if is_duplicate { entry.tag | DUPLICATE } else { entry.tag };
        // At the thread's end there is no heap part any more: such an entry is not kept, and its exit finds none.
        let is_kept = DEEPER.try_with(|deeper| deeper.borrow_mut().push(EnteredSpan { tag, ..entry })).is_ok();
        if is_kept {
            self.len.set(self.len.get() + 1);
        }
        is_kept && !is_duplicate
    }

    /// The thread exits a span; gives its last entry, wherever that is, which this ends.
    pub(super) fn pop(&self, local_id: u64, owner: u32) -> Option<EnteredSpan> {
        let len = self.len.get();
        let deeper = DEEPER.try_with(|deeper| {
            let mut deeper = deeper.borrow_mut();
            let at = deeper.iter().rposition(|entry| entry.is(local_id, owner))?;
            Some(deeper.remove(at))
        });
        let removed = match deeper.ok().flatten() {
            Some(removed) => removed,
            None => {
                let inline = &self.inline[..len.min(INLINE)];
                let at = inline.iter().rposition(|place| place.get().is(local_id, owner))?;
                let removed = inline[at].get();
                inline.windows(2).skip(at).for_each(|pair| pair[0].set(pair[1].get()));
                if len > INLINE {
                    self.move_up();
                }
                removed
            }
        };
        self.len.set(len - 1);
        Some(removed)
    }

    /// The first of the deeper entries becomes the last inline one.
    fn move_up(&self) {
        let first = DEEPER.try_with(|deeper| {
            let mut deeper = deeper.borrow_mut();
            if deeper.is_empty() { EMPTY } else { deeper.remove(0) }
        });
        self.inline[INLINE - 1].set(first.unwrap_or(EMPTY));
    }

    /// The last entry, from the innermost on, that `is_wanted`.
    #[inline(always)]
    fn last_where(&self, is_wanted: impl Fn(&EnteredSpan) -> bool) -> Option<EnteredSpan> {
        let len = self.len.get();
        if len > INLINE
            && let Some(found) = deeper_where(&is_wanted)
        {
            return Some(found);
        }
        let inline = &self.inline[..len.min(INLINE)];
        inline.iter().rev().map(Place::get).find(is_wanted)
    }

    /// The span of `owner` that the thread is in: the one entered last.
    #[inline(always)]
    pub(super) fn current(&self, owner: u32) -> Option<EnteredSpan> {
        self.last_where(|entry| entry.is_current_of(owner))
    }

    /// The same of those whose entering was recorded: for who finds out by itself whether it is the current span.
    #[inline(always)]
    pub(super) fn current_and_recorded(&self, owner: u32) -> Option<EnteredSpan> {
        self.last_where(|entry| entry.is_current_and_recorded_of(owner))
    }

    /// The id of [`Self::current`]; 0 for none.
    #[inline(never)]
    pub(super) fn current_of(&self, owner: u32) -> u64 {
        self.current(owner).map_or(0, |entered| entered.span_id)
    }

    /// The id of the span that the thread is in, whosever it is; 0 for none.
    #[inline(always)]
    pub(super) fn current_span_id(&self) -> u64 {
        self.last_where(EnteredSpan::is_current).map_or(0, |entry| entry.span_id)
    }
}

#[cold]
fn deeper_where(is_wanted: &impl Fn(&EnteredSpan) -> bool) -> Option<EnteredSpan> {
    DEEPER.try_with(|deeper| deeper.borrow().iter().rev().find(|entry| is_wanted(entry)).copied()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u64, u32),
        Exit(u64, u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let span = (1..40u64, 1..3u32);
        prop_oneof![
            3 => span.clone().prop_map(|(id, owner)| Step::Enter(id, owner)),
            2 => span.prop_map(|(id, owner)| Step::Exit(id, owner)),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_vector_does_however_deep(steps in prop::collection::vec(step(), 0..300)) {
            std::thread::spawn(move || {
                let spans = EnteredSpans::new();
                let mut model: Vec<(u64, u32, bool)> = Vec::new();
                for step in steps {
                    match step {
                        Step::Enter(id, owner) => {
                            let is_duplicate = model.iter().any(|entry| (entry.0, entry.1) == (id, owner));
                            model.push((id, owner, is_duplicate));
                            if !spans.push_at_once(id + 1000, id, 0, owner) {
                                assert!(is_duplicate || model.len() > INLINE);
                                spans.push(id + 1000, id, 0, owner, true);
                            }
                        }
                        Step::Exit(id, owner) => {
                            let at = model.iter().rposition(|entry| (entry.0, entry.1) == (id, owner));
                            let expected = at.map(|at| model.remove(at).0 + 1000);
                            let popped = match spans.pop_at_once(id, owner) {
                                Some((entry, current)) => {
                                    assert_eq!(current, spans.current_span_id());
                                    Some(entry)
                                }
                                None => spans.pop(id, owner),
                            };
                            assert_eq!(popped.map(|entry| entry.span_id), expected);
                        }
                    }
                    assert_eq!(spans.len.get(), model.len());
                    for owner in 1..3 {
                        let expected = model.iter().rev().find(|entry| entry.1 == owner && !entry.2).map(|entry| entry.0);
                        assert_eq!(spans.current(owner).map(|entry| entry.local_id), expected);
                        let at_once = spans.current_at_once(owner);
                        assert!(at_once.is_none_or(|id| id == expected.map_or(0, |id| id + 1000)));
                    }
                    let expected = model.iter().rev().find(|entry| !entry.2).map_or(0, |entry| entry.0 + 1000);
                    assert_eq!(spans.current_span_id(), expected);
                }
            }).join().unwrap();
        }
    }
}
