//! The span stack: the spans that a thread is in, innermost last.
//!
//! The stack follows the rules of tracing-subscriber's `Registry` (0.3). So a span gets the same parent from this stack
//! as from a `Registry`:
//!
//! - If a thread enters a span that it is already in, the new entry is a *duplicate*, which is never the current span.
//! - An exit removes the last entry of the span, even if it is not on top of the stack. If the thread is not in the
//!   span, the exit does nothing.
//! - The current span is the span of the innermost entry that is no duplicate. If this span is closed, the thread has
//!   no current span.
//!
//! A span may close while a thread is in it, if the guard of the enter is forgotten, or dropped on another thread
//! (after an `.await`).
//!
//! One rule differs. A span of a `RecorderSubscriber` closes with its last handle. In a `Registry`, a span stays open
//! until its children have closed.
//!
//! The entries of closed spans do not accumulate. Such an entry is removed when it is on top. All such entries are
//! removed when the stack is twice as long as after the previous removal.
//!
//! While a closed span is on top, the thread has no current span. This stays true after the removal, because the entry
//! below gets the mark [`HIDDEN`].

mod entry;
mod heap;

use crate::span_slab::SPAN_SLAB;
use crate::sync::interrupted::Mark;
use crate::sync::{Ordering, compiler_fence};
use entry::{DUPLICATE, EntryCell, HIDDEN, UNRECORDED};
pub(in crate::tracing::record) use entry::{NUMBER_MASK, OF_PERF, SCOPES, SpanEntry, scope_local_id};
use std::cell::Cell;

/// Number of entries that lie in the thread's own state. Deeper entries lie on the heap.
const INLINE: usize = 32;

/// The span stack of a thread, with the spans of all subscribers and layers.
#[repr(C)]
pub(in crate::tracing::record) struct SpanStack {
    len: Cell<usize>,
    /// Mark of a change on a slow path. Code that interrupts such a change only adds entries and removes them again: it
    /// removes no entries of closed spans.
    is_changing: Mark,
    inline: [EntryCell; INLINE],
    /// Length at which the entries of closed spans are removed: twice the length that was left the last time.
    look_at: Cell<usize>,
}

/// An entry that was removed from the stack, and the span that is current without it.
#[derive(Clone, Copy)]
pub(in crate::tracing::record) struct Popped {
    pub(in crate::tracing::record) entry: SpanEntry,
    /// The value that [`SpanStack::current_span_id`] returns.
    pub(in crate::tracing::record) current_span_id: u64,
}

