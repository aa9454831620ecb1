//! The kernel's data about threads in spans, by the name of the span, while a profile is recorded.

use super::model::{TABLE, WINDOWS};
use eventring::tracing::{CallSite, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, PerDescription, RecordingEntry, ReplayConsumer, ReplayState};
use eventring_profile::by_span::{Did, KernelView, Said, ThreadShare};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

/// How long threads ran, could have run, and were blocked, in nanoseconds, by the name and target of their innermost
/// span.
pub(super) type KernelTimes = HashMap<(String, String), [u64; 3]>;

/// Adds up what the kernel says, for the window of the table.
#[derive(Default)]
pub(super) struct TopKernel {
    view: Option<KernelView<usize>>,
    call_sites: Vec<Arc<CallSite>>,
    by_call_site: PerDescription<CallSite, usize>,
    /// The threads that were in spans.
    threads: HashSet<u32>,
    seconds: Seconds,
    is_recorded: bool,
}

/// The times of each second by the index of the call site, the oldest first.
#[derive(Default)]
struct Seconds(VecDeque<(u64, HashMap<usize, [u64; 3]>)>);

impl Seconds {
    fn add(&mut self, share: &ThreadShare<'_, usize>) {
        let what = match share.did() {
            Did::Unknown => return,
            Did::Ran => 0,
            Did::Runnable => 1,
            Did::Blocked => 2,
        };
        let (Some(tag), second) = (share.tag, share.to_nanos / 1_000_000_000) else { return };
        if self.0.back().is_none_or(|(last, _)| *last < second) {
            self.0.push_back((second, HashMap::new()));
        }
        while self.0.front().is_some_and(|(first, _)| first + WINDOWS[TABLE].as_secs() <= second) {
            self.0.pop_front();
        }
        if let Some((_, times)) = self.0.back_mut() {
            times.entry(tag).or_default()[what] += share.nanos();
        }
    }
}

impl TopKernel {
    /// Returns the times of the window before this time; `None` if nothing records them.
    pub(super) fn times(&self, now_nanos: u64) -> Option<KernelTimes> {
        let mut times = KernelTimes::new();
        let since = (now_nanos / 1_000_000_000).saturating_sub(WINDOWS[TABLE].as_secs());
        for (tag, nanos) in self.seconds.0.iter().filter(|(second, _)| *second > since).flat_map(|(_, times)| times) {
            let site = &self.call_sites[*tag];
            let all = times.entry((site.name.to_string(), site.target.to_string())).or_default();
            all.iter_mut().zip(nanos).for_each(|(all, nanos)| *all += nanos);
        }
        self.is_recorded.then_some(times)
    }

    /// Notes that a thread is in this span from now on.
    fn enter(&mut self, thread_id: u32, nanos: u64, site: Option<&Arc<CallSite>>) {
        let tag = site.map(|site| match self.by_call_site.get(site) {
            Some(known) => *known,
            None => {
                self.call_sites.push(site.clone());
                self.by_call_site.insert(site, self.call_sites.len() - 1);
                self.call_sites.len() - 1
            }
        });
        self.threads.insert(thread_id);
        let (view, seconds) = (self.view.get_or_insert_with(|| KernelView::new(false)), &mut self.seconds);
        view.times.enter(thread_id, nanos, tag, &mut |share| seconds.add(&share));
    }
}

impl ReplayConsumer for TopKernel {
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let (record, catalog) = match &entry.content {
            EntryContent::Perf { record, catalog, .. } => (record, catalog),
            content => {
                let (view, seconds) = (self.view.get_or_insert_with(|| KernelView::new(false)), &mut self.seconds);
                let mut each = |said: Said<'_, usize>| match said {
                    Said::Share(share) => seconds.add(&share),
                    Said::Sample(_) => {}
                };
                let is_kernels = view.entry(entry, state.now_nanos, &mut each).is_some();
                self.is_recorded |= is_kernels;
                // In which spans threads are is not known after a loss, until they enter or leave one.
                if matches!(content, EntryContent::Gap(gap) if gap.is_loss()) && !is_kernels {
                    for thread in std::mem::take(&mut self.threads) {
                        self.enter(thread, state.now_nanos, None);
                    }
                }
                return Ok(());
            }
        };
        let nanos = record.epoch_nanos();
        let change = |thread: ThreadKey| {
            let Some(os_thread_id) = catalog.thread(thread.thread_id).os_thread_id else { return };
            let innermost = state.replays[entry.process_index].stack(thread).last();
            let span = innermost.and_then(|slice| state.span(entry.process_index, slice.span));
            self.enter(os_thread_id, nanos, span.and_then(|span| span.call_site.as_ref()));
        };
        step.each_changed_thread(change);
        Ok(())
    }
}
