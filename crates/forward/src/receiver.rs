//! Writing a stream to a capture file.

use super::broker::{BatchesOfStream, EventStream, StoredBatch};
use super::subject::{check_subject, filter_of};
use eventring_capture::batches::read_batch;
use eventring_capture::received::{Added, ReceivedCapture, ReceivedOptions};
use eventring_capture::{CaptureError, CaptureFile, CaptureStats, RotationOptions};
use schemars::JsonSchema;
use serde::Serialize;
use std::hash::Hasher as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

/// The longest time for which the broker is asked to wait for batches.
const FETCH_TIME: Duration = Duration::from_millis(250);
/// The pause before the broker is asked again after a problem.
const PAUSE: Duration = Duration::from_millis(100);

/// The largest number of subjects of which refusals are noted.
const REFUSALS_MAX: usize = 64;

/// One of several equal parts of the rings of a stream. Each receiver takes another part, and all rings of a host are
/// in one part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    part: u64,
    of: u64,
}

impl Share {
    /// Makes the part `part`, from 1, of `of` parts. Returns `None` if there is no such part.
    #[must_use]
    pub fn new(part: u64, of: u64) -> Option<Self> {
        (1..=of).contains(&part).then_some(Self { part, of })
    }

    /// Returns true if the batches of a subject are in this part. The subject is `STREAM.HOST.RING.KIND`.
    fn has(self, subject: &str) -> bool {
        let mut hasher = XxHash3_64::new();
        hasher.write(subject.split('.').nth(1).unwrap_or_default().as_bytes());
        hasher.finish() % self.of == self.part - 1
    }
}

/// The settings of a [`Receiver`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ReceiverOptions {
    host: Option<String>,
    ring: Option<String>,
    share: Option<Share>,
    files: ReceivedOptions,
}

impl ReceiverOptions {
    /// Makes options for a receiver that takes all batches of the stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the rings of one host only.
    pub fn host(self, name: impl Into<String>) -> Self {
        Self { host: Some(name.into()), ..self }
    }

    /// Takes rings of one name only.
    pub fn ring(self, name: impl Into<String>) -> Self {
        Self { ring: Some(name.into()), ..self }
    }

    /// Takes a part of the hosts only. Other receivers take the other parts.
    pub fn share(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }

    /// Replaces an existing file, instead of going on with it.
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { files: ReceivedOptions { overwrite, ..self.files }, ..self }
    }

    /// Receives into a rotation set. A new file is begun by a batch, and then the old ones go. Default: one file.
    pub fn rotation(self, rotation: RotationOptions) -> Self {
        Self { files: ReceivedOptions { rotation, ..self.files }, ..self }
    }
}

/// The state of a [`Receiver`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReceiveProgress {
    /// Batches that came, also those that were in the file already.
    pub batches: u64,
    /// Events in the files that are there.
    pub events: u64,
    /// Events that are missing: gaps in the files.
    pub lost: u64,
    /// Bytes of the files that are there.
    pub bytes: u64,
    /// Messages that are no batches, or that no forwarder of this version sends. They were left out.
    pub refused: u64,
    /// The subjects of these messages; only the first ones.
    pub refusals: Vec<Refusal>,
    /// The time since the last batch came.
    pub idle: Duration,
    /// True if the writers of all received rings have ended, and the stream has nothing more that was not received.
    /// False while the broker cannot be asked.
    pub have_all_ended: bool,
    /// The problem with the broker at this moment, if there is one.
    pub problem: Option<String>,
}

/// A subject with messages that a [`Receiver`] has left out. Its text is as it was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Refusal {
    /// The subject.
    pub subject: String,
    /// Fault of the first of them.
    pub why: String,
    /// The number of messages.
    pub messages: u64,
}

/// The result of a [`Receiver`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ReceiveSummary {
    /// Its state at the end.
    pub state: ReceiveProgress,
    /// The counts of each ring.
    pub stats: CaptureStats,
    /// The files that are there, the oldest first.
    pub files: Vec<PathBuf>,
}

