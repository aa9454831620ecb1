//! The open spans.

use crate::core::LiveProcess;
use crate::core::tabled::Tabled;
use crate::state::LiveState;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::{CallSite, IdMap, OpenSlice, Span, SpanId, SpanReplay, Thread, ThreadKey, TimeSpent};
use eventring_capture::condition::LiveFields;
use eventring_capture::recording::{RecordedProgram, TabledSpan, is_certainly_open};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fields of an open span. They may have been read when somebody asked for them.
#[derive(Clone, Debug)]
pub struct OpenFields<'a> {
    bytes: Cow<'a, [u8]>,
    pub(crate) call_site: Option<&'a CallSite>,
    are_missing: bool,
}

impl OpenFields<'_> {
    /// Returns the fields that are known.
    #[must_use]
    pub fn known(&self) -> LiveFields<'_> {
        LiveFields::new(&self.bytes, self.call_site)
    }

    /// Returns true if others are not known.
    #[must_use]
    pub fn are_missing(&self) -> bool {
        self.are_missing
    }
}

/// The open spans of all programs. A span counts as open if its close was not seen.
#[derive(Clone, Debug)]
pub struct OpenSpans<'s> {
    state: LiveState<'s>,
    /// For each process, the spans that threads are certainly in.
    entered: Vec<IdMap<SpanId, EnteredSpan>>,
}

/// The open spans of all programs, as they lie in memory. There may be a million, so each is made when somebody asks for
/// it.
#[derive(Debug)]
pub struct OpenList<'s> {
    open: OpenSpans<'s>,
    /// For each of the tables, the number of spans in it and those before.
    until: Vec<usize>,
    /// The spans of replays, each with its process, oldest first.
    replayed: Vec<(usize, &'s Span)>,
}

impl<'s> OpenList<'s> {
    /// Returns the number of spans.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.of_tables() + self.replayed.len()
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn of_tables(&self) -> usize {
        self.until.last().copied().unwrap_or(0)
    }

    /// Returns the span at this place, from 0 to [`Self::len`].
    #[must_use]
    #[inline]
    pub fn get(&self, at: usize) -> OpenSpan<'s> {
        let state = self.open.state;
        for (of, until) in state.core.tabled.iter().flatten().zip(&self.until) {
            if at < *until {
                let source = Source::Tables(of, &of.spans.spans()[at + of.spans.spans().len() - until]);
                return OpenSpan { state, process_index: of.process, source };
            }
        }
        let (process, span) = self.replayed[at - self.of_tables()];
        self.open.replayed(process, span)
    }

    /// Returns the places of the spans, oldest first, each with the time of its begin, in nanoseconds since the epoch.
    #[must_use]
    pub fn order(&self) -> Vec<(u64, u32)> {
        let tables = self.open.state.core.tabled.iter().flatten();
        let begun = tables.flat_map(|of| of.spans.spans()).map(|span| u128::from(span.begun_epoch_nanos));
        let mut keys: Vec<u128> = begun.zip(0..).map(|(nanos, at)| nanos << 32 | at).collect();
        keys.sort_unstable();
        // Those of replays are in order.
        let replayed = self.replayed.iter().map(|(_, span)| span.start_epoch_nanos()).zip(self.of_tables() as u32..);
        keys.into_iter().map(|key| ((key >> 32) as u64, key as u32)).chain(replayed).collect()
    }

    /// Returns the spans, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = OpenSpan<'s>> {
        self.order().into_iter().map(|(_, at)| self.get(at as usize))
    }

    /// Returns, for each span, the place of its parent, or its own place if its parent is not open.
    #[must_use]
    pub fn parents(&self) -> Vec<u32> {
        let ids = self.replayed.iter().map(|(process, span)| (*process, span.id));
        let places: IdMap<(usize, SpanId), u32> = ids.zip(self.of_tables() as u32..).collect();
        let core = self.open.state.core;
        let parent = |at: usize| {
            let span = self.get(at);
            match span.source {
                Source::Replay(..) => places.get(&(span.process_index, span.open_parent()?)).copied(),
                Source::Tables(_, of) if of.parent == 0 => None,
                Source::Tables(_, of) => {
                    let (index, place) = core.place_of(span.process_index, of.parent)?;
                    let before = (index as usize).checked_sub(1).map_or(0, |before| self.until[before]);
                    Some(before as u32 + place)
                }
            }
        };
        (0..self.len()).map(|at| parent(at).unwrap_or(at as u32)).collect()
    }
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
    pub(crate) fn new(state: LiveState<'s>) -> Self {
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

    /// Returns the list of the spans.
    #[must_use]
    pub fn list(self) -> OpenList<'s> {
        let core = self.state.core;
        let mut until: Vec<usize> = Vec::new();
        for of in core.tabled.iter().flatten() {
            until.push(until.last().unwrap_or(&0) + of.spans.spans().len());
        }
        let mut replayed: Vec<(usize, &Span)> = Vec::new();
        for (index, process) in core.processes.iter().enumerate() {
            replayed.extend(process.order.iter().filter_map(|id| Some((index, self.span(index, id)?))));
        }
        // An id is in the order twice if a span was given up and then seen again.
        replayed.sort_by_key(|(process, span)| (span.start_epoch_nanos(), span.number, *process));
        replayed.dedup_by_key(|(process, span)| (*process, span.number));
        OpenList { open: self, until, replayed }
    }

    /// Returns the spans, oldest first.
    #[must_use]
    pub fn to_vec(&self) -> Vec<OpenSpan<'s>> {
        self.clone().list().iter().collect()
    }

    /// Returns the number of open spans.
    #[must_use]
    pub fn count(&self) -> usize {
        self.clone().list().len()
    }

    pub(crate) fn get(&self, process: usize, id: SpanId) -> Option<OpenSpan<'s>> {
        if let Some(source) = Source::of_tables(self.state, process, id) {
            return Some(OpenSpan { state: self.state, process_index: process, source });
        }
        Some(self.replayed(process, self.span(process, id)?))
    }

    /// Returns an open span of a replay.
    fn span(&self, process: usize, id: SpanId) -> Option<&'s Span> {
        let replay = &self.state.replayed.replays[process];
        replay.get(id).filter(|span| is_certainly_open(replay, span))
    }

    fn replayed(&self, process_index: usize, span: &'s Span) -> OpenSpan<'s> {
        let entered = self.entered[process_index].get(&span.id).copied();
        OpenSpan { state: self.state, process_index, source: Source::Replay(span, entered) }
    }
}

