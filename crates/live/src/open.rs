//! The open spans.

use super::core::LiveProcess;
use super::fields::LiveFields;
use super::observation::span_name;
use super::state::LiveState;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::{CallSite, IdMap, OpenSlice, Span, SpanId, SpanReplay, Thread, ThreadKey};
use eventring_capture::recording::{RecordedProgram, is_certainly_open};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The open spans of all programs. A span counts as open if its close was not seen.
#[derive(Debug)]
pub struct OpenSpans<'s> {
    state: LiveState<'s>,
    /// For each process, the spans that threads are certainly in.
    entered: Vec<IdMap<SpanId, EnteredSpan>>,
}

/// A span that threads are in.
#[derive(Clone, Copy, Debug)]
struct EnteredSpan {
    /// The slice of the thread that entered it last.
    last_slice: u64,
    thread: ThreadKey,
    /// True if another slice of the span is open: of another thread, or of the same one.
    has_others: bool,
}

impl<'s> OpenSpans<'s> {
    pub(super) fn new(state: LiveState<'s>) -> Self {
        let now_nanos = state.replayed.now_nanos;
        let entered = |replay: &'s SpanReplay| {
            let mut entered: IdMap<SpanId, EnteredSpan> = IdMap::default();
            for slice in certain_slices(replay, now_nanos) {
                let last = EnteredSpan { last_slice: slice.id, thread: slice.thread, has_others: false };
                let known = entered.entry(slice.span).or_insert(last);
                known.has_others |= known.last_slice != slice.id;
                if slice.id > known.last_slice {
                    (known.last_slice, known.thread) = (slice.id, slice.thread);
                }
            }
            entered
        };
        Self { state, entered: state.replayed.replays.iter().map(entered).collect() }
    }

    /// Returns the spans, oldest first.
    #[must_use]
    pub fn to_vec(&self) -> Vec<OpenSpan<'s>> {
        let mut spans: Vec<OpenSpan<'s>> = Vec::new();
        for (index, process) in self.state.core.processes.iter().enumerate() {
            spans.extend(process.order.iter().filter_map(|id| self.get(index, id)));
        }
        // An id is in the order twice if a span was given up and then seen again.
        spans.sort_by_key(|span| (span.span.start_epoch_nanos(), span.span.number, span.process_index));
        spans.dedup_by_key(|span| (span.process_index, span.span.number));
        spans
    }

    /// Returns the number of open spans.
    #[must_use]
    pub fn count(&self) -> usize {
        self.to_vec().len()
    }

    pub(super) fn get(&self, process_index: usize, id: SpanId) -> Option<OpenSpan<'s>> {
        let replay = &self.state.replayed.replays[process_index];
        let span = replay.get(id).filter(|span| is_certainly_open(replay, span))?;
        let entered = self.entered[process_index].get(&id).copied();
        Some(OpenSpan { state: self.state, span, process_index, entered })
    }
}

/// Returns the open slices whose exit cannot have been lost.
fn certain_slices(replay: &SpanReplay, now_nanos: u64) -> impl Iterator<Item = &OpenSlice> {
    replay.open_slices().filter(move |slice| !replay.may_have_ended(slice, now_nanos))
}

/// An open span.
#[derive(Clone, Copy)]
pub struct OpenSpan<'s> {
    state: LiveState<'s>,
    span: &'s Span,
    pub(crate) process_index: usize,
    entered: Option<EnteredSpan>,
}

impl<'s> OpenSpan<'s> {
    /// Returns the id. It tells the span from others of its program.
    #[must_use]
    pub fn id(&self) -> SpanId {
        self.span.id
    }

