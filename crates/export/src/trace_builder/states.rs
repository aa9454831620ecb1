//! The kernel's data about threads. Each thread gets a row of its states, arrows from the threads that woke it, and its
//! samples of stacks.

use super::TraceBuilder;
use super::tracks::TrackKey;
use crate::args::{ArgValue, Args};
use crate::formats::trace_writer::{FlowEnds, FlowId, Label, StackSample, TrackId};
use eventring::reader::Descriptor;
use eventring::schema::{EventPayload as _, EventType as _};
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayState};
use eventring_profile::by_span::{Did, KernelPart, KernelRing, Said, ThreadShare};
use eventring_profile::schema::{Sched, Stacks, Woken};
use std::collections::HashMap;
use std::io;

/// The arrows to threads that were not drawn yet.
pub(super) struct States {
    /// The arrow to each thread that was woken and does not run yet.
    woken: HashMap<u32, FlowId>,
    /// The number of the last arrow.
    last_flow: u64,
}

impl States {
    /// Begins. These arrows come after those between spans.
    pub(super) fn new(flows_before: u64) -> Self {
        Self { woken: HashMap::new(), last_flow: flows_before }
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.woken.len() as u64 * 64
    }
}

impl TraceBuilder<'_> {
    /// Draws what an entry of a ring of the kernel says. Returns false if the entry is to be drawn as any other.
    #[inline]
    pub(super) fn kernel_entry(&mut self, entry: &RecordingEntry<'_>, state: ReplayState<'_>) -> io::Result<bool> {
        if self.states.is_none() {
            return Ok(false);
        }
        let Some(part) = state.part::<KernelPart>() else { return Ok(false) };
        for said in part.said() {
            match said {
                Said::Share(share) => self.draw_state(share, entry.process)?,
                Said::Sample(sample) if sample.is_running => {
                    if let Some(code) = self.outline.kernel.as_ref().and_then(|kernel| kernel.code()) {
                        let (nanos, pid, tid, cpu) = (sample.nanos, sample.process_id, sample.thread_id, sample.cpu);
                        self.writer.sample(&StackSample { nanos, pid, tid, cpu, stack: sample.stack, code })?;
                    }
                }
                Said::Sample(_) => {}
            }
        }
        let EntryContent::Typed { descriptor, payload } = &entry.content else { return Ok(false) };
        Ok(match part.ring() {
            Some(KernelRing::Sched) => match Sched::from_code(descriptor.event_type) {
                Some(Sched::Woken) => {
                    if let Some(Ok((woken, _))) = payload.valid().map(Woken::decode) {
                        self.draw_waker((&woken, part), descriptor, entry.process)?;
                    }
                    true
                }
                Some(Sched::SwitchedOut | Sched::SwitchedIn) => true,
                _ => false,
            },
            Some(KernelRing::Stacks) => Stacks::from_code(descriptor.event_type).is_some(),
            None => false,
        })
    }

    /// Draws the states until the end of the recording.
    pub(super) fn end_states(&mut self, state: ReplayState<'_>) -> io::Result<()> {
        let Some(part) = state.part::<KernelPart>() else { return Ok(()) };
        // What is not said by whom was recorded by the first ring of the kernel.
        let rings = self.recording.rings();
        let ring = (0..rings.count() as u32).find(|ring| KernelRing::from_ring(rings, *ring).is_some());
        let process = ring.map_or(0, |ring| rings.origin(ring).process);
        let mut shares = part.said().iter().filter_map(|said| match said {
            Said::Share(share) => Some(share),
            Said::Sample(_) => None,
        });
        shares.try_for_each(|share| self.draw_state(share, process))
    }

    fn draw_state(&mut self, share: &ThreadShare, recorded_by: u32) -> io::Result<()> {
        let (name, other) = match (share.did(), share.syscall()) {
            (Did::Unknown, _) => return Ok(()),
            (Did::Ran, _) => ("running".to_owned(), ""),
            (Did::Runnable, _) => ("runnable".to_owned(), "ran_instead"),
            (Did::Blocked, Some(call)) => (format!("blocked: {call}"), "woken_by"),
            (Did::Blocked, None) => ("blocked".to_owned(), "woken_by"),
        };
        let mut args = Args::default();
        args.push_some(other, share.other().map(|text| ArgValue::Text(text.to_owned().into())));
        let is_runnable = share.did() == Did::Runnable;
        let flow =
            self.states.as_mut().filter(|_| is_runnable).and_then(|states| states.woken.remove(&share.thread_id));
        let ends = flow.as_slice();
        let flows = FlowEnds { begins: &[], ends };
        let label = Label { name: &name, category: "scheduler", flows, ..Label::default() };
        let track = self.state_track(share.thread_id, share.from_nanos, share.process_id, recorded_by)?;
        self.whole_slice(track, (share.from_nanos, share.to_nanos), label, &args)
    }

    /// Draws where the arrow to a thread begins: at the thread that wakes it, if that is followed.
    fn draw_waker(
        &mut self,
        (woken, part): (&Woken, &KernelPart),
        descriptor: &Descriptor,
        recorded_by: u32,
    ) -> io::Result<()> {
        let Some(states) = &mut self.states else { return Ok(()) };
        let times = &part.view().times;
        let nanos = descriptor.record_epoch_nanos;
        if !times.was_woken_at(woken.thread_id, nanos) {
            return Ok(());
        }
        states.woken.remove(&woken.thread_id);
        let Some(process_id) = times.process_of(woken.waker_thread_id) else { return Ok(()) };
        states.last_flow += 1;
        let flow = FlowId(states.last_flow);
        states.woken.insert(woken.thread_id, flow);
        let name = times.name_of(woken.thread_id);
        let name = format!("wakes {}", name.as_deref().unwrap_or("a thread"));
        let flows = FlowEnds { begins: &[flow], ends: &[] };
        let label = Label { name: &name, category: "scheduler", flows, ..Label::default() };
        let track = self.state_track(woken.waker_thread_id, nanos, process_id, recorded_by)?;
        self.writer.instant(track, nanos, label, &Args::default())
    }

    /// Returns the track with the states of the thread that has a number at a time. It lies below that with the thread's
    /// spans, if there are some.
    fn state_track(&mut self, thread_id: u32, nanos: u64, process_id: u32, recorded_by: u32) -> io::Result<TrackId> {
        let outline = self.outline;
        let Some(kernel) = &outline.kernel else { return self.track(TrackKey::Process(recorded_by), None) };
        let turn = kernel.owners().turn(thread_id, nanos);
        let key = TrackKey::States(thread_id, turn);
        if let Some(track) = self.tracks.get(&key) {
            return Ok(*track);
        }
        let parent = match kernel.thread(thread_id, turn) {
            Some((process, thread, described)) => self.thread_track(process, thread, described)?,
            None => {
                let owners = kernel.owners();
                let process_id = owners.owner(thread_id, turn).map_or(process_id, |owner| owner.process_id);
                let rings = self.recording.capture.rings();
                let ring = rings.iter().find(|ring| ring.pid == process_id);
                let process = match ring.map(|ring| ring.process) {
                    // Nothing says whose thread it is.
                    _ if process_id == 0 => self.track(TrackKey::Process(recorded_by), None)?,
                    Some(process) => self.track(TrackKey::Process(process), None)?,
                    None => {
                        let name = owners.process_name(process_id);
                        self.other_process_track(process_id, name.as_deref().unwrap_or("process"))?
                    }
                };
                let name = owners.name(thread_id, turn);
                self.other_thread_track(process, (thread_id, turn), name.as_deref().unwrap_or("thread"))?
            }
        };
        self.plain_track(key, parent, "states")
    }
}
