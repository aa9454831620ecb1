//! Sending a batch exactly once: each batch names the one before it, and after any doubt the stream is asked.

use super::broker::{EventStream, NewBatch, NotPublished, StoredBatch};
use crate::capture::batches::{Batch, BatchStart, read_batch};
use crate::capture::{CaptureError, CaptureErrorKind};
use std::time::{Duration, Instant};

/// The shortest and the longest pause before a batch is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The sender of the batches of one subject.
pub(super) struct BatchSender<'s> {
    stream: &'s EventStream,
    subject: String,
    /// The sequence number of the subject's last batch; 0 if there is none.
    last_sequence: u64,
    /// The last batch of this sender's rings: its sequence number and its id.
    sent: Option<(u64, String)>,
    /// Where that batch ends.
    pub(super) start: BatchStart,
    /// The connection over which the stream was asked last, or a batch was sent.
    connection: u64,
    /// True if the stream went on without this forwarder, so that the capture must begin anew at `start`.
    pub(super) must_begin_anew: bool,
    pub(super) resent: u64,
}

/// A function that learns what stands in the way of a batch, and returns true if the batch shall be given up.
pub(super) type IsGivenUp<'g> = dyn FnMut(Option<&str>) -> bool + 'g;

impl<'s> BatchSender<'s> {
    /// Asks the stream where its last batch of this subject ends.
    pub(super) fn new(
        stream: &'s EventStream,
        subject: String,
        host: &str,
        is_given_up: &mut IsGivenUp<'_>,
    ) -> Result<Self, CaptureError> {
        let start = BatchStart::of_host(host);
        let mut sender = Self {
            stream,
            subject,
            last_sequence: 0,
            connection: 0,
            sent: None,
            start: start.clone(),
            must_begin_anew: false,
            resent: 0,
        };
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
        // A broker that was started again may have lost the last batch, and have given its number to another one: that
        // of a second forwarder. So the number alone does not show that nothing has changed.
        if self.stream.connections() != self.connection {
            let before = self.start.clone();
            self.look(&before, is_given_up)?;
            self.check_that_it_follows(&before, batch)?;
        }
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
                    (self.last_sequence, self.sent) = (sequence, Some((sequence, id)));
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
            self.check_that_it_follows(&before, batch)?;
            self.resent += 1;
        }
    }

    /// Checks that the stream ends where it ended before.
    ///
    /// # Errors
    /// It does not: the capture must begin anew.
    fn check_that_it_follows(&mut self, before: &BatchStart, batch: &Batch<'_>) -> Result<(), CaptureError> {
        if self.start.agrees(before, batch) {
            return Ok(());
        }
        self.must_begin_anew = true;
        let message = "another forwarder has sent events of this ring, or the broker has lost some";
        Err(CaptureError::new(CaptureErrorKind::Broker, message))
    }

    /// Asks for the last batch of the subject, until there is an answer. `known` is where the rings were believed to
    /// be.
    fn look(&mut self, known: &BatchStart, is_given_up: &mut IsGivenUp<'_>) -> Result<(), CaptureError> {
        let mut pause = PAUSE_MIN;
        loop {
            let connection = self.stream.connections();
            match self.stream.last_of(&self.subject).and_then(|last| Ok((last, self.after_loss(known)?))) {
                Ok((last, after_loss)) => {
                    self.connection = connection;
                    return self.take_last(last, known, after_loss);
                }
                Err(problem) => wait(&mut pause, &problem, is_given_up)?,
            }
        }
    }

    /// Takes the last batch of the subject. If it has none of the rings, they go on at `after_loss`.
    fn take_last(
        &mut self,
        last: Option<StoredBatch>,
        known: &BatchStart,
        after_loss: BatchStart,
    ) -> Result<(), CaptureError> {
        let Some(last) = last else {
            (self.last_sequence, self.start) = (0, after_loss);
            return Ok(());
        };
        let batch = read_batch(&last.bytes).map_err(|error| {
            let message = format!(
                "the last message of {} is no batch: {error}; name another stream, or remove the message",
                last.subject
            );
            CaptureError::new(CaptureErrorKind::Damaged, message)
        })?;
        self.last_sequence = last.sequence;
        // Other rings may have had this subject before, or have it now.
        self.start = if known.has_any(&batch) { known.clone() } else { after_loss };
        if self.start.after(&batch) {
            self.sent = Some((last.sequence, last.id));
        }
        Ok(())
    }

    /// Returns where the rings go on if the stream ends with no batch of them. This is `known`, if the stream has
    /// forgotten their batches or has others after them; and the beginning, if the broker has lost them.
    fn after_loss(&self, known: &BatchStart) -> Result<BatchStart, String> {
        let Some((sequence, id)) = &self.sent else { return Ok(known.clone()) };
        let is_forgotten = *sequence < self.stream.sequences()?.0;
        let is_there = is_forgotten || self.stream.id_of(*sequence)?.as_ref() == Some(id);
        Ok(if is_there { known.clone() } else { known.of_no_ring() })
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