    /// Returns the span, with its times, its parent and its call site. It has no slices, and its `fields` are empty:
    /// [`Self::fields`] returns them.
    #[must_use]
    pub fn span(&self) -> &'s Span {
        self.span
    }

    /// Returns the name; `span N` if it is not known, where N is the id.
    #[must_use]
    pub fn name(&self) -> Cow<'s, str> {
        span_name(self.span)
    }

    /// Returns the call site, if it is known.
    #[must_use]
    pub fn call_site(&self) -> Option<&'s CallSite> {
        self.span.call_site.as_deref()
    }

    /// Returns the target; empty if it is not known.
    #[must_use]
    pub fn target(&self) -> &'s str {
        self.call_site().map_or("", |call_site| &call_site.target)
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> CallSiteLevel {
        self.call_site().map_or(CallSiteLevel::None, |call_site| call_site.level)
    }

    /// Returns the age in nanoseconds. If the span was opened before the window, it is older: this is the time since it
    /// was first seen. The age of a span of a program that has ended counts to the program's last sign of life: it is
    /// at least this, and at most [`Self::age_max_nanos`].
    #[must_use]
    pub fn age_nanos(&self) -> u64 {
        let now_nanos = self.process().now_nanos(self.state.replayed.now_nanos);
        now_nanos.saturating_sub(self.span.start_epoch_nanos())
    }

    /// Returns the age that the span has at most, in nanoseconds, if its program has ended: nobody knows the moment of
    /// the end. Returns `None` while the program lives.
    #[must_use]
    pub fn age_max_nanos(&self) -> Option<u64> {
        let end = self.process().end()?;
        Some(end.before_epoch_nanos.saturating_sub(self.span.start_epoch_nanos()))
    }

    /// Returns true if the beginning of the span was not seen, because it was overwritten or lost.
    #[must_use]
    pub fn is_opened_before_window(&self) -> bool {
        self.span.created.is_none()
    }

    /// Returns true if the span may have been closed: events were lost after it was last seen, and no thread is
    /// certainly in it.
    #[must_use]
    pub fn may_have_closed(&self) -> bool {
        self.replay().may_have_closed(self.span, self.entered.is_some())
    }

    /// Returns the thread that is in the span now; of several threads, the one that entered it last. Returns `None` if
    /// no thread is, or if it is not certain: a span of a task that is not polled is in no thread.
    #[must_use]
    pub fn thread(&self) -> Option<Arc<Thread>> {
        self.state.replayed.tables.thread(self.entered?.thread)
    }

    /// Returns all threads that are certainly in the span now, in the order in which they entered it.
    #[must_use]
    pub fn threads(&self) -> Vec<Arc<Thread>> {
        if !self.entered.is_some_and(|entered| entered.has_others) {
            return self.thread().into_iter().collect();
        }
        let slices = certain_slices(self.replay(), self.state.replayed.now_nanos);
        let mut last: BTreeMap<ThreadKey, u64> = BTreeMap::new();
        // The innermost slice of a thread comes last.
        last.extend(slices.filter(|slice| slice.span == self.span.id).map(|slice| (slice.thread, slice.id)));
        let mut threads: Vec<(u64, ThreadKey)> = last.into_iter().map(|(thread, slice)| (slice, thread)).collect();
        threads.sort_unstable();
        threads.into_iter().filter_map(|(_, thread)| self.state.replayed.tables.thread(thread)).collect()
    }

    /// Returns the parent, if it is open.
    #[must_use]
    pub fn open_parent(&self) -> Option<SpanId> {
        self.span.parent.filter(|parent| self.replay().get(*parent).is_some_and(Span::is_open))
    }

    /// Returns the ids of the span's ancestors, nearest first. The first one that is not open is the last one: what was
    /// around it is not known any more. In a damaged ring a span can be its own ancestor, so there are at most 1,000.
    pub fn ancestors(&self) -> impl Iterator<Item = SpanId> {
        let replay = self.replay();
        // A closed span stays in the replay for some milliseconds.
        let parent = |id: &SpanId| replay.get(*id).filter(|span| span.is_open())?.parent;
        std::iter::successors(self.span.parent, parent).take(1000)
    }

    /// Returns the names of the span's ancestors, as [`Self::ancestors`] returns their ids. A name that is not known is
    /// `span N`.
    pub fn ancestor_names(&self) -> impl Iterator<Item = Cow<'s, str>> {
        let replay = self.replay();
        self.ancestors().map(move |id| replay.get(id).map_or_else(|| format!("span {id}").into(), span_name))
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> LiveFields<'s> {
        LiveFields::new(self.span.raw_fields(), self.call_site())
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'s RecordedProgram {
        &self.state.programs()[self.process_index]
    }

    /// Returns the index of the program in [`LiveState::programs`].
    #[must_use]
    pub fn program_index(&self) -> usize {
        self.process_index
    }

    fn process(&self) -> &'s LiveProcess {
        &self.state.core.processes[self.process_index]
    }

    fn replay(&self) -> &'s SpanReplay {
        &self.state.replayed.replays[self.process_index]
    }
}

impl std::fmt::Debug for OpenSpan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSpan").field("id", &self.id()).field("name", &self.name()).finish_non_exhaustive()
    }
}
