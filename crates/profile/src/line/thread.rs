//! The time line of one thread, from the scheduler's events.

use super::syscalls::{WaitsFor, waits_for};
use super::times::Times;
use crate::schema::{OffState, SwitchedOut, ThreadName, Woken};
use std::sync::Arc;

/// What a thread does.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Doing {
    /// Nothing says it.
    Unknown,
    /// It runs.
    Runs,
    /// It could run, and another thread does.
    Ready {
        /// The name of the thread that ran when it had to stop; `None` if it was woken.
        other: Option<Arc<str>>,
        /// The stack at which it left its processor; 0 if it is not known.
        stack_id: u64,
    },
    /// It waits for something.
    Waits {
        what: WaitsFor,
        /// The number of the system call, if it is known.
        syscall: Option<i32>,
        /// The name and process of the thread that has woken it.
        waker: Option<(Arc<str>, u32)>,
        /// The stack at which it left its processor; 0 if it is not known.
        stack_id: u64,
    },
}

/// The time line of one thread: what it does from each time on.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadLine {
    changes: Vec<(u64, Doing)>,
    /// The number of changes from which on it is worth while to forget some.
    many: usize,
}

/// The number of changes that are kept in any case.
const FEW: usize = 64;

impl ThreadLine {
    /// Forgets what happened between these windows, but for the last change before each.
    pub(crate) fn forget_between(&mut self, windows: &Times) {
        if self.changes.len() < self.many.max(FEW) {
            return;
        }
        let window_of = |nanos: u64| (windows.next_of(nanos), windows.overlap(nanos, nanos));
        let mut kept: Vec<(u64, Doing)> = Vec::with_capacity(self.changes.len() / 2);
        let mut before = None;
        for change in self.changes.drain(..) {
            let place = window_of(change.0);
            // A later change outside of windows, before the same window, takes the place of the last one.
            if !place.1 && before == Some(place) {
                kept.pop();
            }
            before = Some(place);
            kept.push(change);
        }
        self.many = 2 * kept.len();
        self.changes = kept;
    }

    /// Forgets all changes but the last one.
    pub(crate) fn keep_last(&mut self) {
        self.changes.drain(..self.changes.len().saturating_sub(1));
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn switched_out(&mut self, nanos: u64, event: &SwitchedOut) {
        let doing = match event.state {
            OffState::Runnable => {
                let other = Some(name_of(&event.next_name, event.next_thread_id));
                Doing::Ready { other, stack_id: event.stack_id }
            }
            OffState::Ended => Doing::Unknown,
            state => {
                let syscall = Some(event.syscall).filter(|number| *number >= 0);
                let in_none = event.syscall == -1;
                let what = waits_for(syscall, in_none, state);
                Doing::Waits { what, syscall, waker: None, stack_id: event.stack_id }
            }
        };
        self.push(nanos, doing);
    }

    pub(crate) fn woken(&mut self, nanos: u64, event: &Woken) {
        let stack_id = match self.changes.last_mut() {
            Some((_, Doing::Waits { waker, stack_id, .. })) => {
                if event.waker_thread_id != 0 {
                    *waker = Some((name_of(&event.waker_name, event.waker_thread_id), event.waker_process_id));
                }
                *stack_id
            }
            // It is new, or what it did was lost.
            None | Some((_, Doing::Unknown)) => 0,
            // It had not left its processor yet.
            Some((_, Doing::Runs | Doing::Ready { .. })) => return,
        };
        self.push(nanos, Doing::Ready { other: None, stack_id });
    }

    /// Returns true if the thread was woken at this time.
    pub(crate) fn was_woken_at(&self, nanos: u64) -> bool {
        matches!(self.changes.last(), Some((at, Doing::Ready { other: None, .. })) if *at == nanos)
    }

    pub(crate) fn switched_in(&mut self, nanos: u64) {
        self.push(nanos, Doing::Runs);
    }

    /// Nothing is known from here on.
    pub(crate) fn lose(&mut self, nanos: u64) {
        self.push(nanos, Doing::Unknown);
    }

    fn push(&mut self, nanos: u64, doing: Doing) {
        // The buffers of the kernel are read one after the other, so times may step back a little.
        let nanos = nanos.max(self.changes.last().map_or(0, |(at, _)| *at));
        self.changes.push((nanos, doing));
    }

    /// Returns the time since when the thread has waited for nothing, until `to`; at least `from`.
    pub(crate) fn busy_since(&self, from: u64, to: u64) -> u64 {
        let mut since = from;
        self.between(from, to, |_, end, doing| match doing {
            Doing::Waits { .. } | Doing::Unknown => since = end,
            Doing::Runs | Doing::Ready { .. } => {}
        });
        since
    }

    /// Calls `each` for the parts of a time in which the thread did one thing.
    pub(crate) fn between(&self, from: u64, to: u64, mut each: impl FnMut(u64, u64, &Doing)) {
        let mut at = self.changes.partition_point(|(nanos, _)| *nanos <= from);
        let mut begin = from;
        // Before the first change, what it did is told by that change: who leaves a processor has run.
        let before_first = match self.changes.first() {
            Some((_, Doing::Waits { .. } | Doing::Ready { other: Some(_), .. })) => Doing::Runs,
            _ => Doing::Unknown,
        };
        while begin < to {
            let doing = at.checked_sub(1).and_then(|at| self.changes.get(at)).map_or(&before_first, |(_, doing)| doing);
            let end = self.changes.get(at).map_or(to, |(nanos, _)| *nanos).min(to);
            if end > begin {
                each(begin, end, doing);
            }
            begin = end;
            at += 1;
        }
    }
}

/// Returns the name of a thread as text.
pub(crate) fn name_of(name: &ThreadName, thread_id: u32) -> Arc<str> {
    let bytes = name.map(|byte| byte.0);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    match String::from_utf8_lossy(&bytes[..end]) {
        name if name.is_empty() && thread_id == 0 => "the idle thread".into(),
        name if name.is_empty() => format!("thread {thread_id}").into(),
        name => name.as_ref().into(),
    }
}
