//! Sends a batch exactly once. If the sender does not know whether a batch was stored, it asks the broker for the last
//! batch.

use super::broker::{EventStream, NewBatch, NotPublished, StoredBatch};
use super::watched::Watched;
use eventring_capture::batches::{Batch, BatchStart, read_batch};
use eventring_capture::{CaptureError, CaptureErrorKind};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The shortest and the longest pause before a batch is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// The problem if the stream ends where it ended before, and the broker refuses what follows.
const REFUSED: &str = "the broker knows the id of the batch, and has the batch no more: a limit of the stream (its size \
                       or age) or somebody has removed it; the broker forgets the id after a while, 2 minutes by \
                       default";

/// The sender of the batches of one subject.
pub(super) struct BatchSender<'s> {
    stream: &'s EventStream,
    subject: String,
    /// The sequence number of the subject's last batch; 0 if there is none.
    last_sequence: u64,
    /// The last batch of this sender's rings: its sequence number and its id.
    sent: Option<(u64, String)>,
    /// Where the subject's last batch of these rings ends.
    pub(super) start: BatchStart,
    /// The connection over which the stream was asked last, or a batch was sent.
    connection: u64,
    /// True if the stream went on without this forwarder, so that the capture must begin anew at `start`.
    pub(super) must_begin_anew: bool,
    pub(super) resent: u64,
}

impl<'s> BatchSender<'s> {
    /// Asks the stream where its last batch of this subject ends. `start` is of the recorder, and follows no batch.
    pub(super) fn new(
        stream: &'s EventStream,
        subject: String,
        start: BatchStart,
        watched: &RefCell<Watched<'_>>,
    ) -> Result<Self, CaptureError> {
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
        sender.look(&start, watched)?;
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
        watched: &RefCell<Watched<'_>>,
    ) -> Result<bool, CaptureError> {
        // An earlier forwarder may have said already that nothing follows.
        if batch.is_empty() && self.start.has_ended {
            return Ok(false);
        }
        let Some(id) = batch.id() else { return Ok(false) };
        let before = self.start.clone();
        let mut after = before.clone();
        after.after_sent(batch);
        let mut may_be_ours = false;
        let mut pause = PAUSE_MIN;
        // A broker that was started again may have lost the last batch, and have given its number to another one: that
        // of a second forwarder. So the number alone does not show that nothing has changed.
        if self.stream.connections() != self.connection {
            self.look(&before, watched)?;
            self.check_that_it_follows(&before)?;
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
            let problem = match self.stream.publish(&new, &mut || watched.borrow_mut().is_given_up()) {
                Ok(sequence) => {
                    (self.last_sequence, self.sent) = (sequence, Some((sequence, id)));
                    self.start = after;
                    watched.borrow_mut().note(None);
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
            if let Some(problem) = &problem {
                may_be_ours = true;
                wait(&mut pause, problem, watched)?;
            }
            // A refused batch is there already, or another one is. One without an answer may be there.
            let last_sequence = self.last_sequence;
            self.look(&before, watched)?;
            // A batch without seqnos only says that nothing follows.
            let is_there = self.start.agrees(&after) && (self.start.has_ended || !after.has_ended);
            if is_there {
                watched.borrow_mut().note(None);
                return Ok(may_be_ours);
            }
            self.check_that_it_follows(&before)?;
            if problem.is_none() && self.last_sequence == last_sequence {
                wait(&mut pause, REFUSED, watched)?;
            }
            self.resent += 1;
        }
    }

    /// Checks that the stream ends where it ended before.
    ///
    /// # Errors
    /// It does not: the capture must begin anew.
    fn check_that_it_follows(&mut self, before: &BatchStart) -> Result<(), CaptureError> {
        if self.start.agrees(before) {
            return Ok(());
        }
        self.must_begin_anew = true;
        let message = "another forwarder has sent events of this ring, or the broker has lost some";
        Err(CaptureError::new(CaptureErrorKind::Broker, message))
    }

    /// Asks for the last batch of the subject, until there is an answer. `known` is where the rings were believed to
    /// be.
    fn look(&mut self, known: &BatchStart, watched: &RefCell<Watched<'_>>) -> Result<(), CaptureError> {
        let mut pause = PAUSE_MIN;
        loop {
            let connection = self.stream.connections();
            let last = self.stream.last_of(&self.subject, &mut || watched.borrow_mut().is_given_up());
            match last.and_then(|last| Ok((last, self.after_loss(known)?))) {
                Ok((last, after_loss)) => {
                    self.connection = connection;
                    return self.take_last(last, known, after_loss);
                }
                Err(problem) => wait(&mut pause, &problem, watched)?,
            }
        }
    }

    /// Takes the last batch of the subject. If it is of another recorder, the rings go on at `after_loss`.
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
        // Other recorders may have had this subject before, or have it now.
        if !known.is_recorder_of(&batch) {
            self.start = after_loss;
            return Ok(());
        }
        // The batch describes all rings of the recorder that the stream has had until now. If the broker has lost later
        // batches, shards that only these had are sent from the beginning.
        self.start = known.of_no_ring();
        self.start.after(&batch);
        self.sent = Some((last.sequence, last.id));
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
fn wait(pause: &mut Duration, problem: &str, watched: &RefCell<Watched<'_>>) -> Result<(), CaptureError> {
    const STEP: Duration = Duration::from_millis(20);
    let until = Instant::now() + *pause;
    watched.borrow_mut().note(Some(problem));
    loop {
        if watched.borrow_mut().is_given_up() {
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