/// Returns the open slices whose exit cannot have been lost.
fn certain_slices(replay: &SpanReplay, now_nanos: u64) -> impl Iterator<Item = &OpenSlice> {
    replay.open_slices().filter(move |slice| !replay.may_have_ended(slice, now_nanos))
}

impl<'s> LiveState<'s> {
    /// Returns the open spans.
    #[must_use]
    pub fn open_spans(&self) -> OpenSpans<'s> {
        OpenSpans::new(*self)
    }

    /// Calls `f` with each open span that has reached the age `age_nanos` after `since_epoch_nanos`, and has it now. A
    /// watch calls this at each tick, with the time of the tick before: then it gets each span once. The call costs
    /// little, however many spans are open.
    pub fn each_grown_older(&self, age_nanos: u64, since_epoch_nanos: u64, mut f: impl FnMut(&OpenSpan<'s>)) {
        let until = self.now_epoch_nanos().checked_sub(age_nanos);
        let Some(until) = until else { return };
        let after = since_epoch_nanos.saturating_sub(age_nanos);
        let mut open = None;
        for (index, process) in self.core.processes.iter().enumerate() {
            // A program that has ended grows no older.
            let until = process.now_nanos(self.replayed.now_nanos).saturating_sub(age_nanos).min(until);
            let of_tables = self.core.tabled.iter().flatten().filter(|of| of.process == index);
            let of_tables = of_tables.flat_map(|of| of.spans.spans());
            let of_tables = of_tables.filter(|span| after < span.begun_epoch_nanos && span.begun_epoch_nanos <= until);
            for id in process.order.between(after, until).chain(of_tables.map(|span| span.id)) {
                let open: &mut OpenSpans<'s> = open.get_or_insert_with(|| self.open_spans());
                if let Some(span) = open.get(index, id) {
                    f(&span);
                }
            }
        }
    }
}

/// An open span.
#[derive(Clone, Copy)]
pub struct OpenSpan<'s> {
    state: LiveState<'s>,
    pub(crate) process_index: usize,
    source: Source<'s>,
}

