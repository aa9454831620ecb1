//! A broker with one stream, as `nats-server` with JetStream keeps it.

use super::random::Random;
use super::{Batch, BatchId, Counts, RecorderId, RingId};
use std::collections::{HashMap, HashSet, VecDeque};

/// The number of batches that a stream keeps. The oldest go.
const STREAM_BATCHES: usize = 6000;
/// The number of the last batches that a crash may lose, although they were acknowledged.
const UNSYNCED: u64 = 60;
/// The number of steps for which message ids are remembered.
const ID_STEPS: u64 = 20;

#[derive(Default)]
pub struct Broker {
    stream: VecDeque<(u64, Batch)>,
    /// For each message, a number that no other message has: the time at which it was stored.
    stamps: HashMap<u64, u64>,
    last_stamp: u64,
    last_sequence: u64,
    /// For each host, the sequence number of the last batch of its subject.
    last_of_subject: HashMap<usize, u64>,
    ids: HashSet<BatchId>,
    old_ids: HashSet<BatchId>,
    /// The last seqnos of batches that were lost in crashes, with the sequence numbers of these batches.
    lost: HashMap<(RingId, u64), u64>,
    /// For each ring, the last seqno of the batches that were forgotten because there were too many.
    forgotten: HashMap<RingId, u64>,
    /// The recorders whose last batch was forgotten.
    forgotten_ends: HashSet<RecorderId>,
    /// For each ring with batches in the stream, the last seqno of the last of them.
    ends: HashMap<RingId, u64>,
    /// Faults of the stream: batches that do not follow the one before them.
    pub violations: Vec<String>,
    now: u64,
    down_until: u64,
    /// Grows with each crash: connections and consumers of earlier lives are gone.
    pub life: u64,
}

/// The answer to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The number under which it is there. `is_duplicate` says that its id was there before.
    Stored { sequence: u64, is_duplicate: bool },
    /// Another batch is the last one of the subject.
    WrongLast,
    /// No answer came.
    None,
}

impl Broker {
    pub fn step(&mut self, random: &mut Random, counts: &mut Counts) {
        self.now += 1;
        if self.now.is_multiple_of(ID_STEPS) {
            self.old_ids = std::mem::take(&mut self.ids);
        }
        if self.is_up() && random.once_in(40) {
            counts.crashes += 1;
            self.life += 1;
            self.down_until = self.now + random.below(12);
            if random.once_in(2) {
                for _ in 0..random.below(UNSYNCED) {
                    if let Some((sequence, batch)) = self.stream.pop_back() {
                        counts.lost_batches += 1;
                        self.lost.extend(batch.rows().map(|(ring, row)| ((ring, row.last), sequence)));
                    }
                }
                self.last_sequence = self.stream.back().map_or(self.last_sequence, |(sequence, _)| *sequence);
                self.read_again();
            }
        }
        while self.stream.len() > STREAM_BATCHES {
            counts.forgotten += 1;
            if let Some((_, batch)) = self.stream.pop_front() {
                if batch.is_last {
                    self.forgotten_ends.insert(batch.recorder);
                }
                for (ring, row) in batch.rows() {
                    let last = self.forgotten.entry(ring).or_default();
                    *last = row.last.max(*last);
                    if self.ends.get(&ring).is_some_and(|end| end <= last) {
                        self.ends.remove(&ring);
                    }
                }
            }
            self.read_again_if_forgotten();
        }
    }

    /// Finds the last batches and the ids anew, as a broker does that reads its files.
    fn read_again(&mut self) {
        self.last_of_subject = self.stream.iter().map(|(sequence, batch)| (batch.recorder.0, *sequence)).collect();
        let rows = self.stream.iter().flat_map(|(_, batch)| batch.rows());
        self.ends = rows.map(|(ring, row)| (ring, row.last)).collect();
        self.ids = self.stream.iter().rev().take(500).map(|(_, batch)| batch.id()).collect();
        self.old_ids.clear();
    }

    fn read_again_if_forgotten(&mut self) {
        let first = self.first_sequence();
        self.last_of_subject.retain(|_, sequence| *sequence >= first);
    }