/// The fast paths. Each handles only the common case. In every other case it changes nothing, and its result makes
/// the caller take the slow path.
impl SpanStack {
    /// Adds an entry like [`Self::push`] and returns true. Returns false and changes nothing if the entry would be a
    /// duplicate, if there is no room for it in `inline`, or if the thread was interrupted.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_push(
        &self,
        span_id: u64,
        local_id: u64,
        call_site_id: u32,
        owner: u32,
    ) -> bool {
        let len = self.len.get();
        let Some(cell) = self.inline.get(len) else { return false };
        if self.inline[..len].iter().any(|cell| cell.span_id() == span_id) {
            return false;
        }
        let tag = u64::from(call_site_id) << 32 | u64::from(owner);
        self.try_add(len, cell, SpanEntry { span_id, local_id, tag })
    }

    /// Adds an entry, which `cell` is for, and returns true. Returns false and changes nothing if the thread was
    /// interrupted meanwhile by code that has used the cell, or has removed entries of closed spans: both leave another
    /// span in the cell.
    #[inline(always)]
    fn try_add(&self, len: usize, cell: &EntryCell, entry: SpanEntry) -> bool {
        cell.set(entry);
        self.len.set(len + 1);
        compiler_fence(Ordering::SeqCst);
        let is_whole = cell.span_id() == entry.span_id;
        if !is_whole {
            self.take_back(len, entry.span_id);
        }
        is_whole
    }

    /// Takes back an entry that was added while the thread was interrupted.
    #[cold]
    #[inline(never)]
    fn take_back(&self, len_before: usize, span_id: u64) {
        let top = self.len.get().wrapping_sub(1);
        // If entries were removed after the length was stored, the entry has moved with the others.
        let has_moved = self.inline.get(top).is_some_and(|cell| cell.span_id() == span_id);
        self.correct_len(if has_moved { top } else { len_before });
    }

    /// Corrects the length after an interruption that may have removed entries before the length was stored. The cells
    /// that became free are empty.
    #[cold]
    #[inline(never)]
    fn correct_len(&self, len_max: usize) {
        let len = self.len.get().min(len_max);
        let is_empty = |at: &usize| self.inline.get(at - 1).is_some_and(|cell| cell.span_id() == 0);
        let free = (1..=len).rev().take_while(is_empty).count();
        self.len.set(len - free);
    }

    /// Returns true if [`Self::push_new_scope`] has room for an entry.
    #[inline(always)]
    pub(in crate::tracing::record) fn has_inline_room(&self) -> bool {
        self.len.get() < INLINE
    }

    /// Adds an entry of a scope that has just been made, so it is no duplicate.
    #[inline(always)]
    pub(in crate::tracing::record) fn push_new_scope(&self, span_id: u64, call_site_id: u32) {
        let len = self.len.get();
        let Some(cell) = self.inline.get(len) else { return };
        if !self.try_add(len, cell, SpanEntry::of_scope(span_id, call_site_id)) {
            self.push_new_scope_slow(span_id, call_site_id);
        }
    }

    /// Removes an entry like [`Self::pop`], if it is the last entry of the stack. Returns `None` and changes nothing
    /// in every other case. The last entry may belong to another span, be a duplicate, be hidden, be unrecorded, or
    /// lie on the heap. The stack may be empty, or the entry before the last may be a duplicate or hidden. Or the
    /// thread was interrupted.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_pop(&self, local_id: u64, owner: u32) -> Option<Popped> {
        let last = self.len.get().wrapping_sub(1);
        let cell = self.inline.get(last)?;
        let entry = cell.get();
        if entry.local_id != local_id || !entry.is_plain_of(owner) {
            return None;
        }
        let current_span_id = match self.inline[..last].last().map(EntryCell::get) {
            None => 0,
            Some(below) if below.is_current() => below.span_id,
            Some(_) => return None,
        };
        // From here on, code that interrupts the thread may use the cell.
        compiler_fence(Ordering::SeqCst);
        self.len.set(last);
        compiler_fence(Ordering::SeqCst);
        if cell.span_id() != entry.span_id {
            // The thread was interrupted by code that has used the cell, or has removed entries. If the entry is gone,
            // the slow path does not miss it.
            self.correct_len(last);
            return None;
        }
        Some(Popped { entry, current_span_id })
    }

    /// Returns the id of the current span of `owner`. Returns 0 if the stack is empty. Returns `None` if the last entry
    /// of the stack does not show the result: the entry belongs to another owner, is a duplicate, is hidden, was not
    /// recorded, or lies on the heap; or its span is closed, or has its cell outside of the first block of the slab.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_current(&self, owner: u32) -> Option<u64> {
        let len = self.len.get();
        if len == 0 {
            return Some(0);
        }
        let last = self.inline.get(len - 1)?.get();
        (last.is_current_and_recorded_of(owner) && SPAN_SLAB.try_is_open(last.span_id)).then_some(last.span_id)
    }
}

impl SpanStack {
    pub(in crate::tracing::record) const fn new() -> Self {
        Self {
            len: Cell::new(0),
            is_changing: Mark::new(),
            inline: [const { EntryCell::new() }; INLINE],
            look_at: Cell::new(INLINE),
        }
    }

    /// Adds an entry for a span that the thread enters. Returns true if this span is now the current span. Returns
    /// false if it is not: the entry is a duplicate, or the thread is ending and there is no place for the entry.
    pub(in crate::tracing::record) fn push(
        &self,
        span_id: u64,
        local_id: u64,
        call_site_id: u32,
        owner: u32,
        is_recorded: bool,
    ) -> bool {
        let is_duplicate = self.last_where(|entry| entry.span_id == span_id).is_some();
        let flags = if is_recorded { 0 } else { UNRECORDED } | if is_duplicate { DUPLICATE } else { 0 };
        let tag = u64::from(call_site_id) << 32 | u64::from(owner) | flags;
        self.push_entry(SpanEntry { span_id, local_id, tag }) && !is_duplicate
    }

    /// Adds an entry of a scope that has just been made, so no search for a duplicate is needed. Returns true if the
    /// scope is now the current span.
    pub(in crate::tracing::record) fn push_new_scope_slow(&self, span_id: u64, call_site_id: u32) -> bool {
        self.push_entry(SpanEntry::of_scope(span_id, call_site_id))
    }

    /// Adds an entry. Returns false if there is no place for it.
    fn push_entry(&self, entry: SpanEntry) -> bool {
        if self.len.get() >= self.look_at.get() {
            self.remove_closed();
        }
        self.is_changing.during(|| {
            let len = self.len.get();
            match self.inline.get(len) {
                Some(cell) => {
                    cell.set(entry);
                    self.len.set(len + 1);
                    compiler_fence(Ordering::SeqCst);
                    // Until here, code that interrupts the thread may have used the cell for a span of its own.
                    cell.set(entry);
                }
                // The allocator may record meanwhile, too.
                None if heap::push(entry) => self.len.set(len + 1),
                None => return false,
            }
            true
        })
    }

