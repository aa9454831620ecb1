//! The end of a thread. An ending thread gives back its shards and its free span cells.

use super::scope_end;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::threads::end_of_thread::EndOfThread;
use crate::tracing::record::threads::thread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        thread::with(|thread| {
            scope_end::end_all(thread);
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
            #[cfg(feature = "allocations")]
            crate::tracing::record::threads::live_bytes::set_recording(false);
        });
    }
}
