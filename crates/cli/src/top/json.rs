//! The screen as JSON.

use super::model::{TopRing, TopScreen, WINDOWS};
use super::names::TopName;
use super::open_spans::TopOpen;
use super::threads::TopThread;
use super::typed::TopEvent;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the screen as one object.
pub(super) fn object(screen: &TopScreen) -> Value {
    let mut names: Vec<&TopName> = screen.names.iter().collect();
    names.sort_by_key(|row| std::cmp::Reverse(row.stats.self_nanos));
    let windows = WINDOWS.iter().zip(screen.covered);
    let window =
        |(window, covered): (&Duration, Duration)| json!({ "s": window.as_secs(), "covered_s": covered.as_secs_f64() });
    json!({
        "at_ns": screen.at_epoch_nanos, "program": screen.programs, "windows": windows.map(window).collect::<Vec<_>>(),
        "events_per_s": screen.events_per_second, "spans_per_s": screen.spans_per_second,
        "errors_per_s": screen.errors_per_second, "names": names.into_iter().map(name).collect::<Vec<_>>(),
        "events": screen.events.iter().map(event).collect::<Vec<_>>(),
        "open": screen.open.all().map(open).collect::<Vec<_>>(),
        "open_spans": screen.open.surely + screen.open.perhaps, "may_have_closed": screen.open.perhaps,
        "threads": screen.threads.iter().map(thread).collect::<Vec<_>>(),
        "not_tracked": screen.not_tracked, "rings": screen.rings.iter().map(ring).collect::<Vec<_>>(),
        "lost": screen.lost, "ended": screen.has_ended, "programs": screen.programs_object,
    })
}

fn name(row: &TopName) -> Value {
    let stats = &row.stats;
    let wall = |index: usize| stats.wall_nanos.map(|nanos| nanos[index]);
    let kernel = |index: usize| row.kernel_nanos.map(|nanos| nanos[index]);
    json!({
        "name": row.key.name, "target": row.key.target, "count": stats.count, "per_s": stats.per_second,
        "self_ns": stats.self_nanos, "self_share": row.self_share,
        "p50_ns": wall(0), "p90_ns": wall(1), "p99_ns": wall(2), "max_ns": wall(3),
        "cpu_ns": kernel(0), "runnable_ns": kernel(1), "blocked_ns": kernel(2),
    })
}

fn event(row: &TopEvent) -> Value {
    json!({
        "name": row.name, "content": row.content, "count": row.count, "per_s": row.per_second, "bytes_per_s": row.bytes_per_second,
    })
}

fn open(span: &TopOpen) -> Value {
    json!({
        "id": span.id, "name": span.name, "target": span.target, "age_ns": span.age_nanos, "age_max_ns": span.age_max_nanos, "thread": span.thread,
        "opened_before_window": span.is_opened_before_window, "may_have_closed": span.may_have_closed,
        "pid": span.pid,
    })
}

fn thread(thread: &TopThread) -> Value {
    let span = thread.innermost.as_ref();
    json!({
        "name": thread.name, "tid": thread.os_thread_id, "pid": thread.pid, "span": span.map(|it| &it.key.name),
        "id": span.map(|it| it.id), "since_ns": span.map(|it| it.entered_epoch_nanos),
        "for_ns": span.map(|it| it.nanos), "path": span.map(|it| &it.path[..]).unwrap_or_default(),
        "certain": thread.is_certain, "seen": thread.is_seen,
    })
}

fn ring(ring: &TopRing) -> Value {
    json!({
        "name": ring.name, "shards": ring.shards, "fill": ring.fill, "past_s": ring.past_seconds,
        "events_per_s": ring.events_per_second,
    })
}
