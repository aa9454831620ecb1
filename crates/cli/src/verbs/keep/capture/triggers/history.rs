//! The events from which files are cut.
//!
//! Events are copied all the time if the conditions need every event, the user reserves space for copied events, or the
//! kernel's events are recorded.
//!
//! Otherwise the watch reads only the *tables of the present* (lists of open spans and tasks). Copying begins when a
//! condition fires, and the file begins with the events that the rings still hold.

use eventring::reader::Reader;
use eventring_capture::{CaptureError, CaptureSummary, NextRing, RollingCapture, RollingOptions};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kept events, or the way to them.
pub(super) struct History {
    rings: Arc<Mutex<HistoryRings>>,
    options: RollingOptions,
    /// True if events are copied only while files wait for them.
    pub(super) is_lazy: bool,
    rolling: Mutex<Option<Arc<RollingCapture>>>,
}

/// The rings so far, and the channel from which further ones come.
struct HistoryRings {
    from: Receiver<Reader>,
    known: Vec<Reader>,
}

impl HistoryRings {
    fn get(&mut self, index: usize) -> NextRing {
        if index == self.known.len() {
            match self.from.try_recv() {
                Ok(ring) => self.known.push(ring),
                Err(TryRecvError::Empty) => return NextRing::NotYet,
                Err(TryRecvError::Disconnected) => return NextRing::NoMore,
            }
        }
        NextRing::Ring(self.known[index].clone())
    }
}

impl History {
    pub(super) fn begin(from: Receiver<Reader>, options: RollingOptions, is_lazy: bool) -> Result<Self, CaptureError> {
        let rings = Arc::new(Mutex::new(HistoryRings { from, known: Vec::new() }));
        let kept = Self { rings, options, is_lazy, rolling: Mutex::default() };
        if !is_lazy {
            kept.copied()?;
        }
        Ok(kept)
    }

    /// Returns the capture of what the rings hold and of what they record from now on.
    pub(super) fn copied(&self) -> Result<Arc<RollingCapture>, CaptureError> {
        let mut rolling = self.rolling();
        if let Some(rolling) = &*rolling {
            return Ok(Arc::clone(rolling));
        }
        let (rings, mut next) = (Arc::clone(&self.rings), 0);
        let next_ring = move || {
            let ring = rings.lock().unwrap_or_else(PoisonError::into_inner).get(next);
            next += usize::from(matches!(ring, NextRing::Ring(_)));
            ring
        };
        let begun = Arc::new(RollingCapture::begin(next_ring, &self.options)?);
        *rolling = Some(Arc::clone(&begun));
        Ok(begun)
    }

    /// Notes that no file waits.
    pub(super) fn rest(&self) {
        if self.is_lazy {
            *self.rolling() = None;
        }
    }

    /// Has the events kept from this time on, as [`RollingCapture::hold`] does.
    pub(super) fn hold(&self, from_epoch_nanos: Option<u64>) {
        self.rolling().iter().for_each(|rolling| rolling.hold(from_epoch_nanos));
    }

    pub(super) fn end(&self) {
        self.rolling().iter().for_each(|rolling| rolling.end());
    }

    /// Returns true if all that the rings recorded was copied, or nothing is to be copied.
    pub(super) fn has_ended(&self) -> bool {
        self.rolling().as_ref().is_none_or(|rolling| rolling.state().has_ended)
    }

    /// Ends the copying. Returns its result, if events were kept all the time.
    pub(super) fn finish(self) -> Result<Option<CaptureSummary>, CaptureError> {
        let rolling = self.rolling().take().and_then(Arc::into_inner);
        rolling.filter(|_| !self.is_lazy).map(RollingCapture::finish).transpose()
    }

    fn rolling(&self) -> MutexGuard<'_, Option<Arc<RollingCapture>>> {
        // A poisoned lock may be used: no code panics while it holds this lock.
        self.rolling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
