//! Where the threads of open spans are: of programs that run, at this moment; of captures, in their last samples.

use crate::text::format::one_line;
use crate::text::paint::DIM;
use crate::text::table::shortened_end;
use eventring_live::{Live, OpenSpan};
use eventring_profile::frames::Frame;
use std::collections::BTreeMap;

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
        use crate::input::holder::known_holder;
        use crate::text::losses::report_problem;
        use std::collections::BTreeSet;

        let state = live.state();
        let mut threads: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for span in state.open_spans().to_vec() {
            let program = span.program_index();
            if let Some(thread) = thread_of(&span).filter(|_| state.end_of(program).is_none()) {
                threads.entry(program).or_default().insert(thread);
            }
        }
        let mut all = BTreeMap::new();
        for (program, threads) in threads {
            let mut rings = live.rings().rings().iter().enumerate();
            let ring =
                rings.find_map(|(ring, of)| of.reader().filter(|_| state.program_of_ring(ring) == Some(program)));
            let process = ring.map_or(Ok(None), known_holder);
            match process.map_err(Into::into).and_then(|process| match process {
                Some(process) => crate::profile::stacks_of(process, &threads.into_iter().collect::<Vec<_>>()),
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

    /// Returns the stack of the thread that is in a span.
    pub(super) fn of(&self, span: &OpenSpan<'_>) -> Option<&[Frame]> {
        let thread = thread_of(span)?;
        let found = [Some(span.program_index()), None].into_iter().find_map(|program| self.0.get(&(program, thread)));
        found.map(Vec::as_slice)
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
