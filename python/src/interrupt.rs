//! Interrupting long work by Ctrl-C.

use crate::error::EventringError;
use eventring_capture::CaptureFile;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;

/// The pause between two looks for Ctrl-C.
pub(crate) const SIGNAL_PAUSE: Duration = Duration::from_millis(100);

/// Says whether the result of some work is still wanted.
#[derive(Clone)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Returns the capture so that it is read only while the result is wanted.
    pub(crate) fn of_capture(&self, capture: CaptureFile) -> CaptureFile {
        let wanted = self.clone();
        capture.while_wanted(move || wanted.is_wanted())
    }

    /// Notes that nobody wants the result any more.
    pub(crate) fn end(&self) {
        self.0.store(false, Relaxed);
    }
}

/// Calls the handlers of signals that have come. Returns the exception of a handler, `KeyboardInterrupt` for example.
/// The caller does not hold the interpreter.
pub(crate) fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Does work on a thread of its own, while other Python threads run. If Ctrl-C comes, the work learns that nobody wants
/// its result any more.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Wanted) -> PyResult<T> + Send) -> PyResult<T> {
    let wanted = Wanted::new();
    let of_work = wanted.clone();
    py.detach(|| {
        thread::scope(|scope| {
            let (done, is_done) = channel::<()>();
            let work = move || {
                let result = work(&of_work);
                drop(done);
                result
            };
            let worker = Builder::new().name("eventring-read".into()).spawn_scoped(scope, work);
            let worker = worker.map_err(|error| EventringError::new_err(format!("cannot start a thread: {error}")))?;
            let mut interrupted = Ok(());
            while interrupted.is_ok() && is_done.recv_timeout(SIGNAL_PAUSE) == Err(RecvTimeoutError::Timeout) {
                interrupted = check_signals();
            }
            if interrupted.is_err() {
                wanted.end();
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            interrupted.and(result)
        })
    })
}
