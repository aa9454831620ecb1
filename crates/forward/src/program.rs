//! The rings of a program. Each of its recorders has a separate forwarder. The forwarder of typed events also reads the
//! rings of spans, to find the spans around the events.

use eventring::files::CONTENT_TYPE_PERF;
use eventring::reader::Reader;
use eventring_capture::NextRing;
use eventring_capture::batches::process_key;
use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The rings of one program.
type Rings = Mutex<Vec<Reader>>;

/// The programs whose rings are forwarded.
#[derive(Debug, Default)]
pub struct Programs {
    /// By the key of the process. The rings are let go with the last forwarder of a program.
    by_key: Mutex<HashMap<u64, Weak<Rings>>>,
    are_complete: Arc<AtomicBool>,
}

/// The rings with the spans of one program, also those that are found later.
#[derive(Clone, Debug)]
pub struct SpanRings {
    rings: Arc<Rings>,
    are_complete: Arc<AtomicBool>,
}

impl Programs {
    /// Adds a ring that is forwarded from now on. Returns the rings with the spans of its program.
    pub fn add(&self, ring: &Reader) -> SpanRings {
        let mut programs = locked(&self.by_key);
        programs.retain(|_, rings| rings.strong_count() > 0);
        let key = process_key(ring);
        let rings = programs.get(&key).and_then(Weak::upgrade).filter(|_| key != 0).unwrap_or_default();
        programs.insert(key, Arc::downgrade(&rings));
        if ring.info().content_type == CONTENT_TYPE_PERF {
            locked(&rings).push(ring.clone());
        }
        SpanRings { rings, are_complete: self.are_complete.clone() }
    }

    /// Takes note that no more rings come.
    pub fn are_complete(&self) {
        self.are_complete.store(true, Release);
    }
}

impl SpanRings {
    /// Returns the ring after the first `known` ones, which then are one more.
    pub(super) fn next(&self, known: &mut usize) -> NextRing {
        // Read before the rings are: they are added before it is set.
        let are_complete = self.are_complete.load(Acquire);
        match locked(&self.rings).get(*known) {
            Some(ring) => {
                *known += 1;
                NextRing::Ring(ring.clone())
            }
            None if are_complete => NextRing::NoMore,
            None => NextRing::NotYet,
        }
    }
}

/// A panic of another thread leaves nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
