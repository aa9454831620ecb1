//! An entry of the span stack.

use crate::span_slab::SPAN_SLAB;
use crate::sync::{Ordering, compiler_fence};
use std::cell::Cell;

/// An entry of the span stack: a span that the thread has entered and not yet exited.
///
/// Each field is a whole word. Entries are read as words soon after they are written. If a word were written in
/// several parts, the processor would have to wait for the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tracing::record) struct SpanEntry {
    /// The span's id in the ring.
    pub(in crate::tracing::record) span_id: u64,
    /// The id by which the subscriber or layer knows the span.
    pub(in crate::tracing::record) local_id: u64,
    /// The id of the call site (high half). The number of the owner, [`DUPLICATE`], [`UNRECORDED`] and [`HIDDEN`] (low
    /// half).
    pub(super) tag: u64,
}

/// Bit of an entry's tag: when the thread entered the span, it was in the same span already.
pub(super) const DUPLICATE: u64 = 1 << 31;
/// Bit of an entry's tag: the enter was not recorded, because recording was switched off.
pub(super) const UNRECORDED: u64 = 1 << 30;
/// Bit of an entry's tag: the entry of a closed span was removed above this entry. The thread is still in the closed
/// span, so it has no current span where this entry would be it.
pub(super) const HIDDEN: u64 = 1 << 29;
/// Bits of an entry's tag: the owner, which is the subscriber or layer that the span belongs to.
const OWNER_MASK: u64 = HIDDEN - 1;
/// Bit of an owner: it records to the recorder in `PERF`.
pub(in crate::tracing::record) const OF_PERF: u32 = 1 << 28;
/// Bits of an owner: its number.
pub(in crate::tracing::record) const NUMBER_MASK: u32 = OF_PERF - 1;

/// The owner of the entries of scopes. It sees the entries of all owners that record to `PERF`, and they see its own.
/// So a scope and the spans around and in it are each other's parents, whichever subscriber or layer records them.
pub(in crate::tracing::record) const SCOPES: u32 = OF_PERF;

/// Bit of the `local_id` of a scope's entry. No span of a subscriber has it.
const SCOPE: u64 = 1 << 63;

/// Returns the `local_id` of the entry of a scope.
#[inline(always)]
pub(in crate::tracing::record) const fn scope_local_id(span_id: u64) -> u64 {
    span_id | SCOPE
}

impl SpanEntry {
    /// Returns true for the entry of a scope. (A `Registry` gives any ids, but the spans of layers are known by their
    /// `span_id`.)
    #[inline(always)]
    pub(in crate::tracing::record) fn is_scope(&self) -> bool {
        self.local_id == scope_local_id(self.span_id)
    }

    /// Returns the entry of a scope that is no duplicate, whose begin was recorded.
    #[inline(always)]
    pub(super) fn of_scope(span_id: u64, call_site_id: u32) -> Self {
        let tag = u64::from(call_site_id) << 32 | u64::from(SCOPES);
        Self { span_id, local_id: scope_local_id(span_id), tag }
    }

    pub(super) const EMPTY: Self = Self { span_id: 0, local_id: 0, tag: 0 };

    /// Returns the call site of the span.
    #[inline(always)]
    pub(in crate::tracing::record) fn call_site_id(&self) -> u32 {
        (self.tag >> 32) as u32
    }

    /// Returns true if this is an entry of this span of `owner`.
    #[inline(always)]
    pub(super) fn is(&self, local_id: u64, owner: u32) -> bool {
        self.local_id == local_id && (self.owner() ^ owner) & NUMBER_MASK == 0
    }

    pub(in crate::tracing::record) fn owner(&self) -> u32 {
        (self.tag & OWNER_MASK) as u32
    }

    /// Returns true if `owner` sees the entry: it is its own, or one of both is [`SCOPES`] and both are of `PERF`.
    #[inline(always)]
    pub(super) fn is_of(&self, owner: u32) -> bool {
        let (this, other) = (self.owner(), owner);
        (this ^ other) & NUMBER_MASK == 0 || this & other & OF_PERF != 0 && (this == SCOPES || other == SCOPES)
    }

    /// Returns true if no other entry decides about the current span when this is the last entry: it is no duplicate
    /// of an entry below, and no closed span hides it.
    #[inline(always)]
    pub(super) fn is_current(&self) -> bool {
        self.tag & (DUPLICATE | HIDDEN) == 0
    }

    pub(super) fn is_duplicate(&self) -> bool {
        self.tag & DUPLICATE != 0
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.tag & HIDDEN != 0
    }

    /// Returns true if the span is open.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        SPAN_SLAB.is_open(self.span_id)
    }

    /// Returns true if the entry belongs to `owner` itself, is no duplicate and not hidden, and its enter was recorded.
    /// Then no flag is set, and the low half of the tag equals `owner`. So one comparison is enough.
    #[inline(always)]
    pub(super) fn is_plain_of(&self, owner: u32) -> bool {
        self.tag as u32 == owner
    }

    /// Returns true if `owner` sees the entry, and the entry is no duplicate and not hidden, and its enter was
    /// recorded.
    #[inline(always)]
    pub(super) fn is_current_and_recorded_of(&self, owner: u32) -> bool {
        self.is_plain_of(owner) || self.tag & (DUPLICATE | UNRECORDED | HIDDEN) == 0 && self.is_of(owner)
    }

    /// Returns true if the enter was recorded.
    pub(in crate::tracing::record) fn is_recorded(&self) -> bool {
        self.tag & UNRECORDED == 0
    }
}

/// A [`SpanEntry`] that can be replaced, word by word.
pub(super) struct EntryCell {
    span_id: Cell<u64>,
    local_id: Cell<u64>,
    tag: Cell<u64>,
}

impl EntryCell {
    pub(super) const fn new() -> Self {
        Self { span_id: Cell::new(0), local_id: Cell::new(0), tag: Cell::new(0) }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> SpanEntry {
        SpanEntry { span_id: self.span_id.get(), local_id: self.local_id.get(), tag: self.tag.get() }
    }

    #[inline(always)]
    pub(super) fn span_id(&self) -> u64 {
        self.span_id.get()
    }

    #[inline(always)]
    pub(super) fn set(&self, entry: SpanEntry) {
        self.span_id.set(entry.span_id);
        // Code that interrupts the thread may store an entry of its own in between. Then its `span_id` stays.
        compiler_fence(Ordering::SeqCst);
        self.local_id.set(entry.local_id);
        self.tag.set(entry.tag);
    }
}
