//! The kernel's view as a part of a replay: what threads did, with the spans that they were in.

use super::{CodeStacks, KernelRing, KernelView, Said, ThreadOwners};
use eventring::reader::{Gap, GapCause};
use eventring::tracing::{CallSite, Catalog, SpanId, SpanStep, ThreadKey};
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
    view: KernelView,
    /// What follows from the last entry.
    said: Vec<Said>,
    /// The kind of the last entry's ring.
    ring: Option<KernelRing>,
    threads: HashMap<ThreadKey, SpanThread>,
    /// The places of open spans that threads have entered.
    places: HashMap<(usize, SpanId), Arc<SpanPlace>>,
    /// The names at the end; `None` before it.
    names: Option<Arc<KernelNames>>,
}

/// A thread that was in spans.
#[derive(Debug, Default)]
struct SpanThread {
    /// Its number in the system.
    os_thread_id: u32,
    /// The id of the first slice after the last loss. Exits of earlier slices may be lost.
    first_counted: u64,
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
            view: KernelView::new(code),
            said: Vec::new(),
            ring: None,
            threads: HashMap::new(),
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

    /// Notes in which spans threads are now.
    fn change(&mut self, step: &SpanStep, process: usize, catalog: &Catalog, nanos: u64, state: ReplayState<'_>) {
        let Self { view, said, threads, places, .. } = self;
        step.each_changed_thread(|key| {
            let Some(os_thread_id) = catalog.thread(key.thread_id).os_thread_id else { return };
            let thread = threads.entry(key).or_default();
            thread.os_thread_id = os_thread_id;
            let innermost = state.replays[process].stack(key).last().filter(|slice| slice.id >= thread.first_counted);
            let place = innermost.map(|slice| {
                let new = || place(process, slice.span, state);
                places.entry((process, slice.span)).or_insert_with(new).clone()
            });
            view.times.enter(os_thread_id, nanos, place, &mut |share| said.push(Said::Share(share)));
        });
        if let SpanStep::Closed { span, .. } = step {
            places.remove(&(process, *span));
        }
    }

    /// Forgets in which spans those threads are that may have recorded some of lost events.
    fn lose(&mut self, entry: &RecordingEntry<'_>, gap: &Gap, state: ReplayState<'_>) {
        let Self { view, said, threads, .. } = self;
        let shard = state.tables.rings.losing_shard(entry.ring, gap.cause);
        let replay = &state.replays[entry.process_index];
        for (key, thread) in threads.iter_mut().filter(|(key, _)| replay.losses().concerns(shard, **key)) {
            if state.tables.rings.origin(key.recorder).process_index == entry.process_index {
                thread.first_counted = replay.slices_begun();
                let mut say = |share| said.push(Said::Share(share));
                view.times.enter(thread.os_thread_id, state.now_nanos, None, &mut say);
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
        let said = &mut self.said;
        self.ring = self.view.entry(entry, state.now_nanos, &mut |what| said.push(what));
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } if self.wanted.spans => {
                self.change(step, entry.process_index, catalog, record.epoch_nanos(), state);
            }
            // A thread that has not finished recording an event has left no span since.
            EntryContent::Gap(gap) if self.ring.is_none() && gap.cause != GapCause::NeverCommitted => {
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
    }

    fn kept_bytes(&self) -> u64 {
        const SPAN_BYTES: u64 = 256;
        self.view.kept_bytes().saturating_add((self.places.len() + self.threads.len()) as u64 * SPAN_BYTES)
    }
}