    /// Frees the memory of the stack. The thread ends.
    pub(in crate::tracing::record) fn end(&self) {
        heap::free();
    }

    /// Removes and returns the last entry of the span that the thread exits. The entry may be anywhere in the stack.
    /// Returns `None` if the stack has no entry of the span.
    pub(in crate::tracing::record) fn pop(&self, local_id: u64, owner: u32) -> Option<SpanEntry> {
        self.is_changing.during(|| self.pop_marked(local_id, owner))
    }

    fn pop_marked(&self, local_id: u64, owner: u32) -> Option<SpanEntry> {
        let len = self.len.get();
        let is_wanted = |entry: &SpanEntry| entry.is(local_id, owner);
        let on_heap = heap::change(|entries| {
            let at = entries.iter().rposition(is_wanted)?;
            Some((INLINE + at, entries.remove(at)))
        });
        let (at, removed) = match on_heap.flatten() {
            Some(found) => found,
            None => {
                let inline = &self.inline[..len.min(INLINE)];
                let at = inline.iter().rposition(|cell| is_wanted(&cell.get()))?;
                let removed = inline[at].get();
                inline.windows(2).skip(at).for_each(|pair| pair[0].set(pair[1].get()));
                if len > INLINE {
                    // The first entry on the heap moves to the last inline cell, which is free now.
                    let first = heap::change(|entries| (!entries.is_empty()).then(|| entries.remove(0)));
                    self.inline[INLINE - 1].set(first.flatten().unwrap_or(SpanEntry::EMPTY));
                }
                (at, removed)
            }
        };
        self.len.set(len - 1);
        if removed.is_hidden() {
            self.hide_below(at, removed);
        }
        Some(removed)
    }

    /// Removes the entries of all closed spans, unless this code has interrupted a change.
    #[cold]
    fn remove_closed(&self) {
        if self.is_changing.is_set() {
            return;
        }
        self.is_changing.during(|| {
            let mut kept = 0;
            for at in 0..self.len.get() {
                let entry = self.get(at);
                if entry.is_open() {
                    self.set(kept, entry);
                    kept += 1;
                } else {
                    self.hide_below(kept, entry);
                }
            }
            self.remove_from(kept);
            self.look_at.set(INLINE.max(2 * kept));
        });
    }

    /// Removes the last entries of the stack, as long as their spans are closed, unless this code has interrupted a
    /// change.
    #[cold]
    fn remove_closed_from_the_end(&self) {
        if self.is_changing.is_set() {
            return;
        }
        self.is_changing.during(|| {
            while let Some(last) = self.len.get().checked_sub(1) {
                let entry = self.get(last);
                if entry.is_open() {
                    break;
                }
                self.remove_from(last);
                self.hide_below(last, entry);
            }
        });
    }

    /// Marks the entry that would be current if the entry `removed` were not at the index `at`.
    fn hide_below(&self, at: usize, removed: SpanEntry) {
        let would_be_current = |entry: &SpanEntry| entry.is_of(removed.owner()) && !entry.is_duplicate();
        let below = (0..at).rev().map(|at| (at, self.get(at))).find(|(_, entry)| would_be_current(entry));
        if let Some((at, entry)) = below.filter(|_| !removed.is_duplicate()) {
            self.set(at, SpanEntry { tag: entry.tag | HIDDEN, ..entry });
        }
    }

    fn get(&self, at: usize) -> SpanEntry {
        match self.inline.get(at) {
            Some(cell) => cell.get(),
            None => heap::look(|entries| entries.get(at - INLINE).copied()).flatten().unwrap_or(SpanEntry::EMPTY),
        }
    }

    fn set(&self, at: usize, entry: SpanEntry) {
        match self.inline.get(at) {
            Some(cell) => cell.set(entry),
            None => {
                heap::change(|entries| entries.get_mut(at - INLINE).map(|place| *place = entry));
            }
        }
    }

    /// Removes the entries from this index on. Empties their cells and the next one: a fast path that was interrupted
    /// sees by the cell that it uses that entries were removed.
    fn remove_from(&self, len: usize) {
        let before = self.len.get();
        self.truncate(len);
        if len < before {
            self.inline.iter().take(before + 1).skip(len).for_each(|cell| cell.set(SpanEntry::EMPTY));
        }
    }

