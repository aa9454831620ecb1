//! The threads that wait for locks of `eventring::sync`, and deadlocks.

use crate::core::tabled::TabledLocks;
use crate::state::LiveState;
use eventring::now::LockCell;
use eventring::tracing::{CallSite, SpanId, Thread};
use eventring_tasks::thread_waits;
use std::sync::Arc;

/// The waits of threads for locks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ThreadLocks<'s> {
    /// The waits, by program, and of each program the longest first.
    pub waits: Vec<WaitForLock<'s>>,
    /// The deadlocks: the places of waits in `waits`, each for a lock that the thread of the next one holds. The last
    /// one is for a lock of the first.
    pub deadlocks: Vec<Vec<usize>>,
}

/// A thread's wait for a lock.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WaitForLock<'s> {
    /// The index of the program in [`LiveState::programs`].
    pub program_index: usize,
    /// The number of the lock in its program.
    pub lock: u64,
    /// The call site, which has the name, the file and the line of the lock. `None` if it is not known.
    pub site: Option<&'s CallSite>,
    /// `mutex`, `read`, `write` or `condition`.
    pub mode: &'static str,
    /// How long the thread has waited, in nanoseconds.
    pub waited_nanos: u64,
    /// Who waits.
    pub waiter: LockUser<'s>,
    /// Who holds the lock. `None` if that is not known, and of conditions.
    pub holder: Option<LockUser<'s>>,
}

/// Who waits for a lock or holds it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockUser<'s> {
    /// The thread.
    pub thread: Arc<Thread>,
    /// The id of the span in which it began to wait, or took the lock; 0 if it was in none.
    pub span: u64,
    /// The call site of this span, if the span is still open.
    pub span_site: Option<&'s CallSite>,
}

impl<'s> LiveState<'s> {
    /// Returns the threads that wait for locks of `eventring::sync`, as tables of the present show them at the end of a
    /// capture, in [`Live::of_present`](crate::Live::of_present), or when
    /// [`Live::look_at_locks`](crate::Live::look_at_locks) was called last.
    #[must_use]
    pub fn thread_locks(&self) -> ThreadLocks<'s> {
        let mut all = ThreadLocks::default();
        for of in &self.core.locks {
            let (found, before) = (thread_waits(&of.cells), all.waits.len());
            all.waits.extend(found.waits.iter().map(|(wait, holder)| self.wait(of, wait, holder.as_ref())));
            let placed = |cycle: Vec<usize>| cycle.into_iter().map(|at| before + at).collect();
            all.deadlocks.extend(found.deadlocks.into_iter().map(placed));
        }
        all
    }

    fn wait(&self, of: &TabledLocks, wait: &LockCell, holder: Option<&LockCell>) -> WaitForLock<'s> {
        let catalog = &self.replayed.tables.catalogs[of.catalog];
        let user = |cell: &LockCell| LockUser {
            thread: catalog.thread(cell.thread),
            span: cell.span,
            span_site: self.site_of_open(of.process, cell.span),
        };
        let now_nanos = self.core.processes[of.process].now_nanos(self.now_epoch_nanos());
        WaitForLock {
            program_index: of.process,
            lock: wait.lock,
            site: catalog.known_call_site(wait.site).map(Arc::as_ref),
            mode: wait.mode(),
            waited_nanos: now_nanos.saturating_sub(wait.since_epoch_nanos),
            waiter: user(wait),
            holder: holder.map(user),
        }
    }

    /// Returns the call site of a span, if the span is open.
    fn site_of_open(&self, process: usize, id: u64) -> Option<&'s CallSite> {
        if self.core.tabled.is_none() {
            return self.replayed.span(process, SpanId::new(id)?)?.call_site.as_deref();
        }
        let of_process = self.core.tabled.iter().flatten().filter(|of| of.process == process);
        let mut found = of_process.filter_map(|of| Some((of, &of.spans.spans()[of.spans.place_of(id)?])));
        found.next().and_then(|(of, span)| of.call_site(span, self.replayed.tables))
    }
}
