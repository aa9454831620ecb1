//! What a program counts itself: the polls and wakes of its tasks.

use eventring_stress::child::say;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

/// What the program counts itself.
#[derive(Default)]
pub struct Counters {
    tasks: AtomicU64,
    polls: AtomicU64,
    wakes: AtomicU64,
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
        if !self.is_over.load(SeqCst) {
            self.counters.wakes.fetch_add(1, SeqCst);
        }
        self.inner.wake_by_ref();
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
        say(format!("{} {} {}", self.tasks.load(SeqCst), self.polls.load(SeqCst), self.wakes.load(SeqCst)));
    }
}
