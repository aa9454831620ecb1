//! The threads that wait for locks, and deadlocks.

use super::screen::AGE_WIDTH;
use crate::text::paint::{BOLD, DIM, ERROR};
use crate::text::perf::thread_label;
use eventring::tracing::CallSite;
use eventring_capture::numbers::time;
use eventring_live::{LiveState, LockUser, ThreadLocks, WaitForLock};
use schemars::JsonSchema;
use serde::Serialize;

/// The number of waits that are shown.
const WAITS_MAX: usize = 40;

/// A wait for a lock in JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct WaitRow<'a> {
    lock: &'a str,
    /// The number of the lock in its program.
    lock_id: u64,
    file: Option<&'a str>,
    line: Option<u32>,
    /// `mutex`, `read`, `write` or `condition`.
    mode: &'static str,
    waited_ns: u64,
    waiter: UserRow<'a>,
    /// Null if it is not known, and of conditions.
    holder: Option<UserRow<'a>>,
    pid: u32,
}

/// Who waits for a lock or holds it.
#[derive(Serialize, JsonSchema)]
struct UserRow<'a> {
    thread_id: u32,
    tid: Option<u32>,
    thread: Option<String>,
    /// The id of the span in which the lock was taken, or the wait began; 0 without one.
    span_id: u64,
    /// Null if it is not open.
    span: Option<&'a str>,
}

impl<'a> WaitRow<'a> {
    pub(super) fn new(wait: &WaitForLock<'a>, state: LiveState<'_>) -> Self {
        Self {
            lock: wait.site.map_or("", |site| &site.name),
            lock_id: wait.lock,
            file: wait.site.and_then(|site| site.file.as_deref()),
            line: wait.site.and_then(|site| site.line),
            mode: wait.mode,
            waited_ns: wait.waited_nanos,
            waiter: UserRow::new(&wait.waiter),
            holder: wait.holder.as_ref().map(UserRow::new),
            pid: state.programs().get(wait.program_index).map_or(0, |program| program.pid),
        }
    }
}

impl<'a> UserRow<'a> {
    fn new(user: &LockUser<'a>) -> Self {
        Self {
            thread_id: user.thread.id,
            tid: user.thread.os_thread_id,
            thread: user.thread.name.clone(),
            span_id: user.span,
            span: user.span_site.map(|site| &*site.name),
        }
    }
}

/// Returns the lines about locks.
pub(super) fn lines(locks: &ThreadLocks<'_>) -> Vec<String> {
    let mut lines: Vec<String> = locks.waits.iter().take(WAITS_MAX).map(line).collect();
    if let Some(more) = locks.waits.len().checked_sub(WAITS_MAX).filter(|more| *more > 0) {
        lines.push(format!("{:>AGE_WIDTH$}  {DIM}… and {more} more threads wait for locks{DIM:#}", ""));
    }
    lines.extend(locks.deadlocks.iter().map(|cycle| deadlock(locks, cycle)));
    lines
}

fn line(wait: &WaitForLock<'_>) -> String {
    let holder = match &wait.holder {
        Some(holder) => format!(", held by {}", user(holder)),
        None => String::new(),
    };
    let what = if wait.mode == "condition" { "condition" } else { "lock" };
    let (age, who, name) = (time(wait.waited_nanos), user(&wait.waiter), name(wait.site));
    format!("{age:>AGE_WIDTH$}  {who} waits for {what} {BOLD}{name}{BOLD:#}{}{holder}", place(wait.site))
}

fn deadlock(locks: &ThreadLocks<'_>, cycle: &[usize]) -> String {
    let waits = cycle.iter().map(|at| &locks.waits[*at]);
    let next = waits.clone().cycle().skip(1);
    let mut text = String::new();
    for (wait, next) in waits.zip(next) {
        let who = if text.is_empty() { user(&wait.waiter) } else { ", which".to_owned() };
        text += &format!("{who} waits for lock {} held by {}", name(wait.site), user(&next.waiter));
    }
    format!("{ERROR}deadlock:{ERROR:#} {text}")
}

/// Names the span and the thread.
fn user(user: &LockUser<'_>) -> String {
    match user.span_site {
        Some(site) => format!("`{}` ({})", site.name, thread_label(&user.thread)),
        None => thread_label(&user.thread),
    }
}

fn name(site: Option<&CallSite>) -> String {
    site.map_or_else(|| "`?`".to_owned(), |site| format!("`{}`", site.name))
}

fn place(site: Option<&CallSite>) -> String {
    let of = |site: &CallSite| Some(format!(" ({}:{})", site.file.as_ref()?, site.line?));
    site.and_then(of).unwrap_or_default()
}
