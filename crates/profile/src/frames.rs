//! The last stack of each thread of a capture, with names.

pub use crate::frame::Frame;

use crate::by_span::{KernelNames, KernelPart, KernelRing, KernelWanted, Said, StackKey};
use crate::schema::{Sched, ThreadEnded, ThreadSeen};
use eventring::schema::{EventPayload as _, EventType as _};
use eventring::tracing::SpanStep;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, RecordingEntry, ReplayConsumer, ReplayParts, ReplayState, replay_capture,
};
use eventring_capture::{CaptureError, CaptureFile};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

/// The stack of a thread's last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastStack {
    /// When the sample was taken, in nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The frames, the innermost first.
    pub frames: Vec<Frame>,
}

/// Returns the stack of the last sample of each thread of a capture, until a time in nanoseconds since the epoch. Names
/// that the profile was not recorded with come from the files of the program, if these are still there.
///
/// # Errors
/// The capture is damaged.
pub fn last_stacks(capture: &CaptureFile, until: u64) -> Result<BTreeMap<u32, LastStack>, CaptureError> {
    let mut seen = Seen { until, last: BTreeMap::new(), ended: HashSet::new(), names: Arc::default() };
    replay_capture(&CaptureRecording::new(capture)?, &mut seen)?;
    let Some(code) = &seen.names.code else { return Ok(BTreeMap::new()) };
    let with_names = |(thread, (epoch_nanos, stack))| {
        let mut frames = code.frames(stack);
        frames.reverse();
        (!frames.is_empty()).then_some((thread, LastStack { epoch_nanos, frames }))
    };
    Ok(seen.last.into_iter().filter_map(with_names).collect())
}

/// What was seen until now.
struct Seen {
    until: u64,
    /// Of each thread, the time and the stack of its last sample.
    last: BTreeMap<u32, (u64, StackKey)>,
    /// The threads that have ended.
    ended: HashSet<u32>,
    names: Arc<KernelNames>,
}

impl ReplayConsumer for Seen {
    fn follow(&self, parts: &mut ReplayParts) {
        KernelPart::ask(KernelWanted { code: true, ..KernelWanted::default() }, parts);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let (until, last) = (self.until, &mut self.last);
        if let EntryContent::Typed { descriptor, payload } = &entry.content
            && KernelRing::from_ring(&entry.tables.rings, entry.ring) == Some(KernelRing::Sched)
            && descriptor.record_epoch_nanos <= until
            && let Some(payload) = payload.valid()
        {
            // The next thread of the number of one that has ended is another one.
            match Sched::from_code(descriptor.event_type) {
                Some(Sched::ThreadEnded) => {
                    self.ended.extend(ThreadEnded::decode(payload).ok().map(|(ended, _)| ended.thread_id));
                }
                Some(Sched::ThreadSeen) => {
                    let seen = ThreadSeen::decode(payload).ok().map(|(seen, _)| seen.thread_id);
                    if let Some(thread) = seen.filter(|thread| self.ended.remove(thread)) {
                        last.remove(&thread);
                    }
                }
                _ => {}
            }
        }
        for said in state.part().map_or(&[][..], KernelPart::said) {
            if let Said::Sample(sample) = said
                && sample.nanos <= until
            {
                last.insert(sample.thread_id, (sample.nanos, sample.stack));
            }
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, _: &[u64]) -> io::Result<()> {
        self.names = state.part().and_then(KernelPart::names).unwrap_or_default();
        Ok(())
    }
}
