//! Recording stored events again, as a stand-in for a node.

use eventring::exec::flow_tag;
use eventring::reader::Descriptor;
use eventring::recorder::Recorder;
use eventring::schema::exec::ExecEvent;
use std::collections::VecDeque;

/// The number of blocks whose flow tags are remembered. Blocks do not overlap, so one would do for a good recording.
const TAGS_MAX: usize = 64;

/// Records events again, with their times, types, words and payloads. Their seqnos are the same if the recording begins
/// with seqno 1 and has no gaps; otherwise flow tags are changed to the seqnos that the blocks have now.
///
/// ```
/// use eventring::recorder::{ContentDescription, Recorder};
/// use eventring::reader::Descriptor;
/// use eventring::schema::exec::ExecEvent;
/// use eventring_exec::Replay;
///
/// let node = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().build()?;
/// let mut replay = Replay::new(&node);
/// let event = Descriptor { seqno: 1, event_type: 5, record_epoch_nanos: 17, ..Descriptor::default() };
/// assert_eq!(replay.record(&event, &[]), 1);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
#[derive(Debug)]
pub struct Replay<'r> {
    recorder: &'r Recorder,
    /// The flow tags of the last blocks: in the recording, and now.
    tags: VecDeque<(u64, u64)>,
}

impl<'r> Replay<'r> {
    /// Makes a replay into the ring of this recorder.
    #[must_use]
    pub fn new(recorder: &'r Recorder) -> Self {
        Self { recorder, tags: VecDeque::new() }
    }

    /// Records an event. Returns its seqno, or 0 if it was not recorded: recording is switched off.
    pub fn record(&mut self, event: &Descriptor, payload: &[u8]) -> u64 {
        let reserved = self.recorder.reserve(event.event_type, event.content_ext, payload.len() as u64);
        let Some(mut reservation) = reserved else { return 0 };
        let seqno = reservation.seqno();
        let tag = flow_tag(event);
        if event.event_type == ExecEvent::BlockStart as u16 {
            self.tags.push_back((tag, seqno));
            if self.tags.len() > TAGS_MAX {
                self.tags.pop_front();
            }
        }
        if let Some((_, now)) = self.tags.iter().rev().find(|(then, _)| *then == tag && tag != 0) {
            reservation.set_content_ext(0, *now);
        }
        reservation.set_epoch_nanos(event.record_epoch_nanos);
        reservation.append(payload);
        reservation.commit()
    }
}
