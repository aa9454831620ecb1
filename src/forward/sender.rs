//! Sending a batch exactly once: each batch names the one before it, and after any doubt the stream is asked.

use super::broker::{EventStream, NewBatch, NotPublished};
use crate::capture::batches::{Batch, BatchStart, read_batch};
use crate::capture::{CaptureError, CaptureErrorKind};
use std::time::{Duration, Instant};

/// The shortest and the longest pause before a batch is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The sender of the batches of one subject.
pub(super) struct Sender<'s> {
    stream: &'s EventStream,
    subject: String,
    /// The sequence number of the subject's last batch; 0 if there is none.
    last_sequence: u64,
    /// Where that batch ends.
    pub(super) start: BatchStart,
    /// True if the stream went on without this forwarder, so that the capture must begin anew at `start`.
    pub(super) must_begin_anew: bool,
    pub(super) resent: u64,
}

/// A function that learns what stands in the way of a batch, and returns true if the batch shall be given up.
pub(super) type IsGivenUp<'g> = dyn FnMut(Option<&str>) -> bool + 'g;

impl<'s> Sender<'s> {
    /// Asks the stream where its last batch of this subject ends.
    pub(super) fn new(
        stream: &'s EventStream,
        subject: String,
        host: &str,
        is_given_up: &mut IsGivenUp<'_>,
    ) -> Result<Self, CaptureError> {
        let start = BatchStart::of_host(host);
        let mut sender =
            Self { stream, subject, last_sequence: 0, start: start.clone(), must_begin_anew: false, resent: 0 };
        sender.look(&start, is_given_up)?;
        Ok(sender)
    }

    /// Sends a batch. Returns when the broker has it, and whether it has it from this sender: another forwarder may
    /// have sent the same.
    ///
    /// # Errors
    /// The broker takes no batch of this size, the batch was given up, or the stream went on without it
    /// ([`Self::must_begin_anew`]).
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        batch: &Batch<'_>,
        is_given_up: &mut IsGivenUp<'_>,
    ) -> Result<bool, CaptureError> {
        // An earlier forwarder may have said already that nothing follows.
        if batch.is_empty() && self.start.has_ended {
            return Ok(false);
        }
        let Some(id) = batch.id() else { return Ok(false) };
        let mut may_be_ours = false;
        let mut pause = PAUSE_MIN;
        loop {
            let new = NewBatch {
                subject: &self.subject,
                id: &id,
                after: self.last_sequence,
                events: batch.events(),
                lost: batch.lost(),
                bytes,
            };
            let problem = match self.stream.publish(&new) {
                Ok(sequence) => {
                    self.last_sequence = sequence;
                    self.start.after_sent(batch);
                    is_given_up(None);
                    return Ok(true);
                }
                Err(NotPublished::TooLarge(problem)) => {
                    let message = format!(
                        "a batch of {} bytes is too large for the broker: {problem}; raise its max_payload",
                        bytes.len()
                    );
                    return Err(CaptureError::new(CaptureErrorKind::Broker, message));
                }
                Err(NotPublished::AnotherIsLast) => None,
                Err(NotPublished::NotNow(problem)) => Some(problem),
            };
            // A refused batch is there already, or another one is.
            let is_refused = problem.is_none();
            if let Some(problem) = problem {
                may_be_ours = true;
                wait(&mut pause, &problem, is_given_up)?;
            }
            let (before, last_sequence) = (self.start.clone(), self.last_sequence);
            self.look(&before, is_given_up)?;
            let mut after = before.clone();
            after.after_sent(batch);
            if (is_refused || self.last_sequence > last_sequence) && self.start.agrees(&after, batch) {
                is_given_up(None);
                return Ok(may_be_ours);
            }
            if !self.start.agrees(&before, batch) {
                self.must_begin_anew = true;
                let message = "another forwarder has sent events of this ring, or the broker has lost some";
                return Err(CaptureError::new(CaptureErrorKind::Broker, message));
            }
            self.resent += 1;
        }
    }

    /// Asks for the last batch of the subject. If there is none, `known` stays where the next one begins: a stream may
    /// forget old batches.
    fn look(&mut self, known: &BatchStart, is_given_up: &mut IsGivenUp<'_>) -> Result<(), CaptureError> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.stream.last_of(&self.subject) {
                Ok(None) => {
                    (self.last_sequence, self.start) = (0, known.clone());
                    return Ok(());
                }
                Ok(Some(last)) => {
                    let batch = read_batch(&last.bytes).map_err(|error| {
                        let message = format!(
                            "the last message of {} is no batch: {error}; name another stream, or remove the message",
                            last.subject
                        );
                        CaptureError::new(CaptureErrorKind::Damaged, message)
                    })?;
                    self.last_sequence = last.sequence;
                    self.start = known.clone();
                    self.start.after(&batch);
                    return Ok(());
                }
                Err(problem) => wait(&mut pause, &problem, is_given_up)?,
            }
        }
    }
}

/// Waits before the next attempt, longer each time.
fn wait(pause: &mut Duration, problem: &str, is_given_up: &mut IsGivenUp<'_>) -> Result<(), CaptureError> {
    const STEP: Duration = Duration::from_millis(20);
    let until = Instant::now() + *pause;
    loop {
        if is_given_up(Some(problem)) {
            return Err(CaptureError::new(CaptureErrorKind::Broker, format!("a batch was not sent: {problem}")));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            *pause = (*pause * 2).min(PAUSE_MAX);
            return Ok(());
        }
        std::thread::sleep(left.min(STEP));
    }
}