    /// Returns true if a batch that ends with this seqno was lost in a crash, and the stream has forgotten all batches
    /// of that time since then. A forwarder that learns of the crash only then cannot know that its batch was lost, and
    /// the events are missing.
    pub fn has_lost(&self, ring: RingId, seqno: u64) -> bool {
        self.lost.get(&(ring, seqno)).is_some_and(|sequence| *sequence < self.first_sequence())
    }

    /// Returns true if the stream once had this seqno, and has forgotten it.
    pub fn has_forgotten(&self, ring: RingId, seqno: u64) -> bool {
        self.forgotten.get(&ring).is_some_and(|last| seqno <= *last)
    }

    /// Returns true if the stream once had the last batch of a recorder, and has forgotten it.
    pub fn has_forgotten_end(&self, recorder: RecorderId) -> bool {
        self.forgotten_ends.contains(&recorder)
    }

    /// Stays up from now on. The ids of all messages are forgotten after a while.
    pub fn stay_up(&mut self) {
        self.down_until = 0;
        (self.ids, self.old_ids) = Default::default();
    }

    pub fn is_up(&self) -> bool {
        self.now >= self.down_until
    }

    pub fn first_sequence(&self) -> u64 {
        self.stream.front().map_or(self.last_sequence + 1, |(sequence, _)| *sequence)
    }

    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Stores a batch, if `after` is the number of the last one of its subject. `None` expects nothing.
    pub fn publish(&mut self, batch: &Batch, after: Option<u64>) -> Answer {
        if !self.is_up() {
            return Answer::None;
        }
        let last = self.last_of_subject.get(&batch.recorder.0).copied().unwrap_or(0);
        if self.ids.contains(&batch.id()) || self.old_ids.contains(&batch.id()) {
            return Answer::Stored { sequence: last, is_duplicate: true };
        }
        if after.is_some_and(|after| after != last) {
            return Answer::WrongLast;
        }
        self.last_sequence += 1;
        self.last_stamp += 1;
        self.stamps.insert(self.last_sequence, self.last_stamp);
        self.check(batch);
        self.stream.push_back((self.last_sequence, batch.clone()));
        self.last_of_subject.insert(batch.recorder.0, self.last_sequence);
        self.ids.insert(batch.id());
        Answer::Stored { sequence: self.last_sequence, is_duplicate: false }
    }

    /// Checks that a batch follows what the stream has of its ring.
    fn check(&mut self, batch: &Batch) {
        for (ring, row) in batch.rows() {
            let Some(end) = self.ends.insert(ring, row.last) else { continue };
            // A forwarder may send again what the stream has forgotten.
            let is_again = row.first <= end && self.has_forgotten(ring, end);
            if row.first != end + 1 && !is_again {
                self.violations.push(format!("{ring:?}: {batch:?} comes where {} is next", end + 1));
            }
        }
    }

    /// Returns the last batch of a host, or an error if the broker is down.
    pub fn last_of(&self, host: usize) -> Result<Option<(u64, &Batch)>, ()> {
        if !self.is_up() {
            return Err(());
        }
        let Some(sequence) = self.last_of_subject.get(&host) else { return Ok(None) };
        Ok(self.batch(*sequence).map(|batch| (*sequence, batch)))
    }

    /// Returns the first batch from a number on.
    pub fn next_from(&self, sequence: u64) -> Option<(u64, &Batch)> {
        let index = self.stream.partition_point(|(number, _)| *number < sequence);
        self.stream.get(index).map(|(number, batch)| (*number, batch))
    }

    /// Returns the stamp of a message, if it is still there.
    pub fn stamp_of(&self, sequence: u64) -> Option<u64> {
        self.batch(sequence).and(self.stamps.get(&sequence).copied())
    }

    /// Returns the id of a message, if it is still there.
    pub fn id_of(&self, sequence: u64) -> Option<BatchId> {
        self.batch(sequence).map(Batch::id)
    }

    fn batch(&self, sequence: u64) -> Option<&Batch> {
        let index = self.stream.binary_search_by_key(&sequence, |(number, _)| *number).ok()?;
        self.stream.get(index).map(|(_, batch)| batch)
    }
}