/// A receiver of batches, which writes them into a capture file.
///
/// The file remembers how far it has come. So a receiver that was killed goes on where it was, with the same file. A
/// receiver of other hosts, rings or shares needs another file. Two receivers cannot write one file.
pub struct Receiver {
    stream: EventStream,
    file: ReceivedCapture,
    filter: String,
    share: Option<Share>,
    state: ReceiveProgress,
    last_batch: Instant,
    /// The sequence number from which on a missing seqno is missing in the stream, too. Before it, an earlier batch may
    /// have it.
    trusted_from: u64,
    /// True if earlier batches must be read before the last one that came.
    lacks_earlier: bool,
    /// The number of batches in the stream that have not come yet. `None` if that is not known.
    pending: Option<u64>,
    /// The sequence number of the last message that was refused.
    refused_to: u64,
}

impl Receiver {
    /// Opens the file of an earlier receiver, or makes one.
    ///
    /// # Errors
    /// The file cannot be made, or it exists and is of another stream or no receiver's, or another receiver writes it.
    pub fn open(stream: EventStream, output: &Path, options: &ReceiverOptions) -> Result<Self, CaptureError> {
        let filter = filter_of(stream.name(), options.host.as_deref(), options.ring.as_deref());
        let selection = match options {
            ReceiverOptions { share: Some(Share { part, of }), .. } => format!("{filter} {part}/{of}"),
            ReceiverOptions { host: None, ring: None, .. } => String::new(),
            _ => filter.clone(),
        };
        let file =
            ReceivedCapture::open(output, stream.name(), ReceivedOptions { selection, ..options.files.clone() })?;
        Ok(Self {
            filter,
            stream,
            file,
            share: options.share,
            state: ReceiveProgress::default(),
            last_batch: Instant::now(),
            trusted_from: u64::MAX,
            lacks_earlier: false,
            pending: None,
            refused_to: 0,
        })
    }

