//! Spans of tokio tasks, which move between workers.

use super::next_uid;
use crate::fixtures::*;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

const TASKS: u64 = 400;
const WORKERS: usize = 3;

pub fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build().unwrap();
    let root = tracing::info_span!("runtime", uid = next_uid());
    runtime.block_on(
        async {
            let tasks: Vec<_> = (0..TASKS).map(|n| tokio::spawn(request(n).instrument(task_span(n)))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        }
        .instrument(root),
    );
}

fn task_span(n: u64) -> Span {
    match n % 3 {
        0 => tracing::info_span!("task", uid = next_uid(), n, status = Empty),
        1 => tracing::info_span!(parent: None, "detached task", uid = next_uid(), n, status = Empty),
        _ => tracing::info_span!(parent: Span::current(), "child task", uid = next_uid(), n, status = Empty),
    }
}

async fn request(n: u64) {
    for step in 0..n % 5 {
        query(n, step).await;
    }
    // The span that is current here becomes the parent of the new task's events. The task may run longer than this
    // span.
    let orphan = tokio::spawn(
        async move {
            tokio::time::sleep(Duration::from_micros(n % 7 * 100)).await;
            tracing::info!(uid = next_uid(), n, "in the span of another task");
        }
        .in_current_span(),
    );
    if n.is_multiple_of(2) {
        orphan.await.unwrap();
    }
    let span = Span::current();
    let (late, _) = tokio::join!(
        async { tokio::task::yield_now().await }.instrument(tracing::debug_span!("left", uid = next_uid())),
        async { tokio::task::yield_now().await }.instrument(tracing::debug_span!("right", uid = next_uid())),
    );
    span.record("status", format!("{late:?}"));
}

#[tracing::instrument(skip_all, fields(uid = next_uid(), step = step))]
async fn query(n: u64, step: u64) {
    let _handle = Span::current();
    tokio::task::yield_now().await;
    let blocking = tracing::info_span!("blocking", uid = next_uid());
    blocking.follows_from(Span::current());
    tokio::task::spawn_blocking(move || blocking.in_scope(|| tracing::debug!(uid = next_uid(), "on another thread")))
        .await
        .unwrap();
    if n.is_multiple_of(11) {
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
}
