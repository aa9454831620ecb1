//! The kernel's data as a part of a replay: the states of threads, with the spans that they were in.

use super::{CodeStacks, KernelRing, KernelView, Said, ThreadOwners};
use eventring::reader::{Gap, GapCause};
use eventring::tracing::{CallSite, SpanId, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayPart, ReplayParts, ReplayState};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of spans around a span that are kept: the inner ones.
const DEPTH_MAX: usize = 256;

/// The span that a thread was in, with those around it. It outlives the span, because the kernel's events come later.
#[derive(PartialEq, Eq, Debug)]
pub struct SpanPlace {
    /// The index of the process.
    pub process_index: usize,
    /// The span and those around it, the innermost first, with their call sites; `None` for one that was lost.
    pub spans: Box<[(SpanId, Option<Arc<CallSite>>)]>,
}

/// What is known about threads and stacks at the end of a recording.
#[derive(Debug, Default)]
pub struct KernelNames {
    /// The stacks, with their names; `None` if nobody has asked for them.
    pub code: Option<CodeStacks>,
    /// The threads, as the system numbers them.
    pub owners: ThreadOwners,
    /// The process that the recording is about; `None` if it does not say it.
    pub main_process: Option<u32>,
}

/// What a consumer wants to know of the kernel beside the times of threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelWanted {
    /// The spans that threads were in: times are divided where a thread enters or leaves a span.
    pub spans: bool,
    /// The stacks of the program.
    pub code: bool,
}

/// The part of a replay that joins what the kernel says with the spans of threads.
#[derive(Debug)]
pub struct KernelPart {
    wanted: KernelWanted,
    /// True if there are rings of the kernel.
    has_rings: bool,
    /// The number of rings of which that is known.
    rings_seen: usize,
    view: KernelView,
    /// What follows from the last entry.
    said: Vec<Said>,
    /// The kind of the last entry's ring.
    ring: Option<KernelRing>,
    /// The id of the first slice after the last loss, for each thread that may have recorded lost events. Exits of
    /// earlier slices may be lost.
    first_counted: HashMap<ThreadKey, u64>,
    /// The places of open spans that threads have entered.
    places: HashMap<(usize, SpanId), Arc<SpanPlace>>,
    /// The names at the end; `None` before it.
    names: Option<Arc<KernelNames>>,
}

impl KernelPart {
    /// Asks for the part.
    pub fn ask(wanted: KernelWanted, parts: &mut ReplayParts) {
        let known = parts.get::<Self>().map(|known| known.wanted);
        let KernelWanted { spans, code } = known.unwrap_or_default();
        let (spans, code) = (spans || wanted.spans, code || wanted.code);
        let wanted = KernelWanted { spans, code };
        if known == Some(wanted) {
            return;
        }
        parts.set(Self {
            wanted,
            has_rings: false,
            rings_seen: 0,
            view: KernelView::new(code),
            said: Vec::new(),
            ring: None,
            first_counted: HashMap::new(),
            places: HashMap::new(),
            names: None,
        });
    }

    /// Returns what follows from the last entry: what threads did until it, or a sample. After the end, this is what they
    /// did until the end.
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// Returns the kind of the ring of the last entry, if it is the kernel's.
    #[must_use]
    pub fn ring(&self) -> Option<KernelRing> {
        self.ring
    }

    /// Returns what is known so far.
    #[must_use]
    pub fn view(&self) -> &KernelView {
        &self.view
    }

    /// Returns the names of threads and functions. They are known at the end.
    #[must_use]
    pub fn names(&self) -> Option<Arc<KernelNames>> {
        self.names.clone()
    }

    /// Returns true if there are rings of the kernel. Until they come nothing is kept, and then threads are in the spans
    /// of that moment.
    fn has_rings(&mut self, state: ReplayState<'_>) -> bool {
        let rings = &state.tables.rings;
        if !self.has_rings && self.rings_seen != rings.count() {
            self.rings_seen = rings.count();
            self.has_rings = KernelRing::are_in(rings);
            let replays = if self.has_rings && self.wanted.spans { state.replays } else { &[] };
            for (process, replay) in replays.iter().enumerate() {
                replay.open_slices().for_each(|slice| self.change(slice.thread, process, state.now_nanos, state));
            }
        }
        self.has_rings
    }

