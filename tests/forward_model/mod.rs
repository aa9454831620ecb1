//! The course of a simulation: hosts, brokers and receivers, each of which takes a step in turn.

mod broker;
mod host;
mod random;
mod receiver;
mod sender;

use broker::Broker;
use host::Host;
use random::Random;
use receiver::Receiver;
use std::collections::BTreeMap;

/// The number of brokers. Each has one stream.
const BROKERS: usize = 5;
/// The number of receivers of each stream.
const RECEIVERS: usize = 2;

/// A rule that is switched off, to see that its absence is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A forwarder does not say which batch it believes to be the last.
    NothingExpected,
    /// A forwarder believes that a batch is there if its id is.
    DuplicateIsSuccess,
    /// A forwarder believes that the last batch is there if the broker has refused it.
    RefusedEndIsSuccess,
    /// A forwarder looks only at the shards of its own batch to see whether the stream went on without it.
    OtherShardsDoNotMatter,
    /// A forwarder keeps its place in shards that the last batch of the stream does not describe.
    UnknownShardsStay,
    /// A forwarder remembers only batches that it has sent itself.
    OnlyOwnBatchesAreRemembered,
    /// A forwarder does not ask again after a broker was started again.
    NumberIsEnough,
    /// A receiver does not look whether the message at its place is still the one that it has.
    PlaceIsEnough,
    /// A receiver adds each batch that comes, whatever its seqnos.
    NoSeqnos,
}

/// The identity of a recorder: the host, and which of the host's programs made it.
pub type RecorderId = (usize, u64);
/// The identity of a ring: the recorder, and the index of the shard.
pub type RingId = (RecorderId, usize);
/// The id of a message: a ring, and its first seqno in the batch; 0 for the end.
pub type BatchId = (RingId, u64);

/// A batch: consecutive seqnos of each shard of a recorder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    pub recorder: RecorderId,
    /// The shards that it describes, by their index.
    pub rows: Vec<Row>,
    /// True if nothing follows.
    pub is_last: bool,
}

/// The seqnos of a shard in a batch. Each is an event or in a gap. There are none if the last is the first less 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub first: u64,
    pub last: u64,
}

impl Batch {
    /// Returns true if the batch has no seqnos.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(Row::is_empty)
    }

    /// Returns the rows with their rings.
    pub fn rows(&self) -> impl Iterator<Item = (RingId, &Row)> {
        self.rows.iter().enumerate().map(|(shard, row)| ((self.recorder, shard), row))
    }

    pub fn id(&self) -> BatchId {
        let first = self.rows().find(|(_, row)| !row.is_empty());
        first.map_or(((self.recorder, 0), 0), |(ring, row)| (ring, row.first))
    }
}

impl Row {
    pub fn is_empty(&self) -> bool {
        self.last < self.first
    }
}

/// The counts of a course.
#[derive(Clone, Copy, Debug, Default)]
#[allow(dead_code, reason = "the test prints all of them")]
pub struct Counts {
    pub events: u64,
    pub batches: u64,
    pub forwarder_kills: u64,
    pub receiver_kills: u64,
    pub crashes: u64,
    pub lost_batches: u64,
    pub lost_answers: u64,
    pub refused: u64,
    pub restarts: u64,
    pub rewinds: u64,
    pub overwritten: u64,
    pub forgotten: u64,
    pub second_forwarders: u64,
    pub new_rings: u64,
    pub more_shards: u64,
    /// Last batches, which say that nothing follows.
    pub ends: u64,
    /// Seqnos of rings that were replaced before a forwarder had seen them. Nobody knows of them.
    pub unseen: u64,
    /// The last seqnos of rings whose stream has forgotten them before their receiver came. Nothing follows them.
    pub forgotten_at_end: u64,
    /// Seqnos in gaps that receivers state because their stream lacks them.
    pub gaps_of_stream: u64,
}

/// The end of a course.
pub struct Outcome {
    pub counts: Counts,
    pub violations: Vec<String>,
}

/// A course of events that a seed determines.
pub struct Course {
    random: Random,
    fault: Option<Fault>,
    hosts: Vec<Host>,
    brokers: Vec<Broker>,
    receivers: Vec<Receiver>,
    counts: Counts,
}

