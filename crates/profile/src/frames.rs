//! The frames of stacks, and the last stack of each thread of a capture.

use crate::by_span::{KernelView, Said, StackKey};
use eventring::tracing::SpanStep;
use eventring_capture::recording::{CaptureRecording, RecordingEntry, ReplayConsumer, ReplayState, replay_capture};
use eventring_capture::{CaptureError, CaptureFile};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A frame of a stack: a function, or an address without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The name of the function; otherwise the file and the place in it, or the address.
    pub name: Arc<str>,
    /// The path of the file with the code; empty if it is not known.
    pub path: Arc<str>,
    /// The place in the file, or the address; 0 if neither is known.
    pub place: u64,
    /// True if it is code of the kernel.
    pub is_kernel: bool,
}

impl Frame {
    /// Makes a frame. Without a name, it is called after its place.
    pub(crate) fn new(name: Option<Arc<str>>, path: &Arc<str>, place: u64, is_kernel: bool) -> Self {
        let name = match name {
            Some(name) => name,
            None if is_kernel => format!("kernel+{place:#x}").into(),
            None if path.is_empty() => format!("{place:#x}").into(),
            None => format!("{}+{place:#x}", path.rsplit('/').next().unwrap_or_default()).into(),
        };
        Self { name, path: path.clone(), place, is_kernel }
    }
}

/// The stack of a thread's last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastStack {
    /// When the sample was taken, in nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The frames, the innermost first.
    pub frames: Vec<Frame>,
}

/// Returns the stack of the last sample of each thread of a capture, until a time in nanoseconds since the epoch. Names that
/// the profile was not recorded with come from the files of the program, if these are still there.
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
