//! Sending a recorder's events, as batches, to their stream.

use super::broker::EventStream;
use super::program::SpanRings;
use super::sender::BatchSender;
use super::subject::{check_name, subject_of};
use super::watched::{ForwardProgress, Watched};
use eventring::reader::{LostPages, Reader};
use eventring_capture::batches::{
    Batch, BatchOptions, BatchStart, BatchesInMemory, capture_batches, host_name, name_of,
};
use eventring_capture::{BatchFilter, CaptureError, CaptureErrorKind, CaptureOptions, EndReason, NextRing};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

/// The settings of [`forward`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ForwardOptions {
    host: Option<String>,
    every: Duration,
    level: i32,
    filter: BatchFilter,
    spans: Option<SpanRings>,
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
            spans: None,
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
    /// [`GapCause::Filtered`](eventring::reader::GapCause::Filtered).
    pub fn filter(self, filter: BatchFilter) -> Self {
        Self { filter, ..self }
    }

    /// Sets the rings with the spans in which typed events of the ring were recorded. Default: none, so that a filter
    /// by spans leaves out all typed events.
    pub fn spans(self, spans: SpanRings) -> Self {
        Self { spans: Some(spans), ..self }
    }

    /// Sets the level of compression, as [`CaptureOptions::compression_level`] does.
    pub fn compression_level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    /// Returns the name of this host in subjects and batches.
    ///
    /// # Errors
    /// The name is empty, too long, or has control characters, so it can be in no message.
    pub fn host_name(&self) -> Result<String, CaptureError> {
        let host = self.host.clone().unwrap_or_else(host_name);
        check_name("the name of the host", "name it with --host (`ForwardOptions::host`)", &host)?;
        Ok(host)
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
    /// The rings whose later events cannot be read, with the reason. Their advice is among the problems.
    pub lost_pages: Vec<(String, LostPages)>,
}

/// Sends the events of a ring to a stream until its writer has ended, or until `progress` returns
/// [`ControlFlow::Break`]. All shards of a perf recorder are sent. The forwarder begins after the last batch that the
/// stream has of this ring; if there is none, with the oldest event in the ring.
///
/// `progress` is called several times a second, also while the broker cannot be reached. After it has returned `Break`,
/// what was recorded until then is still sent, as long as the broker takes it. A batch that the broker does not take is
/// given up 5 seconds after the `Break`.
///
/// # Errors
/// The ring cannot be read; a name can be in no message; the stream has later events of a ring of this identity; the
/// broker takes no batches of this size; or a batch was given up.
pub fn forward(
    ring: &Reader,
    stream: &EventStream,
    options: &ForwardOptions,
    progress: &mut dyn FnMut(&ForwardProgress) -> ControlFlow<()>,
) -> Result<ForwardSummary, CaptureError> {
    let (host, name) = (options.host_name()?, name_of(ring));
    check_name("the name of the ring", "record under another name", &name)?;
    let subject = subject_of(stream.name(), &host, &name, ring.info().content_type);
    let watched = RefCell::new(Watched::new(progress));
    let start = BatchStart::of_recorder(&host, ring);
    let ask = || BatchSender::new(stream, subject.clone(), start.clone(), &watched);
    let mut sender = start.open_shards_during(ring, ask)?;
    let others = options.spans.as_ref().filter(|_| options.filter.asks_other_rings(ring));
    check_that_it_goes_on(ring, &sender.start, &subject)?;
    loop {
        let batches = BatchOptions {
            bytes_max: stream.batch_bytes_max(),
            // A broker takes no larger batch, even for a single event.
            payload_bytes_max: stream.batch_bytes_max() / 2,
            every: options.every,
            level: options.level,
            start: sender.start.clone(),
            filter: options.filter.clone(),
            only_new: false,
        };
        let (mut next, mut known) = (Some(ring.clone()), 0);
        let mut next_ring = || match next.take() {
            Some(ring) => NextRing::Ring(ring),
            None => others.map_or(NextRing::NoMore, |others| others.next(&mut known)),
        };
        let mut send = |bytes: &[u8], batch: &Batch<'_>| {
            if sender.send(bytes, batch, &watched)? {
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
                let (reason, problems, lost_pages) = (summary.reason, summary.problems, summary.lost_pages);
                return Ok(ForwardSummary { subject, sent: watched.into_inner().state, reason, problems, lost_pages });
            }
        }
    }
}

/// Checks that the stream has no later events of the ring than the ring itself. Rings of the published system do not
/// say when they were made, so two of them may have the same identity.
fn check_that_it_goes_on(ring: &Reader, start: &BatchStart, subject: &str) -> Result<(), CaptureError> {
    let Some(next) = start.next_of_recorder() else { return Ok(()) };
    let handed_out = ring.info().last_seqno;
    if next <= handed_out.saturating_add(1) {
        return Ok(());
    }
    let message = format!(
        "{subject} has events of this ring up to seqno {}, but the ring has handed out {handed_out} only: it is another ring that looks the same, or an \
         older copy; choose another --host or --stream for it",
        next - 1
    );
    Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
}
