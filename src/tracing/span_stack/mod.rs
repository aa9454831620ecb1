//! The span stack: the spans that a thread is in, innermost last.
//!
//! The stack follows the rules of tracing-subscriber's `Registry`, so a program sees the same parents with either. If
//! a thread enters a span that it is already in, the new entry is a *duplicate*, and a duplicate is never the current
//! span. An exit removes the last entry of the span, even if it is not on top of the stack.

mod entry;

use entry::{DUPLICATE, EntryCell, OWNER_MASK, UNRECORDED};
pub(super) use entry::{SpanEntry, next_owner};
use std::cell::{Cell, RefCell};

/// Number of entries that lie in the thread's own state. Deeper entries lie on the heap.
const INLINE: usize = 32;

thread_local! {
    /// The entries after the first [`INLINE`] entries.
    static HEAP_ENTRIES: RefCell<Vec<SpanEntry>> = const { RefCell::new(Vec::new()) };
}

/// The span stack of a thread, with the spans of all subscribers and layers.
#[repr(C)]
pub(super) struct SpanStack {
    len: Cell<usize>,
    inline: [EntryCell; INLINE],
}

/// An entry that was removed from the stack, and the span that is current without it.
#[derive(Clone, Copy)]
pub(super) struct Popped {
    pub(super) entry: SpanEntry,
    /// The value that [`SpanStack::current_span_id`] returns.
    pub(super) current_span_id: u64,
}

/// The fast paths. Each handles only the common case. In every other case it changes nothing, and its result makes
/// the caller take the slow path.
impl SpanStack {
    /// Adds an entry like [`Self::push`] and returns true. Returns false and changes nothing if the entry would be a
    /// duplicate, or if there is no room for it in `inline`.
    #[inline(always)]
    pub(super) fn try_push(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32) -> bool {
        let len = self.len.get();
        let Some(cell) = self.inline.get(len) else { return false };
        if self.inline[..len].iter().any(|cell| cell.get().is(local_id, owner)) {
            return false;
        }
        cell.set(SpanEntry { span_id, local_id, tag: u64::from(call_site_id) << 32 | u64::from(owner) });
        self.len.set(len + 1);
        true
    }

    /// Removes an entry like [`Self::pop`], if it is the last entry of the stack. Returns `None` and changes nothing
    /// in every other case. The last entry may belong to another span, be a duplicate, be unrecorded, or lie on the
    /// heap. The stack may be empty, or the entry before the last may be a duplicate.
    #[inline(always)]
    pub(super) fn try_pop(&self, local_id: u64, owner: u32) -> Option<Popped> {
        let last = self.len.get().wrapping_sub(1);
        let entry = self.inline.get(last)?.get();
        if entry.local_id != local_id || !entry.is_current_and_recorded_of(owner) {
            return None;
        }
        let current_span_id = match self.inline[..last].last().map(EntryCell::get) {
            None => 0,
            Some(below) if below.is_current() => below.span_id,
            Some(_) => return None,
        };
        self.len.set(last);
        Some(Popped { entry, current_span_id })
    }

    /// Returns the id of the innermost span of `owner` that the thread is in. Returns 0 if the stack is empty. Returns
    /// `None` if the last entry of the stack does not show the result: the entry belongs to another owner, is a
    /// duplicate, was not recorded, or lies on the heap.
    #[inline(always)]
    pub(super) fn try_current(&self, owner: u32) -> Option<u64> {
        let len = self.len.get();
        if len == 0 {
            return Some(0);
        }
        let last = self.inline.get(len - 1)?.get();
        last.is_current_and_recorded_of(owner).then_some(last.span_id)
    }
}

impl SpanStack {
    pub(super) const fn new() -> Self {
        Self { inline: [const { EntryCell::new() }; INLINE], len: Cell::new(0) }
    }

    /// Adds an entry for a span that the thread enters. Returns true if this span is now the current span. Returns
    /// false if it is not: the entry is a duplicate, or the thread is ending and there is no place for the entry.
    pub(super) fn push(&self, span_id: u64, local_id: u64, call_site_id: u32, owner: u32, is_recorded: bool) -> bool {
        let len = self.len.get();
        let tag = u64::from(call_site_id) << 32 | u64::from(owner) | if is_recorded { 0 } else { UNRECORDED };
        let Some(cell) = self.inline.get(len) else {
            return self.push_to_heap(SpanEntry { span_id, local_id, tag });
        };
        let is_duplicate = self.inline[..len].iter().any(|cell| cell.get().is(local_id, owner));
        let tag = if is_duplicate { tag | DUPLICATE } else { tag };
        cell.set(SpanEntry { span_id, local_id, tag });
        self.len.set(len + 1);
        !is_duplicate
    }

    #[cold]
    fn push_to_heap(&self, entry: SpanEntry) -> bool {
        let owner = (entry.tag & OWNER_MASK) as u32;
        let is_duplicate = self.last_where(|other| other.is(entry.local_id, owner)).is_some();
        let tag = if is_duplicate { entry.tag | DUPLICATE } else { entry.tag };
        // While the thread ends, `HEAP_ENTRIES` may already be destroyed. Then the entry has no place and is dropped.
        // The later exit of its span finds no entry.
        let is_kept = HEAP_ENTRIES.try_with(|entries| entries.borrow_mut().push(SpanEntry { tag, ..entry })).is_ok();
        if is_kept {
            self.len.set(self.len.get() + 1);
        }
        is_kept && !is_duplicate
    }

