//! The stacks of threads that are in open spans: for a running program at this moment, for a capture at the last
//! samples.

use crate::text::paint::DIM;
use crate::text::perf::thread_label;
use crate::text::table::shortened_end;
use eventring::tracing::Thread;
use eventring_live::{Live, OpenSpan};
use eventring_profile::frames::Frame;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of frames of a thread that are shown.
const FRAMES_MAX: usize = 60;

/// The stacks, by the index of the program and the number that the thread has for it. A capture has the numbers of the
/// system, without the index.
#[derive(Default)]
pub(super) struct ThreadStacks(pub(super) BTreeMap<(Option<usize>, u32), Vec<Frame>>);

impl ThreadStacks {
    /// Looks at the threads of all open spans. What cannot be seen is reported.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) fn now(live: &Live) -> Self {
        use crate::input::programs::holder::known_holder;
        use crate::text::losses::report_problem;

        let state = live.state();
        let mut threads: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for span in state.open_spans().list().iter() {
            let program = span.program_index();
            if state.end_of(program).is_none() {
                threads.entry(program).or_default().extend(threads_of(&span).map(|(number, _)| number));
            }
        }
        let mut all = BTreeMap::new();
        for (program, threads) in threads {
            let mut rings = live.rings().rings().iter().enumerate();
            let ring =
                rings.find_map(|(ring, of)| of.reader().filter(|_| state.program_of_ring(ring) == Some(program)));
            let process = ring.map_or(Ok(None), known_holder);
            match process.map_err(Into::into).and_then(|process| match process {
                Some(process) => {
                    crate::input::programs::stacks::stacks_of(process, &threads.into_iter().collect::<Vec<_>>())
                }
                None => Ok(BTreeMap::new()),
            }) {
                Ok(stacks) => all.extend(stacks.into_iter().map(|(thread, stack)| ((Some(program), thread), stack))),
                Err(error) => report_problem(false, &format!("no stacks: {error}")),
            }
        }
        Self(all)
    }

    /// On other systems no program can be looked at.
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    pub(super) fn now(_: &Live) -> Self {
        Self::default()
    }

    /// Returns the stack of a thread that is in a span.
    pub(super) fn of(&self, span: &OpenSpan<'_>, thread: &Thread) -> Option<&[Frame]> {
        let number = thread.os_thread_id?;
        let found = [Some(span.program_index()), None].into_iter().find_map(|program| self.0.get(&(program, number)));
        found.map(Vec::as_slice)
    }

    /// Returns the lines below a span: the stacks of its threads, unless they come below a span in it.
    pub(super) fn lines(
        &self,
        span: &OpenSpan<'_>,
        next: Option<&OpenSpan<'_>>,
        room: usize,
        left: usize,
    ) -> Vec<String> {
        let inner: BTreeSet<u32> = next.into_iter().flat_map(threads_of).map(|(number, _)| number).collect();
        let all: Vec<_> = threads_of(span).collect();
        let line = |text: String| format!("{:left$}{DIM}{}{DIM:#}", "", shortened_end(&text, room));
        let mut lines = Vec::new();
        for (_, thread) in all.iter().filter(|(number, _)| !inner.contains(number)) {
            let frames = self.of(span, thread).unwrap_or_default();
            if all.len() > 1 && !frames.is_empty() {
                lines.push(line(format!("{}:", thread_label(thread))));
            }
            let of_frame =
                |frame: &Frame| line(format!("at {}{}", frame.name, if frame.is_kernel { " (kernel)" } else { "" }));
            lines.extend(frames.iter().take(FRAMES_MAX).map(of_frame));
        }
        lines
    }
}

/// Returns the threads that are in a span, with their numbers in the system.
fn threads_of(span: &OpenSpan<'_>) -> impl Iterator<Item = (u32, Arc<Thread>)> + use<> {
    span.threads().into_iter().filter_map(|thread| Some((thread.os_thread_id?, thread)))
}
