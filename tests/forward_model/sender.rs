//! A forwarder (`src/forward/forwarder.rs`) with its sender (`src/forward/sender.rs`).

use super::broker::{Answer, Broker};
use super::host::Recorder;
use super::random::Random;
use super::{Batch, BatchId, Counts, Fault, RecorderId, Row};
use std::collections::BTreeMap;

/// The place after a batch (`BatchStart`).
#[derive(Clone, Debug, Default)]
struct Start {
    /// The next seqno of each shard that was described.
    next: BTreeMap<usize, u64>,
    has_ended: bool,
}

impl Start {
    fn next_of(&self, shard: usize) -> u64 {
        self.next.get(&shard).copied().unwrap_or(1)
    }

    fn after(&mut self, batch: &Batch) {
        self.has_ended = batch.is_last;
        self.next.extend(batch.rows.iter().enumerate().map(|(shard, row)| (shard, row.last + 1)));
    }

    /// Returns true if both begin at the same seqnos in all of these shards.
    fn agrees_in(&self, other: &Self, mut shards: impl Iterator<Item = usize>) -> bool {
        shards.all(|shard| self.next_of(shard) == other.next_of(shard))
    }
}

#[derive(Clone, Debug)]
pub struct Forwarder {
    recorder: RecorderId,
    /// `None` until the stream was asked.
    start: Option<Start>,
    /// The sequence number of the last batch of the subject.
    last_sequence: u64,
    /// The last batch of this recorder: its sequence number, and its id.
    sent: Option<(u64, BatchId)>,
    /// The batch that is on its way.
    batch: Option<Batch>,
    /// The number of shards that the present capture has found.
    found: usize,
    /// The life of the broker in which the stream was asked last.
    life: u64,
    /// The number of steps for which the process does not run.
    pub pause: u64,
    /// True once the process has ended, because nothing follows.
    pub is_done: bool,
}

impl Forwarder {
    pub fn new(recorder: RecorderId) -> Self {
        Self {
            recorder,
            start: None,
            last_sequence: 0,
            sent: None,
            batch: None,
            found: 0,
            life: 0,
            pause: 0,
            is_done: false,
        }
    }

    /// Takes a step. Without `random`, nothing is lost on the way.
    pub fn step(
        &mut self,
        recorder: &Recorder,
        broker: &mut Broker,
        fault: Option<Fault>,
        mut random: Option<&mut Random>,
        counts: &mut Counts,
    ) {
        let Some(before) = self.start.clone() else {
            // A failed look is tried again in the next step.
            if self.look(broker, &Start::default(), fault).is_ok() {
                self.begin_capture(recorder);
            }
            return;
        };
        if self.batch.is_none() {
            // A new shard is found a little later than its first event.
            if random.as_deref_mut().is_none_or(|random| random.once_in(3)) {
                self.found = recorder.shards.len();
            }
            self.batch = self.copy(recorder, &before, counts);
        }
        let Some(batch) = self.batch.clone() else { return };
        if batch.is_empty() && before.has_ended {
            self.is_done = true;
            return;
        }
        if self.life != broker.life && fault != Some(Fault::NumberIsEnough) {
            // A broker that was started again may have given the number of the last batch to another one.
            if self.look(broker, &before, fault).is_ok() {
                self.check_that_it_follows(recorder, &before, &batch, fault, counts);
            }
            return;
        }
        let expected = (fault != Some(Fault::NothingExpected)).then_some(self.last_sequence);
        let mut is_lost = |times| random.as_deref_mut().is_some_and(|random| random.once_in(times));
        let mut answer = if is_lost(100) { Answer::None } else { broker.publish(&batch, expected) };
        if answer != Answer::None && is_lost(50) {
            counts.lost_answers += 1;
            answer = Answer::None;
        }
        self.take(answer, &before, &batch, (recorder, broker), fault, counts);
    }

    /// Finds all shards. Earlier captures have opened those that they have found.
    fn begin_capture(&mut self, recorder: &Recorder) {
        self.batch = None;
        self.found = recorder.shards.len();
    }

