//! A host: a program that records into a ring or several shards, and its forwarders.

use super::broker::Broker;
use super::random::Random;
use super::sender::Forwarder;
use super::{Counts, Fault, RecorderId, RingId};

/// The largest number of shards of a recorder.
const SHARDS_MAX: usize = 4;

/// A ring: the seqnos that it has handed out, and how many of the last it still holds.
pub struct Ring {
    pub handed_out: u64,
    pub capacity: u64,
}

/// A recorder with its shards.
pub struct Recorder {
    id: RecorderId,
    pub shards: Vec<Ring>,
    pub has_ended: bool,
}

pub struct Host {
    number: usize,
    pub broker: usize,
    recorder: Recorder,
    /// The rings that were replaced, with the seqnos that they had handed out.
    replaced: Vec<(RingId, u64)>,
    rate: u64,
    /// The number of steps for which the program records nothing.
    quiet: u64,
    capacity: u64,
    forwarders: Vec<Forwarder>,
}

impl Recorder {
    fn new(id: RecorderId, capacity: u64) -> Self {
        Self { id, shards: vec![Ring { handed_out: 0, capacity }], has_ended: false }
    }

    fn handed_out(&self) -> impl Iterator<Item = (RingId, u64)> {
        self.shards.iter().enumerate().map(|(shard, ring)| ((self.id, shard), ring.handed_out))
    }
}

impl Host {
    pub fn new(number: usize, broker: usize, random: &mut Random) -> Self {
        let capacity = 200 + random.below(2000);
        let recorder = Recorder::new((number, 1), capacity);
        let forwarders = vec![Forwarder::new(recorder.id)];
        let rate = 1 + random.below(100);
        Self { number, broker, recorder, replaced: Vec::new(), rate, quiet: 0, capacity, forwarders }
    }

    pub fn step(&mut self, broker: &mut Broker, fault: Option<Fault>, random: &mut Random, counts: &mut Counts) {
        if !self.recorder.has_ended {
            self.record(random, counts);
        }
        if random.once_in(300) {
            self.start_program_again(counts);
        }
        if random.once_in(40) && !self.forwarders.is_empty() {
            counts.forwarder_kills += 1;
            self.forwarders.remove(0);
        }
        // Somebody, or something, starts a forwarder again; sometimes by mistake a second one.
        if self.forwarders.is_empty() && random.once_in(5) {
            self.forwarders.push(Forwarder::new(self.recorder.id));
        } else if self.forwarders.len() == 1 && random.once_in(50) {
            counts.second_forwarders += 1;
            self.forwarders.push(Forwarder::new(self.recorder.id));
        }
        for forwarder in &mut self.forwarders {
            if forwarder.pause > 0 {
                forwarder.pause -= 1;
                continue;
            }
            if random.once_in(60) {
                forwarder.pause = random.below(80);
            }
            forwarder.step(&self.recorder, broker, fault, Some(random), counts);
        }
        self.forwarders.retain(|forwarder| !forwarder.is_done);
    }

    fn record(&mut self, random: &mut Random, counts: &mut Counts) {
        if self.quiet > 0 {
            self.quiet -= 1;
            return;
        }
        if random.once_in(80) {
            self.quiet = random.below(80);
        }
        let burst = if random.once_in(50) { 20 } else { 1 };
        let events = random.below(self.rate * burst + 1);
        if random.once_in(60) && self.recorder.shards.len() < SHARDS_MAX {
            counts.more_shards += 1;
            self.recorder.shards.push(Ring { handed_out: 0, capacity: self.capacity });
        }
        let shard = random.below(self.recorder.shards.len() as u64) as usize;
        self.recorder.shards[shard].handed_out += events;
        counts.events += events;
        self.recorder.has_ended = random.once_in(400);
    }

    /// Ends the program; the rings of the next one replace its rings. A forwarder that runs has the old rings mapped,
    /// and sends them to their end before it goes on with the new ones.
    fn start_program_again(&mut self, counts: &mut Counts) {
        counts.new_rings += 1;
        self.replaced.extend(self.recorder.handed_out());
        self.recorder = Recorder::new((self.number, self.recorder.id.1 + 1), self.capacity);
        // The model has no forwarder that is still busy with the old rings: it dies with the program.
        self.forwarders = vec![Forwarder::new(self.recorder.id)];
    }

    /// Ends the program, and sends what is left, without disturbance.
    pub fn finish(&mut self, broker: &mut Broker, fault: Option<Fault>, _: &mut Random, counts: &mut Counts) {
        self.recorder.has_ended = true;
        let mut forwarder = self.forwarders.pop().unwrap_or_else(|| Forwarder::new(self.recorder.id));
        for _ in 0..1_000 {
            forwarder.step(&self.recorder, broker, fault, None, counts);
        }
    }

    /// Returns the rings, with the seqnos that each has handed out.
    pub fn handed_out(&self) -> impl Iterator<Item = (RingId, u64)> {
        self.replaced.iter().copied().chain(self.recorder.handed_out())
    }

    pub fn recorder(&self) -> RecorderId {
        self.recorder.id
    }

    pub fn is_replaced(&self, recorder: RecorderId) -> bool {
        recorder != self.recorder.id
    }
}