    /// Notes in which span a thread is now.
    fn change(&mut self, key: ThreadKey, process: usize, nanos: u64, state: ReplayState<'_>) {
        let Self { view, said, first_counted, places, .. } = self;
        let Some(os_thread_id) = state.tables.thread(key).and_then(|thread| thread.os_thread_id) else { return };
        let first = first_counted.get(&key).copied().unwrap_or(0);
        let innermost = state.replays[process].stack(key).last().filter(|slice| slice.id >= first);
        let place = innermost.map(|slice| {
            let new = || place(process, slice.span, state);
            places.entry((process, slice.span)).or_insert_with(new).clone()
        });
        view.times.enter(os_thread_id, nanos, place, &mut |share| said.push(Said::Share(share)));
    }

    /// Forgets in which spans those threads are that may have recorded some of lost events.
    fn lose(&mut self, entry: &RecordingEntry<'_>, gap: &Gap, state: ReplayState<'_>) {
        let shard = state.tables.rings.losing_shard(entry.ring, gap.cause);
        let (process, replay) = (entry.process_index, &state.replays[entry.process_index]);
        for slice in replay.open_slices().filter(|slice| replay.losses().concerns(shard, slice.thread)) {
            self.first_counted.insert(slice.thread, replay.slices_begun());
            if self.has_rings {
                self.change(slice.thread, process, state.now_nanos, state);
            }
        }
    }
}

/// Returns the place of a span.
fn place(process_index: usize, id: SpanId, state: ReplayState<'_>) -> Arc<SpanPlace> {
    let around = state.spans_around(process_index, id).take(DEPTH_MAX);
    Arc::new(SpanPlace { process_index, spans: around.map(|span| (span.id, span.call_site.clone())).collect() })
}

impl ReplayPart for KernelPart {
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) {
        self.said.clear();
        if self.has_rings(state) {
            let said = &mut self.said;
            self.ring = self.view.entry(entry, state.now_nanos, &mut |what| said.push(what));
        }
        match &entry.content {
            EntryContent::Perf { record, .. } if self.has_rings && self.wanted.spans => {
                let (process, nanos) = (entry.process_index, record.epoch_nanos());
                step.each_changed_thread(|thread| self.change(thread, process, nanos, state));
                if let SpanStep::Closed { span, .. } = step {
                    self.places.remove(&(process, *span));
                }
            }
            // A thread that has not finished recording an event has left no span since.
            EntryContent::Gap(gap)
                if self.wanted.spans && self.ring.is_none() && gap.cause != GapCause::NeverCommitted =>
            {
                self.lose(entry, gap, state);
            }
            _ => {}
        }
    }

    fn end(&mut self, state: ReplayState<'_>) {
        self.said.clear();
        let Self { view, said, .. } = self;
        view.times.finish(state.now_nanos, &mut |share| said.push(Said::Share(share)));
        let main_process = view.times.main_process();
        let (mut code, owners) = (view.code.take(), std::mem::take(&mut view.owners));
        code.iter_mut().for_each(CodeStacks::resolve);
        self.names = Some(Arc::new(KernelNames { code, owners, main_process }));
    }

    fn tidy(&mut self, state: ReplayState<'_>) {
        self.places.retain(|(process, id), _| state.span(*process, *id).is_some());
        let is_in_spans = |thread| state.replays.iter().any(|replay| !replay.stack(thread).is_empty());
        self.first_counted.retain(|thread, _| is_in_spans(*thread));
    }

    fn kept_bytes(&self) -> u64 {
        const SPAN_BYTES: u64 = 256;
        self.view.kept_bytes().saturating_add((self.places.len() + self.first_counted.len()) as u64 * SPAN_BYTES)
    }
}
