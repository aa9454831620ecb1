//! Where the threads of open spans are: of programs that run, at this moment; of captures, in their last samples.

use crate::text::format::one_line;
use crate::text::paint::DIM;
use crate::text::table::shortened_end;
use eventring_live::{LiveState, OpenSpan};
use eventring_profile::frames::Frame;
use std::collections::BTreeMap;

/// The number of frames of a thread that are shown.
const FRAMES_MAX: usize = 60;

/// The stacks, by the thread's number in the system.
#[derive(Default)]
pub(super) struct ThreadStacks(pub(super) BTreeMap<u32, Vec<Frame>>);

impl ThreadStacks {
    /// Looks at the threads of all open spans. What cannot be seen is reported.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    pub(super) fn now(state: LiveState<'_>) -> Self {
        use std::collections::BTreeSet;

        let mut threads: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for span in state.open_spans().to_vec() {
            if let Some(thread) = thread_of(&span).filter(|_| state.end_of(span.program_index()).is_none()) {
                threads.entry(span.program().pid).or_default().insert(thread);
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

    /// Returns the stack of the thread that is in a span.
    pub(super) fn of(&self, span: &OpenSpan<'_>) -> Option<&[Frame]> {
        self.0.get(&thread_of(span)?).map(Vec::as_slice)
    }

    /// Returns the lines below a span, unless they come below a span in it.
    pub(super) fn lines(
        &self,
        span: &OpenSpan<'_>,
        next: Option<&OpenSpan<'_>>,
        room: usize,
        left: usize,
    ) -> Vec<String> {
        let thread = thread_of(span);
        if thread.is_none() || next.is_some_and(|next| thread_of(next) == thread) {
            return Vec::new();
        }
        let frames = self.of(span).unwrap_or_default();
        let line = |frame: &Frame| {
            let text = format!("at {}{}", one_line(&frame.name), if frame.is_kernel { " (kernel)" } else { "" });
            format!("{:left$}{DIM}{}{DIM:#}", "", shortened_end(&text, room))
        };
        frames.iter().take(FRAMES_MAX).map(line).collect()
    }
}

fn thread_of(span: &OpenSpan<'_>) -> Option<u32> {
    span.thread()?.os_thread_id
}