    /// Removes and returns the last entry of the span that the thread exits. The entry may be anywhere in the stack.
    /// Returns `None` if the stack has no entry of the span.
    pub(super) fn pop(&self, local_id: u64, owner: u32) -> Option<SpanEntry> {
        let len = self.len.get();
        let on_heap = HEAP_ENTRIES.try_with(|entries| {
            let mut entries = entries.borrow_mut();
            let at = entries.iter().rposition(|entry| entry.is(local_id, owner))?;
            Some(entries.remove(at))
        });
        let removed = match on_heap.ok().flatten() {
            Some(removed) => removed,
            None => {
                let inline = &self.inline[..len.min(INLINE)];
                let at = inline.iter().rposition(|cell| cell.get().is(local_id, owner))?;
                let removed = inline[at].get();
                inline.windows(2).skip(at).for_each(|pair| pair[0].set(pair[1].get()));
                if len > INLINE {
                    self.refill_inline();
                }
                removed
            }
        };
        self.len.set(len - 1);
        Some(removed)
    }

    /// Moves the first entry on the heap to the last cell of `inline`, which is free after an inline entry was
    /// removed.
    fn refill_inline(&self) {
        let first = HEAP_ENTRIES.try_with(|entries| {
            let mut entries = entries.borrow_mut();
            if entries.is_empty() { SpanEntry::EMPTY } else { entries.remove(0) }
        });
        self.inline[INLINE - 1].set(first.unwrap_or(SpanEntry::EMPTY));
    }

    /// Returns the innermost entry for which `is_wanted` returns true, or `None` if there is no such entry.
    #[inline(always)]
    fn last_where(&self, is_wanted: impl Fn(&SpanEntry) -> bool) -> Option<SpanEntry> {
        let len = self.len.get();
        if len > INLINE
            && let Some(found) = last_on_heap_where(&is_wanted)
        {
            return Some(found);
        }
        let inline = &self.inline[..len.min(INLINE)];
        inline.iter().rev().map(EntryCell::get).find(is_wanted)
    }

    /// Returns true if the thread is in a span of `owner` for which `is_wanted` returns true.
    pub(super) fn any_of(&self, owner: u32, is_wanted: impl Fn(&SpanEntry) -> bool) -> bool {
        self.last_where(|entry| entry.is_of(owner) && is_wanted(entry)).is_some()
    }

    /// Returns the entry of the innermost span of `owner` that the thread is in. Returns `None` if the thread is in
    /// no span of `owner`.
    #[inline(always)]
    pub(super) fn current(&self, owner: u32) -> Option<SpanEntry> {
        self.last_where(|entry| entry.is_current_of(owner))
    }

    /// Returns the innermost entry of `owner` that is no duplicate and whose enter was recorded. The entry may not be
    /// of the thread's current span, because the enter of the current span may not have been recorded. So the caller
    /// must compare the entry's `local_id` with the current span of the registry.
    #[inline(always)]
    pub(super) fn current_and_recorded(&self, owner: u32) -> Option<SpanEntry> {
        self.last_where(|entry| entry.is_current_and_recorded_of(owner))
    }

    /// Returns the id of the innermost span of `owner` that the thread is in. Returns 0 if the thread is in no span
    /// of `owner`.
    #[inline(never)]
    pub(super) fn current_of(&self, owner: u32) -> u64 {
        self.current(owner).map_or(0, |entry| entry.span_id)
    }

    /// Returns the id of the innermost span that the thread is in. The span may belong to any subscriber or layer.
    /// Returns 0 if the thread is in no span.
    #[inline(always)]
    pub(super) fn current_span_id(&self) -> u64 {
        self.last_where(SpanEntry::is_current).map_or(0, |entry| entry.span_id)
    }
}

#[cold]
fn last_on_heap_where(is_wanted: &impl Fn(&SpanEntry) -> bool) -> Option<SpanEntry> {
    HEAP_ENTRIES
        .try_with(|entries| entries.borrow().iter().rev().find(|entry| is_wanted(entry)).copied())
        .ok()
        .flatten()
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
                let spans = SpanStack::new();
                let mut model: Vec<(u64, u32, bool)> = Vec::new();
                for step in steps {
                    match step {
                        Step::Enter(id, owner) => {
                            let is_duplicate = model.iter().any(|entry| (entry.0, entry.1) == (id, owner));
                            model.push((id, owner, is_duplicate));
                            if !spans.try_push(id + 1000, id, 0, owner) {
                                assert!(is_duplicate || model.len() > INLINE);
                                spans.push(id + 1000, id, 0, owner, true);
                            }
                        }
                        Step::Exit(id, owner) => {
                            let at = model.iter().rposition(|entry| (entry.0, entry.1) == (id, owner));
                            let expected = at.map(|at| model.remove(at).0 + 1000);
                            let popped = match spans.try_pop(id, owner) {
                                Some(popped) => {
                                    assert_eq!(popped.current_span_id, spans.current_span_id());
                                    Some(popped.entry)
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
                        let current = spans.try_current(owner);
                        assert!(current.is_none_or(|id| id == expected.map_or(0, |id| id + 1000)));
                    }
                    let expected = model.iter().rev().find(|entry| !entry.2).map_or(0, |entry| entry.0 + 1000);
                    assert_eq!(spans.current_span_id(), expected);
                }
            }).join().unwrap();
        }
    }
}
