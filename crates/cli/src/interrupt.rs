//! Handles Ctrl-C, SIGTERM and SIGHUP. The first signal asks the verb to finish. The second signal ends the program
//! immediately, unless the verb ends in several steps. Even then, if the program has not noticed a signal for a second,
//! the next signal ends it.

use super::exit::Failure;
use eventring::internal::shm;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::{emulate_default_handler, exit};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The exit status that shells give to a child that SIGINT has ended.
const INTERRUPTED: i32 = 130;
/// The time after which the program hangs if it has not noticed a signal. It may write to a pipe that nobody reads.
const HANG_TIME: Duration = Duration::from_secs(1);

/// Listener for the signals that end the program.
pub(super) struct Interrupt {
    asked: Receiver<i32>,
    /// The number of signals that were noticed.
    noticed: Arc<Mutex<usize>>,
}

impl Interrupt {
    /// Starts to listen for the signals. From here on, the first signal no longer ends the process by itself.
    pub(super) fn listen() -> anyhow::Result<Self> {
        Self::listen_to(1)
    }

    /// Starts to listen for the signals. From here on, this number of signals do not end the process by themselves: a
    /// command may have more than one step to its end. The next signal ends the process immediately, and so does each
    /// signal after one that was not noticed for a while.
    pub(super) fn listen_to(signals_max: usize) -> anyhow::Result<Self> {
        let mut signals =
            Signals::new(ending_signals()).map_err(|error| Failure::io("cannot listen to signals", &error))?;
        let (tell, asked) = channel();
        let noticed = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&noticed);
        std::thread::spawn(move || {
            let mut first_unnoticed: Option<Instant> = None;
            for (count, signal) in signals.forever().enumerate() {
                let has_noticed = *seen.lock().unwrap_or_else(PoisonError::into_inner) >= count;
                let hangs = !has_noticed && first_unnoticed.is_some_and(|first| first.elapsed() >= HANG_TIME);
                if count >= signals_max || hangs || tell.send(signal).is_err() {
                    // The handlers of a usual exit may wait for a lock of the thread that hangs.
                    exit(INTERRUPTED);
                }
                if has_noticed {
                    first_unnoticed = Some(Instant::now());
                }
            }
        });
        Ok(Self { asked, noticed })
    }

    /// Returns true if a signal has come since the last call.
    pub(super) fn came(&self) -> bool {
        self.next().is_some()
    }

    /// Returns the next signal that has come.
    pub(super) fn next(&self) -> Option<i32> {
        let signal = self.asked.try_recv().ok()?;
        *self.noticed.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Some(signal)
    }
}

/// Returns the signals that end the program. Under nohup(1) it goes on when the terminal is closed.
fn ending_signals() -> Vec<i32> {
    [SIGINT, SIGTERM].into_iter().chain((!is_ignored(SIGHUP)).then_some(SIGHUP)).collect()
}

/// Returns true if the process was started with this signal ignored.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = shm::read_text("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal - 1) & 1 == 1
}

/// Listener that removes an unfinished directory if a signal ends the program.
pub(super) struct RemovedBySignal {
    handle: Handle,
    directory: Arc<Mutex<Option<PathBuf>>>,
}

impl RemovedBySignal {
    /// Starts to listen. When a signal comes, removes the directory with everything in it, and ends the process as the
    /// signal does.
    pub(super) fn listen() -> anyhow::Result<Self> {
        const ATTEMPTS: u32 = 100;
        let mut signals =
            Signals::new(ending_signals()).map_err(|error| Failure::io("cannot listen to signals", &error))?;
        let handle = signals.handle();
        let directory = Arc::new(Mutex::new(None::<PathBuf>));
        let to_remove = directory.clone();
        std::thread::spawn(move || {
            let Some(signal) = signals.forever().next() else { return };
            // The lock waits for a directory that is being made.
            if let Ok(Some(directory)) = to_remove.lock().as_deref() {
                // Another thread may still make files in it.
                let _ = (0..ATTEMPTS).find(|_| std::fs::remove_dir_all(directory).is_ok());
            }
            let _ = emulate_default_handler(signal);
        });
        Ok(Self { handle, directory })
    }

    /// Makes the directory.
    pub(super) fn make(&self, make: impl FnOnce() -> io::Result<TempDir>) -> io::Result<TempDir> {
        // No thread panics while it holds the lock.
        let mut directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        let made = make()?;
        *directory = Some(made.path().to_path_buf());
        Ok(made)
    }
}

impl Drop for RemovedBySignal {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// Listener for SIGUSR1, with which a user says that now is the moment.
pub(super) struct UserSignal {
    asked: Receiver<()>,
}

impl UserSignal {
    /// Starts to listen. From here on, the signal no longer ends the process.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let mut signals = Signals::new([SIGUSR1]).map_err(|error| Failure::io("cannot listen to SIGUSR1", &error))?;
        let (tell, asked) = channel();
        // The thread ends when nobody listens any more.
        std::thread::spawn(move || signals.forever().all(|_| tell.send(()).is_ok()));
        Ok(Self { asked })
    }

    /// Returns how many signals have come since the last call.
    pub(super) fn count(&self) -> usize {
        self.asked.try_iter().count()
    }
}
