//! A recording: its beginning and its end.

use super::clock::TimeLine;
use super::follow::Follow;
use super::options::{ProfileOptions, ProfileTarget};
use super::rings::Ring;
use super::stacks::Stacks;
use super::threads::{ProfileSummary, Threads};
use super::worker::{Shared, Worker};
use crate::record::kernel::opening::Opened;
use crate::record::kernel::order::Ordered;
use crate::record::kernel::rights::Missing;
use crate::record::kernel::system::threads_of;
use crate::schema::{Sched, Session, Stacks as StackEvent};
use eventring::reader::{Reader, ReaderError};
use eventring::recorder::RecorderError;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// A recording whose buffers and rings are there, and that has not begun.
pub struct Prepared {
    opened: Opened,
    follow: Follow,
    options: ProfileOptions,
    target: ProfileTarget,
    line: TimeLine,
    /// The time of CLOCK_MONOTONIC before which nothing is recorded.
    begin: u64,
}

/// A recording that goes on in a thread of its own.
pub struct Recording {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<ProfileSummary>>,
}

impl Prepared {
    /// Opens the kernel's buffers and makes the rings, which are called like `base`, with `-sched` and `-stacks`.
    ///
    /// With [`ProfileTarget::NextChild`], the program must be started by the calling thread, and next.
    ///
    /// # Errors
    /// A ring could not be made. What the kernel refuses is no error: see [`Self::missing`].
    pub fn new(base: &Path, target: ProfileTarget, options: ProfileOptions) -> Result<Self, RecorderError> {
        let mut line = TimeLine::default();
        let begin = line.measure();
        let opened = Opened::open(&target, &options);
        let stack_ring = match opened.has_stacks {
            true => Some(Ring::make::<StackEvent>(base, "stacks")?),
            false => None,
        };
        let follow = Follow {
            threads: Threads::default(),
            stacks: Stacks::new(options.repeats),
            counts: ProfileSummary::default(),
            sched: Ring::make::<Sched>(base, "sched")?,
            stack_ring,
            has_syscalls: opened.has_syscalls,
            has_others: opened.has_others,
            on_processors: HashMap::new(),
        };
        Ok(Self { opened, follow, options, target, line, begin })
    }

    /// Returns what is not recorded, and why.
    pub fn missing(&self) -> &[Missing] {
        &self.opened.missing
    }

    /// Opens the rings for reading.
    ///
    /// # Errors
    /// A ring could not be opened.
    pub fn readers(&self) -> Result<Vec<Reader>, ReaderError> {
        [Some(&self.follow.sched), self.follow.stack_ring.as_ref()].into_iter().flatten().map(Ring::reader).collect()
    }

    /// Begins. `child` is the process that the calling thread has started.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(mut self, child: Option<u32>) -> std::io::Result<Recording> {
        let processes = match &self.target {
            ProfileTarget::NextChild => child.into_iter().collect(),
            ProfileTarget::Processes(processes) => processes.clone(),
        };
        // The first events say what the later ones mean, so they are not younger than these.
        let epoch = self.line.epoch_nanos(self.begin);
        let first = processes.first().copied().unwrap_or(0);
        for process in processes {
            self.follow.begin(process, &threads_of(process), epoch);
        }
        let shared = Arc::new(Shared::default());
        shared.live_threads.store(self.follow.threads.live(), Ordering::Release);
        let session = Session {
            process_id: first,
            sample_hz: if self.follow.stack_ring.is_some() { self.options.sample_hz } else { 0 },
            clock_error_nanos: self.line.error_nanos(),
            has_sched: self.options.has_sched && !self.opened.sources.is_empty(),
            has_others: self.follow.has_others,
            has_syscalls: self.follow.has_syscalls,
            has_stacks: self.follow.stack_ring.is_some(),
        };
        self.follow.record(Sched::Session, epoch, &session);
        let worker = Worker {
            opened: self.opened,
            follow: self.follow,
            line: self.line,
            ordered: Ordered::new(self.begin),
            session,
            resolves: self.options.resolves,
            repeats: self.options.repeats,
            shared: shared.clone(),
        };
        let thread = std::thread::Builder::new().name("profile".to_owned()).spawn(move || worker.run())?;
        Ok(Recording { shared, thread: Some(thread) })
    }
}

impl Recording {
    /// Asks the recording to stop.
    pub fn stop(&self) {
        self.shared.is_asked_to_stop.store(true, Ordering::Release);
    }

    /// Returns true if everything is recorded, and the rings have ended.
    pub fn has_stopped(&self) -> bool {
        self.shared.has_stopped.load(Ordering::Acquire)
    }

    /// Returns the number of followed threads that have not ended.
    pub fn live_threads(&self) -> usize {
        self.shared.live_threads.load(Ordering::Acquire)
    }

    /// Stops the recording. Returns what it has recorded.
    pub fn finish(mut self) -> ProfileSummary {
        self.stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
