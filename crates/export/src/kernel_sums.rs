//! Sums of the kernel's data about threads, by the span stack of the thread and by its call stack.

use super::stacks::{KernelNanos, StackId, StackSums, Stacks};
use eventring_capture::recording::{RecordedRings, RecordingEntry};
use eventring_profile::by_span::{Did, KernelRing, KernelView, Said, StackKey, ThreadShare};
use std::collections::HashMap;

/// The frame in place of spans, if a thread was in none.
const NO_SPAN: &str = "[no span]";

/// The sums of a recording.
pub(super) struct KernelSums {
    view: KernelView<StackId>,
    sums: Sums,
}

/// The sums of each stack of spans, or of the process of a thread that was in none, and of each stack of the program.
#[derive(Default)]
struct Sums(HashMap<(Result<StackId, u32>, StackKey), KernelNanos>);

/// No stack of the program.
const NO_STACK: StackKey = StackKey { process_index: 0, stack_id: 0 };

impl Sums {
    fn add(&mut self, said: &Said<'_, StackId>, has_code: bool) {
        let mut sums = KernelNanos::default();
        let (place, stack) = match said {
            Said::Share(share) => {
                match share.did() {
                    Did::Ran => sums.cpu = share.nanos(),
                    Did::Runnable => sums.runnable = share.nanos(),
                    Did::Blocked => sums.blocked = share.nanos(),
                    Did::Unknown => sums.unknown = share.nanos(),
                }
                (share.tag.ok_or(share.process_id), share.stack())
            }
            Said::Sample(sample) if !sample.is_running => return,
            Said::Sample(sample) => {
                sums.sampled = sample.period_nanos;
                (sample.tag.ok_or(sample.process_id), sample.stack)
            }
        };
        let stack = if has_code && stack.stack_id != 0 { stack } else { NO_STACK };
        self.0.entry((place, stack)).or_default().add(sums);
    }
}

impl KernelSums {
    /// Makes sums of a recording, if it has rings of the kernel. With `has_code`, stacks of the program are told apart.
    pub(super) fn new(rings: &RecordedRings, has_code: bool) -> Option<Self> {
        KernelRing::are_in(rings).then(|| Self { view: KernelView::new(has_code), sums: Sums::default() })
    }

    /// Notes the stack of spans that a thread is in from now on.
    pub(super) fn enter(&mut self, thread_id: u32, nanos: u64, stack: Option<StackId>) {
        let (sums, has_code) = (&mut self.sums, self.view.code.is_some());
        let mut each = |share: ThreadShare<'_, StackId>| sums.add(&Said::Share(share), has_code);
        self.view.times.enter(thread_id, nanos, stack, &mut each);
    }

    /// Takes an event or a loss.
    pub(super) fn entry(&mut self, entry: &RecordingEntry<'_>, now_nanos: u64) {
        let (sums, has_code) = (&mut self.sums, self.view.code.is_some());
        self.view.entry(entry, now_nanos, &mut |said| sums.add(&said, has_code));
    }

    /// Takes the end of the recording.
    pub(super) fn end(&mut self, now_nanos: u64) {
        let (sums, has_code) = (&mut self.sums, self.view.code.is_some());
        self.view.times.finish(now_nanos, &mut |share| sums.add(&Said::Share(share), has_code));
    }

    /// Adds the sums to the stacks. `process_ids` are those of the processes, in their order.
    pub(super) fn add_to(mut self, stacks: &mut Stacks, process_ids: &[u32]) {
        if let Some(code) = &mut self.view.code {
            code.resolve();
        }
        let main_process = self.view.times.main_process().unwrap_or(0);
        let owners = &self.view.owners;
        let mut sums: Vec<_> = self.sums.0.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        for ((place, stack), kernel) in sums {
            let outer = place.map_err(|process_id| {
                // The first samples may come before the word about their thread.
                let process_id = if process_id == 0 { main_process } else { process_id };
                match process_ids.iter().position(|of_process| *of_process == process_id) {
                    Some(process) => process,
                    None if process_id == 0 => stack.process_index,
                    None => {
                        let name = owners.process_name(process_id);
                        stacks.other_process(process_ids.len(), name.as_deref().unwrap_or("process"))
                    }
                }
            });
            let outer = outer.or_else(|process| Ok::<_, usize>(stacks.stack_of_code(Err(process), NO_SPAN)));
            let frames = self.view.code.as_ref().map(|code| code.frames(stack)).unwrap_or_default();
            let place = frames.iter().fold(outer, |outer, frame| Ok(stacks.stack_of_code(outer, &frame.name)));
            if let Ok(place) = place {
                stacks.add(place, StackSums { kernel, ..StackSums::default() });
            }
        }
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        // Each may become a stack of frames of its own.
        const SUM_BYTES: u64 = 256;
        self.view.kept_bytes().saturating_add(self.sums.0.len() as u64 * SUM_BYTES)
    }
}
