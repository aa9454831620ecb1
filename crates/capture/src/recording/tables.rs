//! The rings of a recording, and the names of call sites and threads. The tables grow with the recording.

use super::rings::RecordedRings;
use eventring::tracing::{Catalog, Thread, ThreadKey};
use std::sync::Arc;

/// The rings of a recording, and the names of their call sites and threads.
#[derive(Default)]
pub struct RecordingTables {
    /// The rings.
    pub rings: Arc<RecordedRings>,
    /// The call sites and threads of each perf recorder, in the order of [`RecordedRings::recorders`].
    pub catalogs: Vec<Catalog>,
}

impl RecordingTables {
    /// Returns what is known of a thread; `None` if its recorder is not known.
    pub fn thread(&self, thread: ThreadKey) -> Option<Arc<Thread>> {
        let recorder = self.rings.recorders().iter().position(|recorder| *recorder == thread.recorder)?;
        Some(self.catalogs.get(recorder)?.thread(thread.thread_id))
    }
}