impl Course {
    pub fn new(seed: u64, hosts: usize, fault: Option<Fault>) -> Self {
        let mut random = Random::new(seed);
        let hosts = (0..hosts).map(|host| Host::new(host, host % BROKERS, &mut random)).collect();
        let receivers = (0..BROKERS * RECEIVERS).map(|number| Receiver::new(number / RECEIVERS, number % RECEIVERS));
        let receivers = receivers.collect();
        let brokers = (0..BROKERS).map(|_| Broker::default()).collect();
        Self { random, fault, hosts, brokers, receivers, counts: Counts::default() }
    }

    /// Takes all steps, lets everything that is still on its way arrive, and checks the account.
    pub fn run(mut self, steps: usize) -> Outcome {
        for _ in 0..steps {
            for broker in &mut self.brokers {
                broker.step(&mut self.random, &mut self.counts);
            }
            for host in &mut self.hosts {
                let broker = &mut self.brokers[host.broker];
                host.step(broker, self.fault, &mut self.random, &mut self.counts);
            }
            for receiver in &mut self.receivers {
                let broker = &mut self.brokers[receiver.broker];
                receiver.step(broker, RECEIVERS, self.fault, &mut self.random, &mut self.counts);
            }
        }
        self.brokers.iter_mut().for_each(Broker::stay_up);
        for host in &mut self.hosts {
            host.finish(&mut self.brokers[host.broker], self.fault, &mut self.random, &mut self.counts);
        }
        for receiver in &mut self.receivers {
            receiver.finish(&mut self.brokers[receiver.broker], RECEIVERS, self.fault, &mut self.counts);
        }
        let violations = self.violations();
        Outcome { counts: self.counts, violations }
    }

    /// Compares what the rings have handed out with what is in the files.
    fn violations(&mut self) -> Vec<String> {
        let mut handed_out: BTreeMap<RingId, u64> = BTreeMap::new();
        for host in &self.hosts {
            handed_out.extend(host.handed_out());
        }
        let mut violations: Vec<String> = self.brokers.iter().flat_map(|broker| broker.violations.clone()).collect();
        let mut seen: BTreeMap<RingId, u64> = BTreeMap::new();
        for receiver in &self.receivers {
            for (ring, ranges) in receiver.files() {
                let mut next = 1;
                for range in ranges {
                    if range.first != next {
                        violations.push(format!("{ring:?}: {} comes where {next} is next", range.first));
                    }
                    next = range.last + 1;
                    if range.is_gap_of_stream {
                        self.counts.gaps_of_stream += range.last + 1 - range.first;
                        let broker = &self.brokers[receiver.broker];
                        if !broker.has_forgotten(*ring, range.last) && !broker.has_lost(*ring, range.last) {
                            violations.push(format!("{ring:?}: the gap {range:?} was never in the stream"));
                        }
                    }
                }
                if seen.insert(*ring, next - 1).is_some() {
                    violations.push(format!("{ring:?} is in the files of two receivers"));
                }
            }
        }
        for (ring, last) in handed_out {
            let known = seen.get(&ring).copied().unwrap_or(0);
            let is_replaced = self.hosts[ring.0.0].is_replaced(ring.0);
            match last - known.min(last) {
                _ if known > last => violations.push(format!("{ring:?}: {known} of {last} seqnos")),
                0 => {}
                // The documented exception: its last events were never seen by a forwarder.
                missing if is_replaced => self.counts.unseen += missing,
                // No later batch tells a receiver that came too late.
                missing if self.brokers[self.hosts[ring.0.0].broker].has_forgotten(ring, last) => {
                    self.counts.forgotten_at_end += missing;
                }
                missing => violations.push(format!("{ring:?}: {missing} of {last} seqnos are nowhere")),
            }
        }
        for host in &self.hosts {
            let recorder = host.recorder();
            let is_known = self.receivers.iter().any(|receiver| receiver.has_ended(recorder));
            if !is_known && !self.brokers[host.broker].has_forgotten_end(recorder) {
                violations.push(format!("{recorder:?}: no receiver knows that it has ended"));
            }
        }
        violations
    }
}
