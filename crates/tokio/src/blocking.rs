//! Closures on tokio's threads for blocking calls. Such a task has one poll: the call.

use crate::record::{NewTask, outcome, task_span};
use std::any::type_name;
use std::panic::Location;
use tokio::task::JoinHandle;
use tracing::Span;

/// Runs a closure where it may block, as [`tokio::task::spawn_blocking`] does. The task is of the kind `blocking`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(eventring_tokio::spawn_blocking(|| 7).await?, 7);
/// # Ok::<(), tokio::task::JoinError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn_blocking<F, R>(call: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    tokio::task::spawn_blocking(traced(type_name::<F>(), Location::caller(), call))
}

/// Runs a closure as [`spawn_blocking`] does, with a name.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert_eq!(eventring_tokio::spawn_blocking_named("seven", || 7).await?, 7);
/// # Ok::<(), tokio::task::JoinError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn_blocking_named<F, R>(name: &str, call: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    tokio::task::spawn_blocking(traced(name, Location::caller(), call))
}

fn traced<F, R>(name: &str, spawned_at: &'static Location<'static>, call: F) -> impl FnOnce() -> R + use<F, R>
where
    F: FnOnce() -> R,
{
    let span = task_span(NewTask { name, kind: "blocking", spawned_at });
    let ends = span.map(|span| Ends { span, outcome: "cancelled" });
    move || {
        let Some(mut ends) = ends else { return call() };
        ends.outcome = "panicked";
        let result = ends.span.in_scope(call);
        ends.outcome = "done";
        result
    }
}

/// Records the outcome when it is dropped.
struct Ends {
    span: Span,
    outcome: &'static str,
}

impl Drop for Ends {
    fn drop(&mut self) {
        outcome(&self.span, self.outcome);
    }
}
