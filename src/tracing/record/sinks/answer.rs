//! The answers of subscribers and layers that record to [`PERF`](crate::tracing::PERF), whether they want a call site.

use super::owner::Owner;
use super::sink::Sink;
use crate::tracing::record::macro_sites::site::{ASK, OFF, ON};
use std::cell::Cell;
use std::ptr;
use tracing_core::Metadata;
use tracing_core::subscriber::Interest;

/// What a subscriber or layer that records to `PERF` says of a call site.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tracing::record) enum Answer {
    /// The answer of a subscriber, or of a layer with a filter of its own.
    Own(usize),
    /// A layer without a filter of its own has been asked. A filter of others around the layer may still say something
    /// else, so the answer of the whole stack counts.
    OfStack,
}

thread_local! {
    /// The call site that `tracing` asked about last on this thread, by the address of its metadata, and the answer. It
    /// is one word: the answer is in the bits that are 0 in the address.
    pub(in crate::tracing::record) static ANSWER: Cell<usize> = const { Cell::new(0) };
}

/// Bits of [`ANSWER`] that hold the answer.
const ANSWER_BITS: usize = 7;
/// The answer [`Answer::OfStack`] in these bits. The others are those of `MacroSite::state`.
const OF_STACK: usize = 4;
const _: () = assert!(align_of::<Metadata<'static>>() > ANSWER_BITS && ON < OF_STACK);

/// Returns the answer about a call site, if `tracing` asked about it last.
pub(in crate::tracing::record) fn noted(answer: usize, metadata: &'static Metadata<'static>) -> Option<Answer> {
    match answer.wrapping_sub(ptr::from_ref(metadata).addr()) {
        OF_STACK => Some(Answer::OfStack),
        state @ (OFF | ASK | ON) => Some(Answer::Own(state)),
        _ => None,
    }
}

impl Answer {
    /// Returns the answer of a subscriber or layer whose own filter has this interest.
    pub(in crate::tracing::record) fn from_interest(interest: &Interest) -> Self {
        Self::Own(state_of(interest))
    }
}

pub(in crate::tracing::record) fn state_of(interest: &Interest) -> usize {
    match interest {
        interest if interest.is_always() => ON,
        interest if interest.is_sometimes() => ASK,
        _ => OFF,
    }
}

/// Notes a subscriber or layer that comes into use, if it records to `PERF`. Returns true if it does.
pub(in crate::tracing::record) fn note_sink(sink: &Sink, owner: &Owner) -> bool {
    let is_of_perf = sink.is_of_perf();
    if is_of_perf {
        owner.set_of_perf();
        owner.counted.count();
    }
    is_of_perf
}

/// Notes what a subscriber or layer answers, if it records to `PERF`. Call this whenever `tracing` asks it about a
/// call site.
pub(in crate::tracing::record) fn note(
    sink: &Sink,
    owner: &Owner,
    metadata: &'static Metadata<'static>,
    answer: Answer,
) {
    if !note_sink(sink, owner) {
        return;
    }
    let all = match (noted(ANSWER.get(), metadata), answer) {
        // Each decides on the threads that use it.
        (Some(Answer::Own(other)), Answer::Own(this)) if other != this => Answer::Own(ASK),
        (Some(Answer::OfStack), _) => Answer::OfStack,
        _ => answer,
    };
    let bits = match all {
        Answer::OfStack => OF_STACK,
        Answer::Own(state) => state,
    };
    ANSWER.set(ptr::from_ref(metadata).addr() + bits);
}
