//! The end of a thread. An ending thread returns the shards that recorders have assigned to it, and the free cells of
//! the span slab that it keeps for later spans.

use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::perf_recorder::core::PerfCore;
use crate::tracing::record::scope;
use crate::tracing::record::threads::shards::Assignment;
use crate::tracing::record::threads::thread;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// A shard that a recorder has assigned to this thread.
struct Assigned {
    recorder: Weak<PerfCore>,
    recorder_id: u64,
    assignment: Assignment,
}

/// The shards that recorders have assigned to one thread. The destructor of this thread-local runs when the thread
/// ends.
struct EndOfThread(RefCell<Vec<Assigned>>);

thread_local! {
    static END: EndOfThread = const { EndOfThread(RefCell::new(Vec::new())) };
}

/// Makes sure that the destructor of [`EndOfThread`] runs when the thread ends, even if the thread never gets a
/// shard. Call this before the thread takes a span cell or puts a cell back. No call is needed if the thread has a
/// shard. Returns false if the destructor has already run: then the thread's free list stays empty, and so must all
/// else that the destructor frees.
pub(in crate::tracing::record) fn register() -> bool {
    // The first use of the thread-local registers its destructor.
    END.try_with(|_| ()).is_ok()
}

/// Returns the shard that `recorder` has assigned to this thread, or `None` if it has assigned none.
pub(in crate::tracing::record) fn find(recorder: &PerfCore) -> Option<Assignment> {
    let find = |end: &EndOfThread| {
        let all = end.0.try_borrow().ok()?;
        all.iter().find(|assigned| assigned.recorder_id == recorder.id).map(|assigned| assigned.assignment)
    };
    END.try_with(find).ok().flatten()
}

/// Adds an assignment to the thread's list; the destructor will release it. Returns false if the destructor has
/// already run: then the caller must release the assignment.
pub(in crate::tracing::record) fn add(recorder: &Arc<PerfCore>, assignment: Assignment) -> bool {
    let add = |end: &EndOfThread| {
        if let Ok(mut all) = end.0.try_borrow_mut() {
            all.retain(|assigned| assigned.recorder.strong_count() > 0);
            all.push(Assigned { recorder: Arc::downgrade(recorder), recorder_id: recorder.id, assignment });
        }
    };
    END.try_with(add).is_ok()
}

/// Replaces an assignment that [`find`] has found.
pub(in crate::tracing::record) fn change(recorder: &PerfCore, assignment: Assignment) {
    let change = |end: &EndOfThread| {
        if let Ok(mut all) = end.0.try_borrow_mut() {
            let of_recorder = all.iter_mut().filter(|assigned| assigned.recorder_id == recorder.id);
            of_recorder.for_each(|assigned| assigned.assignment = assignment);
        }
    };
    // The destructor has not run: `find` has found the assignment.
    let _ = END.try_with(change);
}

impl Drop for EndOfThread {
    fn drop(&mut self) {
        thread::with(|thread| {
            scope::end_all(thread);
            thread.span_stack.end();
            thread.free_list.end(&SPAN_SLAB);
            thread.forget_last_ring();
            for assigned in self.0.get_mut().drain(..) {
                let Some(recorder) = assigned.recorder.upgrade() else { continue };
                if !recorder.belongs_to_this_process() {
                    continue;
                }
                // The ring is put into the thread's cache even if the assignment is provisional. `record` must find the
                // ring there: while this destructor runs, the thread's list of assignments cannot be accessed. Without
                // the cached ring, `record` would assign another shard to the thread.
                thread.cache_ring(&recorder, assigned.assignment);
                recorder.record(thread, PerfEvent::ThreadEnded, PerfExt::default(), &[]);
                recorder.shards.release(assigned.assignment.shard);
            }
        });
    }
}
