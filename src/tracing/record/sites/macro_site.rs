//! The call sites of this crate's own macros for perf rings: `scope!` and the macros of the module `log`.
//!
//! Such a call site is registered with `tracing`, like the call sites of `tracing`'s macros. So the same filters and
//! filter overrides apply to it, and `tracing` notifies it when a filter changes. But the macros record only to the
//! recorder in [`PERF`]. So only the subscriber or layer that records to [`PERF`] decides. It notes its answer for the
//! call site when `tracing` asks for its interest.

use crate::sync::locked_section::LockedSection;
use crate::sync::{AtomicUsize, Ordering};
use crate::tracing::record::perf_recorder::core::PerfCore;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::sinks::active;
use crate::tracing::record::sinks::owner_filter::{self, Decision};
use crate::tracing::record::sinks::sink::Sink;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use crate::tracing::record::spans::stack::Owner;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use tracing_core::Metadata;
use tracing_core::callsite::{Callsite, register};
use tracing_core::subscriber::Interest;

/// Values of [`MacroSite::state`].
const UNKNOWN: usize = 0;
const OFF: usize = 1;
/// The answer depends on the spans that the thread is in: each time, the subscriber or layer is asked.
const ASK: usize = 2;
const ON: usize = 3;

/// The call site of a macro of this crate. Each use of such a macro has one, in a static.
#[derive(Debug)]
pub struct MacroSite {
    state: AtomicUsize,
    /// The id of the call site, or [`NO_CALL_SITE`] until it is known.
    id: AtomicUsize,
    metadata: &'static Metadata<'static>,
}

/// What a subscriber or layer that records to [`PERF`] says of a call site.
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
    static ANSWER: Cell<usize> = const { Cell::new(0) };
}

