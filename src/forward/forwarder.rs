//! A recorder's events, as batches, to their stream.

use super::broker::EventStream;
use super::sender::BatchSender;
use super::subject::subject_of;
use crate::capture::batches::{Batch, BatchOptions, BatchesInMemory, capture_batches, host_name};
use crate::capture::{BatchFilter, CaptureError, CaptureOptions, EndReason, NextRing};
use crate::reader::Reader;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for which batches are still sent after the caller has ended the forwarding.
const TIME_AT_END: Duration = Duration::from_secs(5);

/// The settings of [`forward`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ForwardOptions {
    host: Option<String>,
    every: Duration,
    level: i32,
    filter: BatchFilter,
}

impl Default for ForwardOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ForwardOptions {
    /// Makes options with the defaults.
    pub fn new() -> Self {
        Self {
            host: None,
            every: Duration::from_millis(200),
            level: CaptureOptions::DEFAULT_LEVEL,
            filter: BatchFilter::new(),
        }
    }

    /// Sets the name of this host in subjects and batches. Two hosts must not have the same. Default: the system's name
    /// of the host.
    pub fn host(self, name: impl Into<String>) -> Self {
        Self { host: Some(name.into()), ..self }
    }

    /// Sets the longest time between the recording of an event and the sending of its batch, if the forwarder keeps up.
    /// Default: 200 ms.
    pub fn every(self, time: Duration) -> Self {
        Self { every: time.max(Duration::from_millis(4)), ..self }
    }

    /// Sends only the events that a filter keeps. The others are gaps with the cause
    /// [`GapCause::Filtered`](crate::reader::GapCause::Filtered).
    pub fn filter(self, filter: BatchFilter) -> Self {
        Self { filter, ..self }
    }

    /// Sets the level of compression, as [`CaptureOptions::compression_level`] does.
    pub fn compression_level(self, level: i32) -> Self {
        Self { level, ..self }
    }
}

/// The state of a forwarder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ForwardProgress {
    /// Batches that the broker has stored.
    pub batches: u64,
    /// Events in them.
    pub events: u64,
    /// Events that were lost: gaps in these batches.
    pub lost: u64,
    /// Events that the filter has left out.
    pub filtered: u64,
    /// Bytes of these batches.
    pub bytes: u64,
    /// The number of times that a batch had to be sent again, because no answer came.
    pub resent: u64,
    /// The number of times that the forwarder began anew after what the stream has, because another forwarder had sent
    /// events of this ring, or the broker had lost some.
    pub restarts: u64,
    /// The problem because of which a batch waits at this moment, if one does.
    pub problem: Option<String>,
}

impl ForwardProgress {
    /// Adds the counts of another forwarder.
    pub fn add(&mut self, other: &Self) {
        self.batches += other.batches;
        self.events += other.events;
        self.lost += other.lost;
        self.filtered += other.filtered;
        self.bytes += other.bytes;
        self.resent += other.resent;
        self.restarts += other.restarts;
    }
}

/// The result of [`forward`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ForwardSummary {
    /// The subject of the batches.
    pub subject: String,
    /// The counts.
    pub sent: ForwardProgress,
    /// The reason for the end.
    pub reason: EndReason,
    /// Problems that did not end the forwarding, a line each.
    pub problems: Vec<String>,
}

/// Sends the events of a ring to a stream until its writer has ended, or until `progress` returns
/// [`ControlFlow::Break`]. All shards of a perf recorder are sent. The forwarder begins after the last batch that the
/// stream has of this ring; if there is none, with the oldest event in the ring.
///
/// `progress` is called several times a second, also while the broker cannot be reached. After it has returned `Break`,
/// what was recorded until then is still sent, for up to 5 seconds.
///
/// # Errors
/// The ring cannot be read, the broker refuses a batch, or the end came before all batches were sent.
pub fn forward(
    ring: &Reader,
    stream: &EventStream,
    options: &ForwardOptions,
    progress: &mut dyn FnMut(&ForwardProgress) -> ControlFlow<()>,
) -> Result<ForwardSummary, CaptureError> {
    let host = options.host.clone().unwrap_or_else(host_name);
    let name = ring.path().and_then(Path::file_name).unwrap_or("ring".as_ref()).to_string_lossy().into_owned();
    let subject = subject_of(stream.name(), &host, &name, ring.info().content_type);
    let watched = RefCell::new(Watched { progress, state: ForwardProgress::default(), ended: None });
    let mut is_given_up = |problem: Option<&str>| watched.borrow_mut().is_given_up(problem);
    let mut sender = BatchSender::new(stream, subject.clone(), &host, &mut is_given_up)?;
    loop {
        let batches = BatchOptions {
            bytes_max: stream.batch_bytes_max(),
            every: options.every,
            level: options.level,
            start: sender.start.clone(),
            filter: options.filter.clone(),
            only_new: false,
        };
        let mut next = Some(ring.clone());
        let mut next_ring = || next.take().map_or(NextRing::NoMore, NextRing::Ring);
        let mut send = |bytes: &[u8], batch: &Batch<'_>| {
            if sender.send(bytes, batch, &mut is_given_up)? {
                watched.borrow_mut().count(bytes, batch);
            }
            watched.borrow_mut().state.resent = sender.resent;
            Ok(())
        };
        let mut progress = |_: &_| watched.borrow_mut().ask();
        let result = capture_batches(&mut next_ring, &mut BatchesInMemory::new(&mut send), &batches, &mut progress);
        match result {
            Err(_) if std::mem::take(&mut sender.must_begin_anew) => watched.borrow_mut().state.restarts += 1,
            Err(error) => return Err(error),
            Ok(summary) => {
                let (reason, problems) = (summary.reason, summary.problems);
                return Ok(ForwardSummary { subject, sent: watched.into_inner().state, reason, problems });
            }
        }
    }
}

/// The state of a forwarder, and the caller who watches it.
struct Watched<'p> {
    progress: &'p mut dyn FnMut(&ForwardProgress) -> ControlFlow<()>,
    state: ForwardProgress,
    /// The time at which the caller ended the forwarding.
    ended: Option<Instant>,
}

impl Watched<'_> {
    fn ask(&mut self) -> ControlFlow<()> {
        let asked = (self.progress)(&self.state);
        if asked.is_break() {
            self.ended.get_or_insert_with(Instant::now);
        }
        asked
    }

    /// Notes the problem of a batch that waits. Returns true if it need not wait any longer.
    fn is_given_up(&mut self, problem: Option<&str>) -> bool {
        if self.state.problem.as_deref() != problem {
            self.state.problem = problem.map(str::to_owned);
        }
        if problem.is_some() {
            let _ = self.ask();
        }
        self.ended.is_some_and(|ended| ended.elapsed() > TIME_AT_END)
    }

    fn count(&mut self, bytes: &[u8], batch: &Batch<'_>) {
        self.state.batches += 1;
        self.state.events += batch.events();
        self.state.lost += batch.lost();
        self.state.filtered += batch.filtered();
        self.state.bytes += bytes.len() as u64;
    }
}
