//! The names of a ring's events and fields. The names of typed events are in the ring's schema. The names of a perf
//! recorder (which records spans) are in the recorder's tables.

use super::typed::TypedNames;
use eventring::reader::Reader;
use eventring::tracing::{CallSite, Catalog, Thread};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names of a ring.
#[derive(Clone)]
pub(crate) enum RingNames {
    Typed(Arc<TypedNames>),
    Perf(Arc<RecorderTables>),
}

/// The call sites and threads of a perf recorder.
pub(crate) struct RecorderTables {
    catalog: Mutex<Catalog>,
    /// The ring with the tables; `None` if the catalog has all that is in them.
    shard0: Option<Reader>,
}

impl RecorderTables {
    pub(crate) fn new(catalog: Catalog, shard0: Option<Reader>) -> Self {
        Self { catalog: Mutex::new(catalog), shard0 }
    }

    /// Returns the catalog. It is whole even after another thread has panicked.
    pub(super) fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the call site with this id, if the tables have it. A call site that only an event describes is not
    /// known: a reader of one block may lack that event.
    pub(super) fn call_site(&self, id: u32) -> Option<Arc<CallSite>> {
        self.find(|catalog| if id == 0 { Some(catalog.call_site(0)) } else { catalog.known_call_site(id).cloned() })
    }

    pub(super) fn thread(&self, id: u32) -> Option<Arc<Thread>> {
        self.find(|catalog| if id == 0 { Some(catalog.thread(0)) } else { catalog.known_thread(id).cloned() })
    }

    fn find<T>(&self, find: impl Fn(&Catalog) -> Option<T>) -> Option<T> {
        let mut catalog = self.catalog();
        find(&catalog).or_else(|| {
            catalog.update(self.shard0.as_ref()?);
            find(&catalog)
        })
    }
}

impl std::fmt::Debug for RingNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Typed(_) => "Typed",
            Self::Perf(_) => "Perf",
        })
    }
}
