//! The shards that recorders have assigned to a thread. When it ends, it gives them back
//! (`spans/at_thread_end.rs`).

use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::rings::shards::Assignment;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// A shard that a recorder has assigned to this thread.
pub(in crate::tracing::record) struct Assigned {
    pub(in crate::tracing::record) recorder: Weak<PerfCore>,
    recorder_id: u64,
    pub(in crate::tracing::record) assignment: Assignment,
}

/// The shards that recorders have assigned to one thread. The destructor of this thread-local runs when the thread
/// ends.
pub(in crate::tracing::record) struct EndOfThread(pub(in crate::tracing::record) RefCell<Vec<Assigned>>);

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
