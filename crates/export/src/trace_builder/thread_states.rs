//! What threads did, as they have measured it themselves. Each such thread gets a row of its states.

use super::tracks::TrackKey;
use super::{Args, Label, TraceBuilder};
use eventring::schema::perf::{PerfEvent, ThreadTime};
use eventring::tracing::{Catalog, IdMap, RawRecord, ThreadKey};
use std::io;

/// A state, from when and until when.
type State = (&'static str, u64, u64);

/// What is known of the states of each thread.
#[derive(Default)]
pub(super) struct ThreadStates(IdMap<ThreadKey, ThreadState>);

/// What is known of a thread since its first event, or its first one after a loss.
#[derive(Clone, Copy)]
struct ThreadState {
    /// The time up to which its states are told.
    told_nanos: u64,
    /// The last event.
    seen_nanos: u64,
}

impl ThreadState {
    fn new(nanos: u64) -> Self {
        Self { told_nanos: nanos, seen_nanos: nanos }
    }

    /// Takes a THREAD_SWITCHED, or a THREAD_TIME and whether it tells queue from sleep. Returns the states until then:
    /// the thread ran until its last event before, and left its processor in the gap after that.
    fn measured(&mut self, nanos: u64, times: Option<(ThreadTime, bool)>) -> [State; 3] {
        let gap_nanos = self.seen_nanos.min(nanos);
        // If an earlier THREAD_TIME is missing, nobody says what the thread did before this one's period.
        let since_nanos = times.map_or(0, |(times, _)| times.since_epoch_nanos);
        let from_nanos = self.told_nanos.max(since_nanos);
        let (ran_nanos, off, slept_nanos) = match times {
            Some((times, has_queue)) if times.merged == 0 => {
                let in_gap_nanos = times.cpu_nanos.saturating_sub(gap_nanos.saturating_sub(since_nanos));
                let ran_nanos = gap_nanos.max(since_nanos).saturating_add(in_gap_nanos).min(nanos);
                let (queue_nanos, _) = times.queue_and_sleep_nanos(nanos, has_queue);
                let queue_nanos = queue_nanos.min(nanos - ran_nanos);
                (ran_nanos, if has_queue { "sleeping" } else { "off" }, nanos - queue_nanos)
            }
            // What the thread did in this gap is not told apart from what it did in others.
            _ => (gap_nanos, "off", nanos),
        };
        let [ran_nanos, slept_nanos] = [ran_nanos, slept_nanos].map(|nanos| nanos.max(from_nanos));
        *self = Self { told_nanos: nanos.max(self.told_nanos), seen_nanos: nanos };
        [("running", from_nanos, ran_nanos), (off, ran_nanos, slept_nanos), ("runnable", slept_nanos, nanos)]
    }
}

impl ThreadStates {
    pub(super) fn kept_bytes(&self) -> u64 {
        self.0.len() as u64 * 64
    }

    /// Forgets threads of which events may be lost.
    pub(super) fn forget(&mut self, is_concerned: impl Fn(ThreadKey) -> bool) {
        self.0.retain(|thread, _| !is_concerned(*thread));
    }
}

impl TraceBuilder<'_> {
    /// Draws the states of a thread until an event of it, if the event tells them.
    pub(super) fn thread_state(
        &mut self,
        process: u32,
        thread: ThreadKey,
        record: &RawRecord<'_>,
        catalog: &Catalog,
    ) -> io::Result<()> {
        let nanos = record.epoch_nanos();
        let state = self.thread_states.0.entry(thread).or_insert_with(|| ThreadState::new(nanos));
        let times = record.thread_time();
        if times.is_none() && record.event != Some(PerfEvent::ThreadSwitched) {
            state.seen_nanos = state.seen_nanos.max(nanos);
            return Ok(());
        }
        let states = state.measured(nanos, times);
        let described = catalog.thread(thread.thread_id);
        let kernel = self.outline.kernel.as_ref();
        if described.os_thread_id.is_some_and(|id| kernel.is_some_and(|kernel| kernel.has_states(id))) {
            return Ok(());
        }
        self.thread_track(process, thread, &described)?;
        self.draw_thread_states(process, thread, &states)
    }

    /// Draws how long threads ran after the last time at which they left their processors.
    pub(super) fn end_thread_states(&mut self) -> io::Result<()> {
        let mut threads: Vec<_> = std::mem::take(&mut self.thread_states).0.into_iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (thread, ThreadState { told_nanos, seen_nanos }) in threads {
            let process = self.recording.ring(thread.recorder).process;
            // Only those that measure their times have a track.
            if self.tracks.contains_key(&TrackKey::ThreadState(process, thread)) {
                self.draw_thread_states(process, thread, &[("running", told_nanos, seen_nanos)])?;
            }
        }
        Ok(())
    }

    fn draw_thread_states(&mut self, process: u32, thread: ThreadKey, states: &[State]) -> io::Result<()> {
        for (name, from_nanos, to_nanos) in states.iter().filter(|(_, from, to)| from < to) {
            let track = self.track(TrackKey::ThreadState(process, thread), None)?;
            let label = Label { name, category: "scheduler", ..Label::default() };
            self.whole_slice(track, (*from_nanos, *to_nanos), label, &Args::default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(since_epoch_nanos: u64, cpu_nanos: u64, queue_nanos: u64) -> ThreadTime {
        ThreadTime { since_epoch_nanos, cpu_nanos, queue_nanos, voluntary_switches: 1, ..ThreadTime::default() }
    }

    /// Returns the states of a thread that has an event at 100 and at 150, and this one at 300.
    fn states(times: Option<(ThreadTime, bool)>) -> Vec<State> {
        let mut state = ThreadState { seen_nanos: 150, ..ThreadState::new(100) };
        state.measured(300, times).into_iter().filter(|(_, from, to)| from < to).collect()
    }

    #[test]
    fn in_the_gap_a_thread_runs_then_sleeps_then_waits_for_a_processor() {
        let expected = vec![("running", 100, 160), ("sleeping", 160, 270), ("runnable", 270, 300)];
        assert_eq!(states(Some((times(100, 60, 30), true))), expected);
        assert_eq!(states(Some((times(100, 60, 0), false))), [("running", 100, 160), ("off", 160, 300)]);
        assert_eq!(states(Some((times(100, 200, 0), true))), [("running", 100, 300)]);
    }

    #[test]
    fn what_is_measured_together_with_other_gaps_is_off() {
        assert_eq!(states(None), [("running", 100, 150), ("off", 150, 300)]);
        let merged = ThreadTime { merged: 1, ..times(50, 60, 30) };
        assert_eq!(states(Some((merged, true))), [("running", 100, 150), ("off", 150, 300)]);
    }

    #[test]
    fn before_the_period_of_the_first_event_after_a_missing_one_nothing_is_told() {
        let expected = [("running", 200, 220), ("sleeping", 220, 290), ("runnable", 290, 300)];
        assert_eq!(states(Some((times(200, 20, 10), true))), expected);
        // Numbers that contradict one another.
        assert_eq!(states(Some((times(400, u64::MAX, u64::MAX), true))), []);
    }
}
