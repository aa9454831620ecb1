//! The thread that writes to the terminal, so that a slow terminal does not delay the reading of rings. Events for
//! which there is no room are dropped and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The bytes that wait for the terminal when events begin to be left out.
const WAITING_MAX: usize = 64 << 10;
/// The least time for which events are left out, so that the notes about them can be read.
const PAUSE: Duration = Duration::from_millis(250);

/// The terminal.
pub(super) struct Screen {
    bytes: Option<Sender<Vec<u8>>>,
    /// The number of bytes that the thread has not written yet.
    waiting: Arc<AtomicUsize>,
    failed: Arc<OnceLock<io::ErrorKind>>,
    thread: Option<JoinHandle<()>>,
    left_out: Option<LeftOut>,
}

/// Events that were left out since a time.
struct LeftOut {
    since: Instant,
    events: u64,
}

impl Screen {
    pub(super) fn start() -> io::Result<Self> {
        let (bytes, from) = channel();
        let (waiting, failed) = (Arc::<AtomicUsize>::default(), Arc::<OnceLock<io::ErrorKind>>::default());
        let (its_waiting, its_failed) = (waiting.clone(), failed.clone());
        let write = move || {
            if let Err(error) = write_all(&from, &its_waiting) {
                let _ = its_failed.set(error.kind());
            }
        };
        let thread = std::thread::Builder::new().name("watch-screen".into()).spawn(write)?;
        Ok(Self { bytes: Some(bytes), waiting, failed, thread: Some(thread), left_out: None })
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns true if the terminal cannot take the next event, which then counts as left out.
    pub(super) fn leaves_out(&mut self) -> bool {
        if self.left_out.is_none() && self.waiting() <= WAITING_MAX {
            return false;
        }
        self.left_out.get_or_insert_with(|| LeftOut { since: Instant::now(), events: 0 }).events += 1;
        true
    }

    /// Returns true if [`Self::leaves_out`] would return true, now that the terminal may have caught up.
    pub(super) fn is_full(&self) -> bool {
        self.waiting() > WAITING_MAX || (self.left_out.is_some() && !self.has_caught_up())
    }

    fn has_caught_up(&self) -> bool {
        self.waiting() == 0 && self.left_out.as_ref().is_some_and(|left_out| left_out.since.elapsed() >= PAUSE)
    }

    /// Returns the number of events that were left out, and how many that were in a second, if the terminal takes
    /// events again.
    pub(super) fn takes_again(&mut self) -> Option<(u64, f64)> {
        if self.has_caught_up() { self.take_left_out() } else { None }
    }

    /// Returns the number of events that were left out, and how many that were in a second, even if the terminal does
    /// not take more yet.
    pub(super) fn take_left_out(&mut self) -> Option<(u64, f64)> {
        let LeftOut { since, events } = self.left_out.take()?;
        Some((events, events as f64 / since.elapsed().as_secs_f64()))
    }
}

fn write_all(from: &Receiver<Vec<u8>>, waiting: &AtomicUsize) -> io::Result<()> {
    let mut out = io::stdout();
    for bytes in from {
        out.write_all(&bytes)?;
        out.flush()?;
        waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
    }
    Ok(())
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(kind) = self.failed.get() {
            return Err((*kind).into());
        }
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let to = self.bytes.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        to.send(bytes.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.failed.get().map_or(Ok(()), |kind| Err((*kind).into()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The thread writes what waits, and ends.
        self.bytes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
