//! A receiver (`src/forward/receiver.rs`) with its file (`src/capture/received/`).

use super::broker::Broker;
use super::random::Random;
use super::{Batch, Counts, Fault, RecorderId, RingId};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of batches that a receiver takes in a step.
const BATCHES_PER_STEP: usize = 400;

/// A row of seqnos in a file.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub first: u64,
    pub last: u64,
    /// True if the stream has not these seqnos.
    pub is_gap_of_stream: bool,
}

/// The content of a file. Everything else about a receiver is gone when it is killed.
#[derive(Clone, Default)]
struct File {
    rings: BTreeMap<RingId, Vec<Range>>,
    /// The recorders of which nothing follows.
    ended: BTreeSet<RecorderId>,
    place: u64,
    /// The stamp of the message at this place.
    stamp: Option<u64>,
}

pub struct Receiver {
    pub broker: usize,
    share: usize,
    file: File,
    /// The next sequence number to read; `None` if the reading must begin.
    reading: Option<Reading>,
    lacking: Option<u64>,
    /// The number of steps for which the process does not run.
    pause: u64,
}

struct Reading {
    next: u64,
    /// The life of the broker in which this reading began.
    life: u64,
    /// The number from which on a missing seqno is missing in the stream, too.
    trusted_from: u64,
}

impl Receiver {
    pub fn new(broker: usize, share: usize) -> Self {
        Self { broker, share, file: File::default(), reading: None, lacking: None, pause: 0 }
    }

    pub fn files(&self) -> impl Iterator<Item = (&RingId, &Vec<Range>)> {
        self.file.rings.iter()
    }

    pub fn has_ended(&self, recorder: RecorderId) -> bool {
        self.file.ended.contains(&recorder)
    }

    pub fn step(
        &mut self,
        broker: &mut Broker,
        receivers: usize,
        fault: Option<Fault>,
        random: &mut Random,
        counts: &mut Counts,
    ) {
        if random.once_in(60) {
            counts.receiver_kills += 1;
            // What stands behind the last place is cut off, so a batch is in the file wholly or not at all.
            (self.reading, self.lacking) = (None, None);
            return;
        }
        if random.once_in(60) {
            self.pause = random.below(80);
        }
        match self.pause.checked_sub(1) {
            Some(left) => self.pause = left,
            None => self.read(broker, receivers, fault, counts),
        }
    }

    /// Reads until nothing more comes.
    pub fn finish(&mut self, broker: &mut Broker, receivers: usize, fault: Option<Fault>, counts: &mut Counts) {
        for _ in 0..200 {
            self.read(broker, receivers, fault, counts);
        }
    }

    fn read(&mut self, broker: &Broker, receivers: usize, fault: Option<Fault>, counts: &mut Counts) {
        if !broker.is_up() {
            return;
        }
        if self.reading.as_ref().is_none_or(|reading| reading.life != broker.life) || self.lacking.is_some() {
            self.begin(broker, fault, counts);
        }
        for _ in 0..BATCHES_PER_STEP {
            let Some(reading) = &mut self.reading else { return };
            let Some((sequence, batch)) = broker.next_from(reading.next) else { return };
            reading.next = sequence + 1;
            if batch.recorder.0 % (receivers * 5) / 5 != self.share {
                continue;
            }
            let states_gaps = sequence >= reading.trusted_from;
            let stamp = broker.stamp_of(sequence);
            if !self.file.add(batch, (sequence, stamp), states_gaps, fault) {
                self.lacking = Some(sequence);
                return;
            }
        }
    }

    /// Returns true if the stream has another message at the place of the file than the file has.
    fn is_another_there(&self, broker: &Broker) -> bool {
        self.file.place >= broker.first_sequence() && broker.stamp_of(self.file.place) != self.file.stamp
    }

    /// Begins to read after the place of the file, or from the first batch on if that is needed.
    fn begin(&mut self, broker: &Broker, fault: Option<Fault>, counts: &mut Counts) {
        let first = broker.first_sequence();
        let after_place = self.file.place + 1;
        let mut trusted_from = u64::MAX;
        let from = match self.lacking.take() {
            Some(lacking) => {
                trusted_from = lacking;
                first
            }
            None if after_place > broker.last_sequence() + 1 => first,
            // The broker has lost the message at this place, and given its number to another one.
            None if self.is_another_there(broker) && fault != Some(Fault::PlaceIsEnough) => first,
            None => after_place,
        };
        counts.rewinds += u64::from(from < after_place);
        if from <= first {
            trusted_from = trusted_from.min(first);
        }
        self.reading = Some(Reading { next: from, life: broker.life, trusted_from });
    }
}

impl File {
    /// Adds what a batch has and the file has not. Returns false, and adds nothing, if seqnos before the batch are
    /// missing, unless the gap may be stated.
    fn add(&mut self, batch: &Batch, place: (u64, Option<u64>), states_gaps: bool, fault: Option<Fault>) -> bool {
        let next = |file: &Self, ring: RingId| {
            file.rings.get(&ring).and_then(|ranges| ranges.last()).map_or(1, |range| range.last + 1)
        };
        let trusts_all = fault == Some(Fault::NoSeqnos);
        let lacks = batch.rows().any(|(ring, row)| row.first > next(self, ring));
        if lacks && !states_gaps && !trusts_all {
            return false;
        }
        for (ring, row) in batch.rows() {
            let next = if trusts_all { row.first } else { next(self, ring) };
            let ranges = self.rings.entry(ring).or_default();
            if row.first > next {
                ranges.push(Range { first: next, last: row.first - 1, is_gap_of_stream: true });
            }
            let first = row.first.max(next);
            if row.last >= first {
                ranges.push(Range { first, last: row.last, is_gap_of_stream: false });
                (self.place, self.stamp) = place;
            }
        }
        if place.0 > self.place {
            (self.place, self.stamp) = place;
        }
        if batch.is_last {
            self.ended.insert(batch.recorder)
        } else {
            self.ended.remove(&batch.recorder)
        };
        true
    }
}
