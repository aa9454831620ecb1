//! Tests of the times that a replay gives to spans.

use super::tests::{close, enter, exit, new, record};
use super::*;
use crate::schema::perf::ThreadTime;
use crate::tracing::read::record::PerfContent;
use crate::tracing::read::time_spent::TimeSpent;
use proptest::prelude::*;

/// A thread that is simulated: it knows what it did, and records what the recorder would.
struct Thread {
    now: u64,
    cpu: u64,
    /// The last THREAD_TIME: its time, and what the thread had run, queued until then.
    last: (u64, u64, u64),
    queue: u64,
    sleep: u64,
    is_off: bool,
    merged: u32,
    spans: SpanReplay,
    last_epoch_nanos: u64,
}

impl Thread {
    fn begin() -> Self {
        let mut thread = Self {
            now: 1000,
            cpu: 0,
            last: (1000, 0, 0),
            queue: 0,
            sleep: 0,
            is_off: true,
            merged: 0,
            spans: SpanReplay::new(),
            last_epoch_nanos: 0,
        };
        thread.measure(true);
        thread
    }

    fn push(&mut self, content: PerfContent) {
        self.last_epoch_nanos = self.now;
        self.spans.push(0, &record(self.now, 1, content));
    }

    /// What the recorder does before an event.
    fn measure(&mut self, is_asked: bool) {
        if !std::mem::take(&mut self.is_off) {
            return;
        }
        if !is_asked {
            self.merged += 1;
            return self.push(PerfContent::ThreadSwitched { span: None });
        }
        let (since_epoch_nanos, cpu, queue) = std::mem::replace(&mut self.last, (self.now, self.cpu, self.queue));
        let times = ThreadTime {
            since_epoch_nanos,
            cpu_nanos: self.cpu - cpu,
            queue_nanos: self.queue - queue,
            merged: std::mem::take(&mut self.merged),
            voluntary_switches: 1,
            ..ThreadTime::default()
        };
        self.push(PerfContent::ThreadTime { span: None, times: Some(times), flags: 0 });
    }

    fn run(&mut self, nanos: u64) {
        (self.now, self.cpu) = (self.now + nanos, self.cpu + nanos);
    }

    fn leave(&mut self, queue: u64, sleep: u64) {
        self.now += queue + sleep;
        (self.queue, self.sleep) = (self.queue + queue, self.sleep + sleep);
        self.is_off = true;
    }

    /// Returns what the thread did so far.
    fn done(&self) -> [u64; 3] {
        [self.cpu, self.queue, self.sleep]
    }
}

fn parts(times: TimeSpent) -> [u64; 3] {
    assert_eq!(times.unmeasured_nanos, 0);
    [times.cpu_nanos, times.queue_nanos, times.sleep_nanos]
}

fn times_of(spans: SpanReplay, now: u64) -> Vec<Option<TimeSpent>> {
    spans.finish(now).iter().map(Span::times).collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Run(u64),
    Leave(u64, u64),
    Enter,
    Exit,
}

fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let step = prop_oneof![
        (1_u64..1000).prop_map(Step::Run),
        (0_u64..1000, 0_u64..1000).prop_map(|(queue, sleep)| Step::Leave(queue, sleep)),
        Just(Step::Enter),
        Just(Step::Exit),
    ];
    prop::collection::vec((step, any::<bool>()), 1..60)
}

/// Replays steps. Returns what the thread did in each span, in the order of their ids, and what the replay says.
fn replayed(steps: &[(Step, bool)], is_always_asked: bool) -> (Vec<[u64; 3]>, Vec<Option<TimeSpent>>) {
    let mut thread = Thread::begin();
    let (mut open, mut done) = (Vec::new(), Vec::new());
    for (step, is_asked) in steps {
        let is_asked = is_always_asked || *is_asked;
        match step {
            Step::Run(nanos) => thread.run(*nanos),
            Step::Leave(queue, sleep) => thread.leave(*queue, *sleep),
            Step::Enter => {
                thread.measure(is_asked);
                let id = done.len() as u64 + 1;
                thread.push(new(id, 0));
                thread.push(enter(id));
                open.push(id);
                done.push(thread.done());
            }
            Step::Exit => {
                let Some(id) = open.pop() else { continue };
                thread.measure(is_asked);
                thread.push(exit(id));
                let at = &mut done[id as usize - 1];
                *at = std::array::from_fn(|part| thread.done()[part] - at[part]);
            }
        }
    }
    // Sooner or later, the thread leaves its processor once more and is asked.
    thread.is_off |= thread.merged > 0;
    thread.measure(true);
    // Open spans count until the thread's last look.
    thread.push(enter(1000));
    thread.push(exit(1000));
    for id in open {
        let at = &mut done[id as usize - 1];
        *at = std::array::from_fn(|part| thread.done()[part] - at[part]);
    }
    let now = thread.last_epoch_nanos;
    let mut times = times_of(thread.spans, now);
    times.pop();
    (done, times)
}

