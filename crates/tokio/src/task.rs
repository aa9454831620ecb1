//! A future that is recorded as a task.

use crate::record::{NewTask, Recorded, outcome, task_span};
use crate::waker::Shared;
use pin_project_lite::pin_project;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tracing::Span;

pin_project! {
    /// A future that is recorded as a task: its polls, its wakes, and how it ended.
    ///
    /// [`spawn`](crate::spawn) and its sisters make it. Whoever has another executor, or polls futures otherwise, makes
    /// it himself:
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let task = eventring_tokio::Task::new("answer", async { 42 });
    /// assert_eq!(task.await, 42);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use = "futures do nothing unless they are polled"]
    #[derive(Debug)]
    pub struct Task<F> {
        // It is dropped before the span closes.
        #[pin]
        future: F,
        traced: Option<Traced>,
    }

    impl<F> PinnedDrop for Task<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(traced) = this.project().traced {
                traced.end("cancelled");
            }
        }
    }
}

impl<F> Task<F> {
    /// Makes a task of a future. It begins now, not at its first poll.
    #[track_caller]
    pub fn new(name: &str, future: F) -> Self {
        Self::from_new_task(NewTask { name, kind: "async", spawned_at: Location::caller() }, future)
    }

    #[inline]
    pub(crate) fn from_new_task(new: NewTask<'_>, future: F) -> Self {
        Self { future, traced: Traced::new(new) }
    }

    /// Returns the span of the task. It is disabled if the subscriber does not want it, or if the task has ended.
    ///
    /// ```
    /// let task = eventring_tokio::Task::new("nobody records", async {});
    /// assert!(task.span().is_disabled());
    /// ```
    pub fn span(&self) -> Span {
        self.traced.as_ref().map_or_else(Span::none, |traced| traced.span.clone())
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(traced) = this.traced else { return this.future.poll(context) };
        let result = traced.poll(context, |context| this.future.poll(context));
        if result.is_ready() {
            // The span closes.
            *this.traced = None;
        }
        result
    }
}

/// The recording of a task.
struct Traced {
    shared: Arc<Shared>,
    span: Span,
    /// The waker for the next poll, if the last poll was woken before its end.
    kept: Option<Waker>,
    has_outcome: bool,
}

impl Traced {
    fn new(new: NewTask<'_>) -> Option<Self> {
        let span = task_span(new)?;
        let recorded = |(id, dispatch): (&tracing::Id, &tracing::Dispatch)| Recorded {
            id: id.clone(),
            dispatch: dispatch.clone(),
        };
        let shared = Shared::new(span.with_subscriber(recorded)?);
        Some(Self { shared, span, kept: None, has_outcome: false })
    }

    #[inline]
    fn poll<T>(&mut self, context: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let waker = self.shared.begin_poll(context.waker(), self.kept.take());
        let panics = Panics(self);
        let entered = panics.0.span.enter();
        let result = poll(&mut Context::from_waker(&waker));
        drop(entered);
        if result.is_ready() {
            panics.0.end("done");
        }
        std::mem::forget(panics);
        self.kept = self.shared.end_poll(waker);
        result
    }

    fn end(&mut self, how: &'static str) {
        if !self.has_outcome {
            self.has_outcome = true;
            self.shared.end();
            outcome(&self.span, how);
        }
    }
}

impl std::fmt::Debug for Traced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traced").field("span", &self.span).finish_non_exhaustive()
    }
}

/// Notes the outcome if a poll unwinds.
struct Panics<'t>(&'t mut Traced);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        self.0.end("panicked");
    }
}