/// Bits of [`ANSWER`] that hold the answer.
const ANSWER_BITS: usize = 7;
/// The answer [`Answer::OfStack`] in these bits. The others are those of [`MacroSite::state`].
const OF_STACK: usize = 4;
const _: () = assert!(align_of::<Metadata<'static>>() > ANSWER_BITS && ON < OF_STACK);

/// Returns the answer about a call site, if `tracing` asked about it last.
fn noted(answer: usize, metadata: &'static Metadata<'static>) -> Option<Answer> {
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

fn state_of(interest: &Interest) -> usize {
    match interest {
        interest if interest.is_always() => ON,
        interest if interest.is_sometimes() => ASK,
        _ => OFF,
    }
}

/// Notes a subscriber or layer that comes into use, if it records to [`PERF`]. Returns true if it does.
pub(in crate::tracing::record) fn note_sink(sink: &Sink, owner: &Owner) -> bool {
    let is_of_perf = sink.is_of_perf();
    if is_of_perf {
        owner.set_of_perf();
        owner.counted.count();
    }
    is_of_perf
}

/// Notes what a subscriber or layer answers, if it records to [`PERF`]. Call this whenever `tracing` asks it about a
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

impl MacroSite {
    /// Makes the call site with this description.
    #[must_use]
    pub const fn new(metadata: &'static Metadata<'static>) -> Self {
        Self { state: AtomicUsize::new(UNKNOWN), id: AtomicUsize::new(NO_CALL_SITE as usize), metadata }
    }

    /// Returns true if nothing is to be recorded here. This costs one relaxed load and a branch. The first call
    /// registers the call site, which takes locks.
    #[inline(always)]
    pub fn is_off(&'static self) -> bool {
        // Relaxed: the state publishes no other memory.
        match self.state.load(Ordering::Relaxed) {
            OFF => true,
            UNKNOWN => self.is_off_slow(),
            _ => false,
        }
    }

    #[cold]
    #[inline(never)]
    fn is_off_slow(&'static self) -> bool {
        self.register_once().is_none() || self.state.load(Ordering::Relaxed) == OFF
    }

    /// Registers the call site if nobody has. Returns `None` if it cannot be registered now: in a forked child, where
    /// no lock may be taken, because another thread may have held it at the fork; and inside a locked section.
    fn register_once(&'static self) -> Option<()> {
        if PERF.installed().is_some_and(|recorder| !recorder.belongs_to_this_process()) {
            return None;
        }
        // The registration allocates, and the allocator may come here.
        let _section = LockedSection::enter()?;
        // Of several threads, the first registers the call site. The others ask meanwhile.
        if self.state.compare_exchange(UNKNOWN, ASK, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            active::add_site(self);
            register(self);
        }
        Some(())
    }

    /// Returns the id of the call site, if it is known and everything from here is wanted. Otherwise returns `None`,
    /// and the caller takes the slow path.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_id(&self) -> Option<u32> {
        if self.state.load(Ordering::Relaxed) != ON {
            return None;
        }
        // Acquire, pairs with the release in `learn_id`: the tables have the call site.
        match self.id.load(Ordering::Acquire) as u32 {
            NO_CALL_SITE => None,
            id => Some(id),
        }
    }

    /// Returns the recorder in [`PERF`] and the id of the call site, if this call is to be recorded. The call site is
    /// registered.
    #[cold]
    #[inline(never)]
    pub(in crate::tracing::record) fn wanted_id_slow(&'static self) -> Option<(&'static Arc<PerfCore>, u32)> {
        let core = &PERF.active()?.core;
        if !core.belongs_to_this_process() {
            return None;
        }
        let is_wanted = match self.state.load(Ordering::Relaxed) {
            ON => true,
            ASK => !active::are_there() || owner_filter::wants(self.metadata),
            _ => false,
        };
        is_wanted.then(|| (core, self.learn_id(core)))
    }

    fn learn_id(&self, core: &PerfCore) -> u32 {
        let id = core.call_site_id(self.metadata);
        // Release, pairs with the acquire in `try_id`: the tables of all recorders have the call site already.
        self.id.store(id as usize, Ordering::Release);
        id
    }

    /// Notes that no subscriber or layer decides any more.
    pub(in crate::tracing::record) fn follow_nobody(&self) {
        self.state.store(if PERF.active().is_some() { ON } else { OFF }, Ordering::Relaxed);
    }

    /// Returns the state that follows from the answer of all subscribers, and from the one that a sink has noted
    /// meanwhile. Returns `None` if no sink was asked.
    fn answered(&self, of_all: &Interest) -> Option<usize> {
        Some(match noted(ANSWER.replace(0), self.metadata)? {
            _ if of_all.is_never() => OFF,
            Answer::Own(state) => state,
            Answer::OfStack => state_of(of_all),
        })
    }

    /// Returns the state where `tracing` has asked no sink: a filter around it has answered, or the thread has no
    /// subscriber. `tracing` asks that of the thread alone if there is just one.
    fn decided(&self) -> usize {
        match owner_filter::interest(self.metadata) {
            Decision::Of(interest) => self.answered(&interest).unwrap_or(OFF),
            Decision::OfEachThread => ASK,
            Decision::OfThisThread => OFF,
        }
    }

    /// Returns the description.
    #[must_use]
    pub fn metadata(&self) -> &'static Metadata<'static> {
        self.metadata
    }
}

impl Callsite for MacroSite {
    /// `tracing` calls this after it has asked all subscribers, whenever a filter, a filter override or the recorder
    /// changes.
    fn set_interest(&self, of_all: Interest) {
        let answered = self.answered(&of_all);
        if !active::are_there() || PERF.active().is_none() {
            return self.follow_nobody();
        }
        self.state.store(answered.unwrap_or_else(|| self.decided()), Ordering::Relaxed);
    }

    fn metadata(&self) -> &Metadata<'_> {
        self.metadata
    }
}

/// Returns the name of a field: a raw identifier without its mark, as in `tracing`.
#[must_use]
pub const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Makes the call site of a macro: an expression that is a `&'static MacroSite`.
#[doc(hidden)]
#[macro_export]
macro_rules! __macro_site {
    ($kind:ident, name: $name:expr, target: $target:expr, level: $level:expr, fields: $fields:expr) => {{
        static __EVENTRING_METADATA: $crate::__private::Metadata<'static> = $crate::__private::Metadata::new(
            $name,
            $target,
            $level,
            ::core::option::Option::Some(::core::file!()),
            ::core::option::Option::Some(::core::line!()),
            ::core::option::Option::Some(::core::module_path!()),
            $crate::__private::FieldSet::new($fields, $crate::__private::Identifier(&__EVENTRING_SITE)),
            $crate::__private::Kind::$kind,
        );
        static __EVENTRING_SITE: $crate::__private::MacroSite =
            $crate::__private::MacroSite::new(&__EVENTRING_METADATA);
        &__EVENTRING_SITE
    }};
}