    fn truncate(&self, len: usize) {
        if self.len.replace(len) > INLINE {
            heap::change(|entries| entries.truncate(len.saturating_sub(INLINE)));
        }
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

    /// Returns true if the thread is in an open span of `owner` for which `is_wanted` returns true.
    pub(in crate::tracing::record) fn any_of(&self, owner: u32, is_wanted: impl Fn(&SpanEntry) -> bool) -> bool {
        self.last_where(|entry| entry.is_of(owner) && entry.is_open() && is_wanted(entry)).is_some()
    }

    /// Marks the entries of all scopes as if their begins had not been recorded.
    #[cold]
    pub(in crate::tracing::record) fn forget_begins_of_scopes(&self) {
        self.is_changing.during(|| {
            for at in 0..self.len.get() {
                let entry = self.get(at);
                if entry.is_scope() {
                    self.set(at, SpanEntry { tag: entry.tag | UNRECORDED, ..entry });
                }
            }
        });
    }

    /// Returns the number of entries of the span with this id.
    pub(in crate::tracing::record) fn count(&self, span_id: u64) -> usize {
        (0..self.len.get()).filter(|at| self.get(*at).span_id == span_id).count()
    }

    /// Returns the innermost entry of a scope.
    pub(in crate::tracing::record) fn innermost_scope(&self) -> Option<SpanEntry> {
        self.last_where(SpanEntry::is_scope)
    }

    /// Returns the id of the innermost open span of a call site.
    pub(in crate::tracing::record) fn innermost_of_call_site(&self, call_site_id: u32) -> Option<u64> {
        let is_it = |entry: &SpanEntry| entry.call_site_id() == call_site_id && entry.is_open();
        self.last_where(is_it).map(|entry| entry.span_id)
    }

    /// Returns true if the thread is in the span with this `local_id`.
    pub(in crate::tracing::record) fn has(&self, local_id: u64, owner: u32) -> bool {
        self.last_where(|entry| entry.is(local_id, owner)).is_some()
    }

    /// Returns true if the thread has begun scopes since it entered the span with this `local_id`, which it is in.
    pub(in crate::tracing::record) fn has_scope_above(&self, local_id: u64, owner: u32) -> bool {
        let innermost = self.last_where(|entry| entry.is_scope() || entry.is(local_id, owner));
        innermost.is_some_and(|entry| !entry.is(local_id, owner))
    }

    /// Returns the entry of the current span of `owner`, scopes aside. Returns `None` if there is none.
    pub(in crate::tracing::record) fn current_but_scopes(&self, owner: u32) -> Option<SpanEntry> {
        let innermost = self.last_where(|entry| entry.is_of(owner) && !entry.is_duplicate() && !entry.is_scope());
        innermost.filter(|entry| !entry.is_hidden() && entry.is_open())
    }

    /// Returns the entry of the current span of `owner`. Returns `None` if the thread has no current span of `owner`.
    #[inline(always)]
    pub(in crate::tracing::record) fn current(&self, owner: u32) -> Option<SpanEntry> {
        let innermost = self.last_where(|entry| entry.is_of(owner) && !entry.is_duplicate());
        innermost.filter(|entry| !entry.is_hidden() && entry.is_open())
    }

    /// Returns the innermost entry of `owner` that is no duplicate and not hidden, and whose enter was recorded. The
    /// entry may not be of the thread's current span, because the enter of the current span may not have been recorded.
    /// So the caller must compare the entry's `local_id` with the current span of the registry. Returns `None` if the
    /// span of the entry is closed: the registry may have given its `local_id` to another span.
    #[inline(always)]
    pub(in crate::tracing::record) fn current_and_recorded(&self, owner: u32) -> Option<SpanEntry> {
        self.last_where(|entry| entry.is_current_and_recorded_of(owner)).filter(SpanEntry::is_open)
    }

    /// Returns the id of the current span of `owner`. Returns 0 if the thread has no current span of `owner`.
    #[inline(never)]
    pub(in crate::tracing::record) fn current_of(&self, owner: u32) -> u64 {
        self.remove_closed_from_the_end();
        self.current(owner).map_or(0, |entry| entry.span_id)
    }

    /// Returns the id of the span of the innermost entry that is no duplicate. The span may belong to any subscriber or
    /// layer, and it may be closed. Returns 0 if there is no such entry, or if it is hidden.
    #[inline(always)]
    pub(in crate::tracing::record) fn current_span_id(&self) -> u64 {
        let innermost = self.last_where(|entry| !entry.is_duplicate());
        innermost.filter(|entry| !entry.is_hidden()).map_or(0, |entry| entry.span_id)
    }
}

#[cold]
fn last_on_heap_where(is_wanted: &impl Fn(&SpanEntry) -> bool) -> Option<SpanEntry> {
    heap::look(|entries| entries.iter().rev().find(|entry| is_wanted(entry)).copied()).flatten()
}

#[cfg(test)]
mod tests;
