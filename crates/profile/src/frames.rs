//! The last stack of each thread of a capture, with names.

pub use crate::frame::Frame;

use crate::by_span::{KernelView, Said, StackKey};
use eventring::tracing::SpanStep;
use eventring_capture::recording::{CaptureRecording, RecordingEntry, ReplayConsumer, ReplayState, replay_capture};
use eventring_capture::{CaptureError, CaptureFile};
use std::collections::BTreeMap;
use std::io;

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
    let mut seen = Seen { until, last: BTreeMap::new(), view: KernelView::new(true) };
    replay_capture(&CaptureRecording::new(capture)?, &mut seen)?;
    let Some(mut code) = seen.view.code else { return Ok(BTreeMap::new()) };
    code.resolve();
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
    view: KernelView<()>,
}

impl ReplayConsumer for Seen {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let (until, last) = (self.until, &mut self.last);
        self.view.entry(entry, state.now_nanos, &mut |said| match said {
            Said::Sample(sample) if sample.nanos <= until => {
                last.insert(sample.thread_id, (sample.nanos, sample.stack));
            }
            _ => {}
        });
        Ok(())
    }
}
