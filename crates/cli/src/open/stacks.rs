//! Where the threads of open spans are: of programs that run, at this moment; of captures, in their last samples.

use crate::text::format::one_line;
use crate::text::paint::DIM;
use crate::text::table::shortened_end;
use crate::watch::perf::thread_label;
use eventring::tracing::Thread;
use eventring_live::{LiveState, OpenSpan};
use eventring_profile::frames::Frame;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The number of frames of a thread that are shown.
const FRAMES_MAX: usize = 60;

/// The stacks, by the thread's number in the system.
#[derive(Default)]
pub(super) struct ThreadStacks(pub(super) BTreeMap<u32, Vec<Frame>>);

impl ThreadStacks {
    /// Looks at the threads of all open spans. What cannot be seen is reported.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) fn now(state: LiveState<'_>) -> Self {
        let mut threads: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for span in state.open_spans().to_vec() {
            if state.end_of(span.program_index()).is_none() {
                threads.entry(span.program().pid).or_default().extend(threads_of(&span).map(|(number, _)| number));
            }
        }
        let mut all = BTreeMap::new();
        for (process, threads) in threads {
            match crate::profile::stacks_of(process, &threads.into_iter().collect::<Vec<_>>()) {
                Ok(stacks) => all.extend(stacks),
                Err(error) => crate::text::losses::report_problem(false, &error.to_string()),
            }
        }
        Self(all)
    }

    /// On other systems no program can be looked at.
    #[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
    pub(super) fn now(_: LiveState<'_>) -> Self {
        Self::default()
    }

    /// Returns the stack of a thread.
    pub(super) fn of(&self, thread: &Thread) -> Option<&[Frame]> {
        self.0.get(&thread.os_thread_id?).map(Vec::as_slice)
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
            let frames = self.of(thread).unwrap_or_default();
            if all.len() > 1 && !frames.is_empty() {
                lines.push(line(format!("{}:", one_line(&thread_label(thread)))));
            }
            let of_frame = |frame: &Frame| {
                line(format!("at {}{}", one_line(&frame.name), if frame.is_kernel { " (kernel)" } else { "" }))
            };
            lines.extend(frames.iter().take(FRAMES_MAX).map(of_frame));
        }
        lines
    }
}

/// Returns the threads that are in a span, with their numbers in the system.
fn threads_of(span: &OpenSpan<'_>) -> impl Iterator<Item = (u32, Arc<Thread>)> + use<> {
    span.threads().into_iter().filter_map(|thread| Some((thread.os_thread_id?, thread)))
}