proptest! {
    #[test]
    fn a_thread_that_is_always_asked_has_exact_times(steps in steps()) {
        let (done, times) = replayed(&steps, true);
        for (done, times) in done.iter().zip(times) {
            prop_assert_eq!(times.map_or([0; 3], parts), *done);
            prop_assert!(times.is_none_or(|times| times.is_exact));
        }
    }

    #[test]
    fn a_thread_that_is_asked_now_and_then_has_times_that_add_up(steps in steps()) {
        let mut all = vec![(Step::Enter, true)];
        all.extend(steps.iter().filter(|(step, _)| !matches!(step, Step::Exit)));
        let (done, times) = replayed(&all, false);
        // The first span is open all the time, so the sums are right, but for roundings.
        let first = times[0].map_or([0; 3], parts);
        for part in 0..3 {
            prop_assert!(first[part].abs_diff(done[0][part]) <= all.len() as u64, "{:?} {:?}", first, done[0]);
        }
    }

    #[test]
    fn the_parts_of_ended_spans_add_up_to_their_time(steps in steps()) {
        let (done, times) = replayed(&steps, false);
        for (done, times) in done.iter().zip(times) {
            if let Some(times) = times {
                prop_assert_eq!(times.total_nanos(), done.iter().sum::<u64>());
                prop_assert!(times.is_exact || times.total_nanos() > 0);
            }
        }
    }
}

#[test]
fn a_slice_without_all_its_thread_times_is_unmeasured() {
    let mut thread = Thread::begin();
    thread.push(new(1, 0));
    thread.push(enter(1));
    thread.leave(0, 500);
    // This one is lost.
    thread.last = (thread.now, thread.cpu, thread.queue);
    thread.run(10);
    thread.push(new(2, 0));
    thread.push(enter(2));
    thread.leave(30, 70);
    thread.measure(true);
    thread.push(exit(2));
    thread.push(exit(1));
    let now = thread.now;
    let times = times_of(thread.spans, now);
    assert_eq!((times[0], times[1].map(parts)), (None, Some([0, 30, 70])));
}

#[test]
fn what_an_open_span_did_since_its_threads_last_event_is_not_known() {
    let mut thread = Thread::begin();
    thread.push(new(1, 0));
    thread.push(enter(1));
    thread.run(100);
    thread.leave(0, 50);
    thread.measure(true);
    thread.push(new(2, 1));
    let now = thread.now + 1000;
    let times = times_of(thread.spans, now)[0].unwrap();
    assert_eq!((times.cpu_nanos, times.sleep_nanos, times.unmeasured_nanos), (100, 50, 1000));
}

#[test]
fn an_exit_after_the_close_and_a_span_inside_itself_count_once() {
    let mut thread = Thread::begin();
    thread.push(new(1, 0));
    thread.push(enter(1));
    thread.run(10);
    thread.push(enter(1));
    thread.leave(5, 15);
    thread.measure(true);
    thread.push(exit(1));
    thread.run(7);
    thread.push(close(1));
    thread.run(100);
    thread.push(exit(1));
    let now = thread.now;
    // The close does not look, so nobody knows what the thread did just before.
    let times = times_of(thread.spans, now)[0].unwrap();
    assert_eq!((times.cpu_nanos, times.queue_nanos, times.sleep_nanos, times.unmeasured_nanos), (10, 5, 15, 7));
}

#[test]
fn where_the_kernel_does_not_tell_the_queue_what_is_not_cpu_is_unmeasured() {
    let mut spans = SpanReplay::new();
    let time = |since, cpu_nanos| PerfContent::ThreadTime {
        span: None,
        times: Some(ThreadTime { since_epoch_nanos: since, cpu_nanos, ..ThreadTime::default() }),
        flags: crate::schema::perf::flags::NO_QUEUE,
    };
    for (nanos, content) in [(10, time(10, 0)), (11, new(1, 0)), (11, enter(1)), (91, time(10, 21)), (91, exit(1))] {
        spans.push(0, &record(nanos, 1, content));
    }
    let times = times_of(spans, 100)[0].unwrap();
    assert_eq!((times.cpu_nanos, times.unmeasured_nanos), (20, 60));
}

#[test]
fn threads_that_tell_only_their_times_take_a_bounded_memory() {
    let mut spans = SpanReplay::live(16);
    for thread in 0..100_000 {
        let time = PerfContent::ThreadTime { span: None, times: Some(ThreadTime::default()), flags: 0 };
        spans.push(0, &record(u64::from(thread) + 1, thread, time));
    }
    // There is room again for a thread that enters a span.
    for thread in 100_000..140_000 {
        spans.push(0, &record(200_000, thread, enter(1)));
    }
    assert!(spans.open_slices().count() > 0);
    assert!(spans.thread_counts().1 <= 1 << 16, "{}", spans.thread_counts().1);
}