    /// Copies the next seqnos of all shards. Those that were overwritten are a gap.
    fn copy(&self, recorder: &Recorder, start: &Start, counts: &mut Counts) -> Option<Batch> {
        /// The largest number of events of a shard in a batch.
        const EVENTS_MAX: u64 = 200;
        let mut gaps = 0;
        let rows = recorder.shards.iter().take(self.found).enumerate().map(|(shard, ring)| {
            let first = start.next_of(shard);
            let oldest = ring.handed_out.saturating_sub(ring.capacity) + 1;
            let gap = oldest.saturating_sub(first);
            gaps += gap;
            Row { first, last: ring.handed_out.min(first + gap + EVENTS_MAX - 1) }
        });
        let rows: Vec<Row> = rows.collect();
        let mut shards = recorder.shards.iter().zip(&rows);
        let is_all = rows.len() == recorder.shards.len() && shards.all(|(ring, row)| row.last == ring.handed_out);
        let mut batch = Batch { recorder: self.recorder, rows, is_last: false };
        let is_over = recorder.has_ended && is_all;
        // The last batch with events may say that nothing follows, or another one does.
        let handed_out: u64 = recorder.shards.iter().map(|ring| ring.handed_out).sum();
        batch.is_last = is_over && (batch.is_empty() || handed_out.is_multiple_of(2));
        counts.overwritten += gaps;
        (!batch.is_empty() || batch.is_last).then_some(batch)
    }

    /// Takes the answer to a batch, as `BatchSender::send` does.
    fn take(
        &mut self,
        answer: Answer,
        before: &Start,
        batch: &Batch,
        (recorder, broker): (&Recorder, &Broker),
        fault: Option<Fault>,
        counts: &mut Counts,
    ) {
        let mut after = before.clone();
        after.after(batch);
        match answer {
            Answer::Stored { sequence, is_duplicate } if !is_duplicate || fault == Some(Fault::DuplicateIsSuccess) => {
                counts.batches += 1;
                counts.ends += u64::from(batch.is_last);
                self.sent = Some((sequence, batch.id()));
                self.last_sequence = sequence;
                self.go_on_after(after);
                return;
            }
            Answer::Stored { .. } | Answer::WrongLast => counts.refused += 1,
            Answer::None => {}
        }
        if self.look(broker, before, fault).is_err() {
            return;
        }
        let Some(start) = self.start.clone() else { return };
        if fault == Some(Fault::RefusedEndIsSuccess) && batch.is_empty() && answer != Answer::None {
            self.go_on_after(after);
            return;
        }
        if Self::agrees(&start, &after, batch, fault) && (start.has_ended || !after.has_ended) {
            self.go_on_after(start);
            return;
        }
        self.check_that_it_follows(recorder, before, batch, fault, counts);
    }

    /// Goes on after the batch that was on its way. The stream has it.
    fn go_on_after(&mut self, start: Start) {
        self.is_done = start.has_ended;
        self.start = Some(start);
        self.batch = None;
    }

    fn agrees(start: &Start, other: &Start, batch: &Batch, fault: Option<Fault>) -> bool {
        if fault == Some(Fault::OtherShardsDoNotMatter) {
            return start.agrees_in(other, 0..batch.rows.len());
        }
        start.agrees_in(other, start.next.keys().chain(other.next.keys()).copied())
    }

    /// Begins anew if the stream does not end where it ended before.
    fn check_that_it_follows(
        &mut self,
        recorder: &Recorder,
        before: &Start,
        batch: &Batch,
        fault: Option<Fault>,
        counts: &mut Counts,
    ) {
        let follows = self.start.as_ref().is_some_and(|start| Self::agrees(start, before, batch, fault));
        if !follows {
            counts.restarts += 1;
            self.begin_capture(recorder);
        }
    }

    /// Asks for the last batch of the subject. `known` is where the shards were believed to be.
    fn look(&mut self, broker: &Broker, known: &Start, fault: Option<Fault>) -> Result<(), ()> {
        let last = broker.last_of(self.recorder.0)?;
        self.life = broker.life;
        self.last_sequence = last.map_or(0, |(sequence, _)| sequence);
        let Some((sequence, batch)) = last.filter(|(_, batch)| batch.recorder == self.recorder) else {
            // There is none, or another recorder had this subject before, or has it now.
            self.start = Some(self.after_loss(broker, known));
            return Ok(());
        };
        let mut start = if fault == Some(Fault::UnknownShardsStay) { known.clone() } else { Start::default() };
        start.after(batch);
        self.start = Some(start);
        if fault != Some(Fault::OnlyOwnBatchesAreRemembered) {
            self.sent = Some((sequence, batch.id()));
        }
        Ok(())
    }

    /// Returns the place if the stream ends with no batch of this recorder: `known`, if it has forgotten them or has
    /// others after them; the beginning, if the broker has lost them.
    fn after_loss(&self, broker: &Broker, known: &Start) -> Start {
        let is_lost = |(sequence, id)| sequence >= broker.first_sequence() && broker.id_of(sequence) != Some(id);
        if self.sent.is_some_and(is_lost) { Start::default() } else { known.clone() }
    }
}