/// What shows an open span.
#[derive(Clone, Copy)]
enum Source<'s> {
    Replay(&'s Span, Option<EnteredSpan>),
    Tables(&'s Tabled, &'s TabledSpan),
}

impl<'s> Source<'s> {
    fn of_tables(state: LiveState<'s>, process: usize, id: SpanId) -> Option<Self> {
        let (tables, place) = state.core.place_of(process, id.get())?;
        let of = state.core.tabled.as_deref()?.get(tables as usize)?;
        Some(Self::Tables(of, of.spans.spans().get(place as usize)?))
    }
}

impl<'s> OpenSpan<'s> {
    /// Returns the id. It tells the span from others of its program.
    #[must_use]
    #[inline]
    pub fn id(&self) -> SpanId {
        match self.source {
            Source::Replay(span, _) => span.id,
            Source::Tables(_, span) => span.id,
        }
    }

    /// Returns the span, with its times, its parent and its call site, if a replay shows it, and not tables. It has no
    /// slices, and its `fields` are empty: [`Self::fields`] returns them.
    #[must_use]
    pub fn span(&self) -> Option<&'s Span> {
        match self.source {
            Source::Replay(span, _) => Some(span),
            Source::Tables(..) => None,
        }
    }

    /// Returns the name; `span N` if it is not known, where N is the id.
    #[must_use]
    pub fn name(&self) -> Cow<'s, str> {
        match self.source {
            Source::Replay(span, _) => span_name(span),
            Source::Tables(of, span) => match self.call_site() {
                Some(call_site) => Cow::Borrowed(&call_site.name),
                None => of.catalog(self.state.replayed.tables).call_site(span.call_site_id).name.clone().into(),
            },
        }
    }

    /// Returns the call site, if it is known.
    #[must_use]
    #[inline]
    pub fn call_site(&self) -> Option<&'s CallSite> {
        match self.source {
            Source::Replay(span, _) => span.call_site.as_deref(),
            Source::Tables(of, span) => of.call_site(span, self.state.replayed.tables),
        }
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

    #[inline]
    fn start_epoch_nanos(&self) -> u64 {
        match self.source {
            Source::Replay(span, _) => span.start_epoch_nanos(),
            Source::Tables(_, span) => span.begun_epoch_nanos,
        }
    }

    /// Returns the age in nanoseconds. If the span was opened before the window, it is older: this is the time since it
    /// was first seen. The age of a span of a program that has ended counts to the program's last sign of life: it is
    /// at least this, and at most [`Self::age_max_nanos`].
    #[must_use]
    #[inline]
    pub fn age_nanos(&self) -> u64 {
        self.age_since(self.start_epoch_nanos())
    }

    /// Returns the age that a span of the program has if it began at this time.
    #[must_use]
    #[inline]
    pub fn age_since(&self, epoch_nanos: u64) -> u64 {
        self.process().now_nanos(self.state.replayed.now_nanos).saturating_sub(epoch_nanos)
    }

    /// Returns the age that the span has at most, in nanoseconds, if its program has ended: nobody knows the moment of
    /// the end. Returns `None` while the program lives.
    #[must_use]
    #[inline]
    pub fn age_max_nanos(&self) -> Option<u64> {
        let end = self.process().end()?;
        Some(end.before_epoch_nanos.saturating_sub(self.start_epoch_nanos()))
    }

    /// Returns true if the beginning of the span was not seen, because it was overwritten or lost.
    #[must_use]
    #[inline]
    pub fn is_opened_before_window(&self) -> bool {
        self.span().is_some_and(|span| span.created.is_none())
    }

    /// Returns true if the span may have been closed: events were lost after it was last seen, and no thread is
    /// certainly in it.
    #[must_use]
    #[inline]
    pub fn may_have_closed(&self) -> bool {
        match self.source {
            Source::Replay(span, entered) => self.replay().may_have_closed(span, entered.is_some()),
            Source::Tables(..) => false,
        }
    }

    /// Returns true if a thread is certainly in the span now.
    #[must_use]
    #[inline]
    pub fn is_entered(&self) -> bool {
        self.thread_key().is_some()
    }

    #[inline]
    fn thread_key(&self) -> Option<ThreadKey> {
        match self.source {
            Source::Replay(_, entered) => entered.map(|entered| entered.thread),
            Source::Tables(of, span) => {
                let key = ThreadKey { recorder: of.recorder, thread_id: span.thread_id };
                (span.thread_id > 0).then_some(key)
            }
        }
    }

    /// Returns how threads have spent the time in the span so far, if any of it was measured. What they did after their
    /// last events is not known.
    #[must_use]
    pub fn times(&self) -> Option<TimeSpent> {
        let now_nanos = self.process().now_nanos(self.state.replayed.now_nanos);
        self.replay().times_until(self.id(), now_nanos)
    }

    /// Returns the thread that is in the span now; of several threads, the one that entered it last. Returns `None` if
    /// no thread is, or if it is not certain: a span of a task that is not polled is in no thread.
    #[must_use]
    pub fn thread(&self) -> Option<Arc<Thread>> {
        self.state.replayed.tables.thread(self.thread_key()?)
    }

    /// Returns all threads that are certainly in the span now, in the order in which they entered it.
    #[must_use]
    pub fn threads(&self) -> Vec<Arc<Thread>> {
        let Source::Replay(span, Some(EnteredSpan { has_others: true, .. })) = self.source else {
            return self.thread().into_iter().collect();
        };
        let slices = certain_slices(self.replay(), self.state.replayed.now_nanos);
        let mut last: BTreeMap<ThreadKey, u64> = BTreeMap::new();
        // The innermost slice of a thread comes last.
        last.extend(slices.filter(|slice| slice.span == span.id).map(|slice| (slice.thread, slice.id)));
        let mut threads: Vec<(u64, ThreadKey)> = last.into_iter().map(|(thread, slice)| (slice, thread)).collect();
        threads.sort_unstable();
        threads.into_iter().filter_map(|(_, thread)| self.state.replayed.tables.thread(thread)).collect()
    }

    /// Returns the parent, if it is open.
    #[must_use]
    pub fn open_parent(&self) -> Option<SpanId> {
        self.parent().filter(|parent| self.other(*parent).is_some_and(|parent| parent.is_open()))
    }

    fn parent(&self) -> Option<SpanId> {
        match self.source {
            Source::Replay(span, _) => span.parent,
            Source::Tables(_, span) => SpanId::new(span.parent),
        }
    }

    /// Returns the ids of the span's ancestors, nearest first. The first one that is not open is the last one: what was
    /// around it is not known any more. In a damaged ring a span can be its own ancestor, so there are at most 1,000.
    pub fn ancestors(&self) -> impl Iterator<Item = SpanId> {
        // A closed span stays in the replay for some milliseconds.
        let parent = |id: &SpanId| self.other(*id).filter(Self::is_open)?.parent();
        std::iter::successors(self.parent(), parent).take(1000)
    }

    /// Returns the names of the span's ancestors, as [`Self::ancestors`] returns their ids. A name that is not known is
    /// `span N`.
    pub fn ancestor_names(&self) -> impl Iterator<Item = Cow<'s, str>> {
        self.ancestors().map(|id| self.other(id).map_or_else(|| format!("span {id}").into(), |span| span.name()))
    }

    /// Returns a span of the same program, if it is known: it may be closed.
    fn other(&self, id: SpanId) -> Option<Self> {
        let source = match self.source {
            Source::Replay(..) => Source::Replay(self.replay().get(id)?, None),
            Source::Tables(..) => Source::of_tables(self.state, self.process_index, id)?,
        };
        Some(Self { source, ..*self })
    }

    fn is_open(&self) -> bool {
        self.span().is_none_or(Span::is_open)
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> OpenFields<'s> {
        let (bytes, are_missing) = match self.source {
            Source::Replay(span, _) => {
                (span.raw_fields().into(), span.fields.missing > 0 || span.fields.problem.is_some())
            }
            Source::Tables(of, span) => {
                let (bytes, missing) = of.spans.fields_of(span);
                (bytes, missing > 0)
            }
        };
        OpenFields { bytes, call_site: self.call_site(), are_missing }
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'s RecordedProgram {
        &self.state.programs()[self.process_index]
    }

    /// Returns the index of the program in [`LiveState::programs`].
    #[must_use]
    #[inline]
    pub fn program_index(&self) -> usize {
        self.process_index
    }

    #[inline]
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

/// Returns the name of a span; `span N` if it is not known.
pub(crate) fn span_name(span: &Span) -> Cow<'_, str> {
    match &span.call_site {
        Some(call_site) => Cow::Borrowed(&call_site.name),
        None => Cow::Owned(span.name()),
    }
}
