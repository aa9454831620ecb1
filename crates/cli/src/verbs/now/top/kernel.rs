//! The kernel's data about threads in spans, by the name of the span, while a profile is recorded.

use super::stats::{TABLE, WINDOWS};
use eventring::tracing::SpanStep;
use eventring_capture::recording::{RecordingEntry, ReplayConsumer, ReplayParts, ReplayState};
use eventring_profile::by_span::{Did, KernelPart, KernelWanted, Said, ThreadShare};
use std::collections::{HashMap, VecDeque};
use std::io;

/// How long threads ran, could have run, and were blocked, in nanoseconds, by the name and target of their innermost
/// span.
pub(super) type KernelTimes = HashMap<(String, String), [u64; 3]>;

/// Adds up what the kernel says, for the window of the table.
#[derive(Default)]
pub(super) struct TopKernel {
    seconds: Seconds,
    is_recorded: bool,
}

/// The times of each second, the oldest first.
#[derive(Default)]
struct Seconds(VecDeque<(u64, KernelTimes)>);

impl Seconds {
    fn add(&mut self, share: &ThreadShare) {
        let what = match share.did() {
            Did::Unknown => return,
            Did::Ran => 0,
            Did::Runnable => 1,
            Did::Blocked => 2,
        };
        let site = share.place.as_ref().and_then(|place| place.spans.first()?.1.as_ref());
        let (Some(site), second) = (site, share.to_nanos / 1_000_000_000) else { return };
        if self.0.back().is_none_or(|(last, _)| *last < second) {
            self.0.push_back((second, KernelTimes::new()));
        }
        while self.0.front().is_some_and(|(first, _)| first + WINDOWS[TABLE].as_secs() <= second) {
            self.0.pop_front();
        }
        if let Some((_, times)) = self.0.back_mut() {
            times.entry((site.name.clone(), site.target.clone())).or_default()[what] += share.nanos();
        }
    }
}

impl TopKernel {
    /// Returns the times of the window before this time; `None` if nothing records them.
    pub(super) fn times(&self, now_nanos: u64) -> Option<KernelTimes> {
        let mut times = KernelTimes::new();
        let since = (now_nanos / 1_000_000_000).saturating_sub(WINDOWS[TABLE].as_secs());
        for (name, nanos) in self.seconds.0.iter().filter(|(second, _)| *second > since).flat_map(|(_, times)| times) {
            let all = times.entry(name.clone()).or_default();
            all.iter_mut().zip(nanos).for_each(|(all, nanos)| *all += nanos);
        }
        self.is_recorded.then_some(times)
    }
}

impl ReplayConsumer for TopKernel {
    fn follow(&self, parts: &mut ReplayParts) {
        KernelPart::ask(KernelWanted { spans: true, code: false }, parts);
    }

    fn entry(&mut self, _: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let Some(part) = state.part::<KernelPart>() else { return Ok(()) };
        self.is_recorded |= part.ring().is_some();
        for said in part.said() {
            if let Said::Share(share) = said {
                self.seconds.add(share);
            }
        }
        Ok(())
    }
}