    /// Returns the present size of the files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    /// Receives until `progress` returns [`ControlFlow::Break`], and ends the file. `progress` is called several times
    /// a second. `added` is called with each batch of which the file has got something.
    ///
    /// # Errors
    /// The file cannot be written, or was removed meanwhile. What was written before can be read.
    pub fn run(
        mut self,
        added: &mut dyn FnMut(&CaptureFile),
        progress: &mut dyn FnMut(&ReceiveProgress) -> ControlFlow<()>,
    ) -> Result<ReceiveSummary, CaptureError> {
        self.last_batch = Instant::now();
        'anew: loop {
            let mut batches = match self.begin() {
                Ok(batches) => batches,
                Err(problem) => {
                    self.note_problem(problem);
                    if self.tell(progress).is_break() {
                        break;
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
            };
            if self.state.problem.take().is_some() {
                // Forwarders need a moment, too, until they send again.
                self.last_batch = Instant::now();
            }
            loop {
                match batches.fetch(FETCH_TIME, |batch| self.take(&batch, added)) {
                    Ok(fetched) => {
                        let fetched = fetched?;
                        self.pending = Some(fetched.pending);
                        if fetched.batches > 0 {
                            self.last_batch = Instant::now();
                        }
                    }
                    Err(problem) => {
                        self.note_problem(problem);
                        if self.tell(progress).is_break() {
                            break 'anew;
                        }
                        std::thread::sleep(PAUSE);
                        continue 'anew;
                    }
                }
                if self.tell(progress).is_break() || self.file.check_name().is_err() {
                    break 'anew;
                }
                if self.lacks_earlier {
                    continue 'anew;
                }
            }
        }
        self.count();
        let is_there = self.file.check_name();
        let files = self.file.paths();
        let (stats, bytes) = self.file.finish()?;
        is_there?;
        let state = ReceiveProgress { bytes, ..self.state };
        Ok(ReceiveSummary { state, stats, files })
    }

    /// Notes that the broker could not be read. It may have lost its last messages, and given their numbers to others.
    fn note_problem(&mut self, problem: String) {
        (self.state.problem, self.trusted_from, self.refused_to) = (Some(problem), u64::MAX, 0);
        self.pending = None;
    }

    /// Begins to read the stream after the place of the file, or from its first batch on if that is needed.
    fn begin(&mut self) -> Result<BatchesOfStream, String> {
        let (first, last) = self.stream.sequences()?;
        let after_place = self.file.place().saturating_add(1);
        let from = match self.lacks_earlier {
            true => first,
            // Another stream has the name of the earlier one, or the broker has lost batches that this file has.
            false if after_place > last.saturating_add(1) => first,
            // The broker has lost the batch at this place, and given its number to another one.
            false if self.is_another_there(first)? => first,
            false => after_place,
        };
        if from <= first {
            self.trusted_from = self.trusted_from.min(first);
        }
        let batches = self.stream.read_from(from, &self.filter)?;
        self.lacks_earlier = false;
        Ok(batches)
    }

    /// Returns true if the stream has another message at the place of the file than the file has.
    fn is_another_there(&self, first: u64) -> Result<bool, String> {
        let place = self.file.place();
        // A file without batches has no place. The first number of a stream that never had a message may be 0, too.
        let is_forgotten = place == 0 || place < first;
        Ok(!is_forgotten && self.stream.stored_epoch_nanos(place)? != Some(self.file.stored_epoch_nanos()))
    }

    fn take(&mut self, batch: &StoredBatch, added: &mut dyn FnMut(&CaptureFile)) -> Result<(), CaptureError> {
        self.state.batches += 1;
        if self.lacks_earlier || self.share.is_some_and(|share| !share.has(&batch.subject)) {
            return Ok(());
        }
        let capture = match read_batch(&batch.bytes) {
            // There is no memory for it, for example.
            Err(error) if error.io_error().is_some() => return Err(error),
            Err(error) => {
                self.refuse(batch, format!("it is no batch: {error}"));
                return Ok(());
            }
            Ok(capture) => capture,
        };
        if let Err(why) = check_subject(self.stream.name(), &batch.subject, capture.rings()) {
            self.refuse(batch, why);
            return Ok(());
        }
        let states_gaps = batch.sequence >= self.trusted_from;
        match self.file.add(&capture, (batch.sequence, batch.stored_epoch_nanos), states_gaps)? {
            Added::All => added(&capture),
            Added::Nothing => {}
            Added::Lacks => self.lacks_earlier = true,
            Added::Refused(why) => self.refuse(batch, why),
        }
        Ok(())
    }

    /// Notes that a message was left out. The other messages are received as if it was not there.
    fn refuse(&mut self, batch: &StoredBatch, why: String) {
        // Another receiver of the stream finds it again.
        if batch.sequence <= self.refused_to {
            return;
        }
        self.refused_to = batch.sequence;
        self.state.refused += 1;
        let refusals = &mut self.state.refusals;
        if let Some(known) = refusals.iter_mut().find(|known| known.subject == batch.subject) {
            known.messages += 1;
        } else if refusals.len() < REFUSALS_MAX {
            refusals.push(Refusal { subject: batch.subject.clone(), why, messages: 1 });
        }
    }

    fn tell(&mut self, progress: &mut dyn FnMut(&ReceiveProgress) -> ControlFlow<()>) -> ControlFlow<()> {
        self.count();
        progress(&self.state)
    }

    fn count(&mut self) {
        let stats = self.file.stats();
        (self.state.events, self.state.lost) = (stats.events(), stats.lost());
        let has_all = self.pending == Some(0) && !self.lacks_earlier;
        (self.state.bytes, self.state.have_all_ended) = (self.file.bytes(), has_all && self.file.have_all_ended());
        self.state.idle = self.last_batch.elapsed();
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("stream", &self.stream).field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_in_exactly_one_part_and_all_its_rings_are() {
        let parts: Vec<Share> = (1..=3).filter_map(|part| Share::new(part, 3)).collect();
        let mut sizes = [0; 3];
        for host in 0..300 {
            let subject = |ring: &str| format!("S.web-{host}.{ring}.spans");
            let of = |subject: &str| (0..3).filter(|part| parts[*part].has(subject)).collect::<Vec<_>>();
            assert_eq!(of(&subject("a")).len(), 1);
            assert_eq!(of(&subject("a")), of(&subject("b")));
            sizes[of(&subject("a"))[0]] += 1;
        }
        assert!(sizes.iter().all(|size| *size > 50), "{sizes:?}");
        assert_eq!((Share::new(0, 3), Share::new(4, 3)), (None, None));
    }
}
