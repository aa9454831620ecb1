//! What a program counts itself: the polls and wakes of its tasks.

use crate::fixtures::*;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Wake, Waker};

/// What the program counts itself.
#[derive(Default)]
pub struct Counters {
    tasks: AtomicU64,
    polls: AtomicU64,
    wakes: AtomicU64,
    /// Wakes beside the end of the task, or after it: whoever records may see them before or after the end.
    late_wakes: AtomicU64,
}

/// A future inside of a task, which counts.
pub struct Counted<F> {
    future: Pin<Box<F>>,
    counters: Arc<Counters>,
    is_over: Arc<AtomicBool>,
}

struct CountedWaker {
    inner: Waker,
    counters: Arc<Counters>,
    is_over: Arc<AtomicBool>,
}

impl Wake for CountedWaker {
    fn wake(self: Arc<Self>) {
        let was_over = self.is_over.load(SeqCst);
        self.inner.wake_by_ref();
        let is_late = was_over || self.is_over.load(SeqCst);
        let counter = if is_late { &self.counters.late_wakes } else { &self.counters.wakes };
        counter.fetch_add(1, SeqCst);
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.counters.polls.fetch_add(1, SeqCst);
        let (counters, is_over) = (self.counters.clone(), self.is_over.clone());
        let waker = Waker::from(Arc::new(CountedWaker { inner: context.waker().clone(), counters, is_over }));
        let result = self.future.as_mut().poll(&mut Context::from_waker(&waker));
        self.is_over.fetch_or(result.is_ready(), SeqCst);
        result
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
    }
}

impl Counters {
    pub fn of<F: Future>(self: &Arc<Self>, future: F) -> Counted<F> {
        self.tasks.fetch_add(1, SeqCst);
        Counted { future: Box::pin(future), counters: self.clone(), is_over: Arc::default() }
    }

    pub fn say(&self) {
        let counts = [&self.tasks, &self.polls, &self.wakes, &self.late_wakes];
        say(counts.map(|count| count.load(SeqCst).to_string()).join(" "));
    }
}

/// Checks the counts of the verb against what the program has said, and returns that: its tasks, polls and wakes.
#[track_caller]
pub fn check(counts: &Value, said: &str) -> [u64; 3] {
    let said: Vec<u64> = said.split(' ').map(|count| count.parse().unwrap()).collect();
    let [tasks, polls, wakes, late] = said.try_into().unwrap();
    let count = |what: &str| counts[what].number();
    assert_eq!((count("tasks"), count("polls")), (tasks, polls), "{counts:#}");
    assert!((wakes..=wakes + late).contains(&count("wakes")), "{wakes}, {late} beside the ends: {counts:#}");
    // On a busy machine, a thread may wait for its processor between a wake and its look at the end of the task.
    assert!(late <= 3 + wakes / 50, "{late} of {wakes} wakes beside the ends of tasks");
    [tasks, polls, wakes]
}
