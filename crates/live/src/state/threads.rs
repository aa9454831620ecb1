//! The threads, and the spans that they are in.

use super::open::{OpenSpan, OpenSpans};
use crate::state::LiveState;
use eventring::tracing::{Thread, ThreadKey};
use eventring_capture::recording::RecordedProgram;
use std::collections::HashSet;
use std::sync::Arc;

/// A thread, and the innermost span that it is in.
#[derive(Clone)]
pub struct LiveThread<'s> {
    state: LiveState<'s>,
    process_index: usize,
    key: ThreadKey,
    thread: Arc<Thread>,
    is_seen: bool,
    /// The innermost span, and when the thread entered it.
    span: Option<(OpenSpan<'s>, u64)>,
    is_certain: bool,
}

impl<'s> LiveState<'s> {
    /// Returns the threads that have not ended, and the spans that they are in, in the order of the programs and of the
    /// threads' ids.
    #[must_use]
    pub fn threads(&self) -> Vec<LiveThread<'s>> {
        LiveThread::all(*self)
    }
}

impl<'s> LiveThread<'s> {
    /// Returns the threads of all programs, in the order of the programs and of the threads' ids: those of which a
    /// record was read, and those that the tables of the recorders name.
    pub(crate) fn all(state: LiveState<'s>) -> Vec<Self> {
        let open = state.open_spans();
        let rings = &state.replayed.tables.rings;
        let mut keys = HashSet::new();
        for (index, replay) in state.replayed.replays.iter().enumerate() {
            keys.extend(replay.threads().map(|key| (index, key, true)));
        }
        for (recorder, catalog) in rings.recorders().iter().zip(&state.replayed.tables.catalogs) {
            let process_index = rings.origin(*recorder).process_index;
            let named = catalog.threads().map(|thread| ThreadKey { recorder: *recorder, thread_id: thread.id });
            let unseen = named.map(|key| (process_index, key, false));
            let unseen: Vec<_> = unseen.filter(|(index, key, _)| !keys.contains(&(*index, *key, true))).collect();
            keys.extend(unseen);
        }
        // The description of a call site names no thread: its number is 0.
        let mut keys: Vec<(usize, ThreadKey, bool)> =
            keys.into_iter().filter(|(_, key, _)| key.thread_id != 0).collect();
        keys.sort_unstable();
        let thread = |(index, key, is_seen)| Self::new(state, &open, index, key, is_seen);
        keys.into_iter().filter_map(thread).collect()
    }

    fn new(
        state: LiveState<'s>,
        open: &OpenSpans<'s>,
        process_index: usize,
        key: ThreadKey,
        is_seen: bool,
    ) -> Option<Self> {
        let thread = state.replayed.tables.thread(key)?;
        if let Some(tabled) = &state.core.tabled {
            let its = tabled.iter().find(|of| of.recorder == key.recorder);
            let span = its.and_then(|of| of.spans.entered_by(key.thread_id).next());
            let span = span.and_then(|(span, entered)| Some((open.get(process_index, span.id)?, entered)));
            return Some(Self { state, process_index, key, thread, is_seen: span.is_some(), span, is_certain: true });
        }
        let replay = &state.replayed.replays[process_index];
        let mut innermost = replay.stack(key).iter().rev();
        let slice = innermost.find_map(|slice| Some((slice, open.get(process_index, slice.span)?)));
        let is_certain = match &slice {
            Some((slice, _)) => !replay.may_have_ended(slice, state.replayed.now_nanos),
            // The thread may have entered a span in a lost event, unless it has begun since. Or there was no room.
            None => {
                let lost_until = replay.losses().of_thread(key, state.replayed.now_nanos);
                lost_until <= thread.started_epoch_nanos.unwrap_or(0) && state.not_tracked() == 0
            }
        };
        let span = slice.map(|(slice, span)| (span, slice.entered_epoch_nanos));
        Some(Self { state, process_index, key, thread, is_seen, span, is_certain: is_certain && is_seen })
    }

    /// Returns the number that tells the thread from others of its program.
    #[must_use]
    pub fn key(&self) -> ThreadKey {
        self.key
    }

    /// Returns the name and ids of the thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Returns false if no record of the thread is known: the recorder has named it before the oldest events that were
    /// read. It may have ended since.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Returns the innermost span that the thread is in. Returns `None` if the thread is in no span that is known.
    #[must_use]
    pub fn span(&self) -> Option<&OpenSpan<'s>> {
        self.span.as_ref().map(|(span, _)| span)
    }

    /// Returns false if the thread may have left [`Self::span`] or may be in another one, because events were lost or
    /// because there was no room for a span.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Returns when the thread entered the span, in nanoseconds since the epoch.
    #[must_use]
    pub fn in_span_since_epoch_nanos(&self) -> Option<u64> {
        self.span.as_ref().map(|(_, entered)| *entered)
    }

    /// Returns how long the thread has been in the span, in nanoseconds. In a program that has ended, this time counts
    /// to the program's last sign of life.
    #[must_use]
    pub fn nanos_in_span(&self) -> Option<u64> {
        let now_nanos = self.state.core.processes[self.process_index].now_nanos(self.state.replayed.now_nanos);
        Some(now_nanos.saturating_sub(self.in_span_since_epoch_nanos()?))
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
}

impl std::fmt::Debug for LiveThread<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveThread")
            .field("thread", &self.thread)
            .field("span", &self.span())
            .field("is_seen", &self.is_seen)
            .field("is_certain", &self.is_certain)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{START, StreamFixture};
    use crate::options::LiveOptions;
    use eventring::reader::{Descriptor, PayloadRead};
    use eventring::schema::EventType as _;
    use eventring::schema::perf::{PerfEvent, PerfExt, ThreadView};
    use eventring::tracing::RawRecord;

    #[test]
    fn a_span_has_all_threads_that_are_in_it_and_nothing_is_certain_of_one_that_was_only_described() {
        let mut stream = StreamFixture::new(&LiveOptions::new());
        stream.call_site(1, "query");
        ["main", "worker"].iter().zip(1..).for_each(|(name, id)| stream.thread(id, name));
        // Only the tables of the recorder have this one.
        let (event_type, content_ext) =
            (PerfEvent::ThreadStarted.code(), PerfExt { thread_id: 3, ..PerfExt::default() });
        let told = Descriptor { event_type, content_ext: content_ext.to_words(), ..Descriptor::default() };
        let payload = ThreadView::encode(START, 3, "idle");
        RawRecord::new(&mut stream.tables.catalogs[0], 0, &told, PayloadRead::Valid(&payload));
        stream.quiet(START, PerfEvent::SpanNew, PerfExt { thread_id: 1, ..PerfExt::of_span(1, 1) }, &[]);
        for thread_id in [1, 2] {
            stream.quiet(START + 1, PerfEvent::SpanEnter, PerfExt { thread_id, ..PerfExt::of_span(1, 1) }, &[]);
        }
        let state = stream.state();
        let threads = state.open_spans().to_vec()[0].threads();
        let in_span: Vec<Option<&str>> = threads.iter().map(|thread| thread.name.as_deref()).collect();
        assert_eq!(in_span, [Some("main"), Some("worker")]);
        let threads = state.threads();
        let known = threads.iter().map(|of| (of.thread().name.as_deref().unwrap(), of.is_seen(), of.is_certain()));
        assert_eq!(known.collect::<Vec<_>>(), [("main", true, true), ("worker", true, true), ("idle", false, false)]);
    }
}
