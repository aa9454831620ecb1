//! Sums of the kernel's data about threads, by the span stack of the thread and by its call stack.

use super::stacks::{KernelNanos, StackId, StackSums, Stacks};
use eventring_profile::by_span::{Did, KernelNames, Said, StackKey};
use std::collections::HashMap;

/// The frame in place of spans, if a thread was in none.
const NO_SPAN: &str = "[no span]";

/// The sums of each stack of spans, or of the process of a thread that was in none, and of each stack of the program.
pub(super) struct KernelSums {
    /// True if stacks of the program are told apart.
    pub(super) has_code: bool,
    sums: HashMap<(Result<StackId, u32>, StackKey), KernelNanos>,
}

/// No stack of the program.
const NO_STACK: StackKey = StackKey { process_index: 0, stack_id: 0 };

impl KernelSums {
    pub(super) fn new(has_code: bool) -> Self {
        Self { has_code, sums: HashMap::new() }
    }

    /// Adds what the kernel says. The stacks of spans are looked up in `stacks`.
    pub(super) fn add(&mut self, said: &Said, stacks: &mut Stacks) {
        let mut sums = KernelNanos::default();
        let (place, process_id, stack) = match said {
            Said::Share(share) => {
                match share.did() {
                    Did::Ran => sums.cpu = share.nanos(),
                    Did::Runnable => sums.runnable = share.nanos(),
                    Did::Blocked => sums.blocked = share.nanos(),
                    Did::Unknown => sums.unknown = share.nanos(),
                }
                (&share.place, share.process_id, share.stack())
            }
            Said::Sample(sample) if !sample.is_running => return,
            Said::Sample(sample) => {
                sums.sampled = sample.period_nanos;
                (&sample.place, sample.process_id, sample.stack)
            }
        };
        let place = place.as_ref().and_then(|place| stacks.stack_of_place(place)).ok_or(process_id);
        let stack = if self.has_code && stack.stack_id != 0 { stack } else { NO_STACK };
        self.sums.entry((place, stack)).or_default().add(sums);
    }

    /// Adds the sums to the stacks. `process_ids` are those of the processes, in their order.
    pub(super) fn add_to(self, stacks: &mut Stacks, process_ids: &[u32], names: &KernelNames) {
        let (main_process, owners) = (names.main_process.unwrap_or(0), &names.owners);
        let mut sums: Vec<_> = self.sums.into_iter().collect();
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
            let frames = names.code.as_ref().map(|code| code.frames(stack)).unwrap_or_default();
            let place = frames.iter().fold(outer, |outer, frame| Ok(stacks.stack_of_code(outer, &frame.name)));
            if let Ok(place) = place {
                stacks.add(place, StackSums { kernel, ..StackSums::default() });
            }
        }
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        // Each may become a stack of frames of its own.
        const SUM_BYTES: u64 = 256;
        self.sums.len() as u64 * SUM_BYTES
    }
}
