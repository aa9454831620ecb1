//! A host: a program that records into a ring, and its forwarders.

use super::broker::{Answer, Broker};
use super::random::Random;
use super::{Batch, Counts, Fault, RingId};

/// The largest number of seqnos in a batch.
const BATCH_MAX: u64 = 200;

/// A ring: the seqnos that it has handed out, and how many of the last it still holds.
struct Ring {
    id: RingId,
    handed_out: u64,
    capacity: u64,
}

pub struct Host {
    number: usize,
    pub broker: usize,
    ring: Ring,
    /// The rings that were replaced, with the seqnos that they had handed out.
    replaced: Vec<(RingId, u64)>,
    rate: u64,
    forwarders: Vec<Forwarder>,
}

/// A forwarder (`src/forward/forwarder.rs`) with its sender (`src/forward/sender.rs`).
#[derive(Clone, Debug)]
struct Forwarder {
    ring: RingId,
    /// The next seqno (`BatchStart`); `None` until the stream was asked.
    next: Option<u64>,
    /// The sequence number of the last batch of the subject.
    last_sequence: u64,
    /// The last batch of this ring: its sequence number, and its stamp.
    sent: Option<(u64, Option<u64>)>,
    /// The batch that is on its way.
    batch: Option<Batch>,
    /// The life of the broker in which the stream was asked last.
    life: u64,
    /// The number of steps for which the process does not run.
    pause: u64,
    /// True once the program has ended: then a last batch says so.
    is_over: bool,
    has_ended: bool,
}

impl Host {
    pub fn new(number: usize, broker: usize, random: &mut Random) -> Self {
        let ring = Ring { id: (number, 1), handed_out: 0, capacity: 200 + random.below(2000) };
        let forwarders = vec![Forwarder::new(ring.id)];
        Self { number, broker, ring, replaced: Vec::new(), rate: 1 + random.below(100), forwarders }
    }

    pub fn step(&mut self, broker: &mut Broker, fault: Option<Fault>, random: &mut Random, counts: &mut Counts) {
        let burst = if random.once_in(50) { 20 } else { 1 };
        let events = random.below(self.rate * burst + 1);
        self.ring.handed_out += events;
        counts.events += events;
        if random.once_in(300) {
            self.start_program_again(counts);
        }
        if random.once_in(40) && !self.forwarders.is_empty() {
            counts.forwarder_kills += 1;
            self.forwarders.remove(0);
        }
        // Somebody, or something, starts a forwarder again; sometimes by mistake a second one.
        if self.forwarders.is_empty() && random.once_in(5) {
            self.forwarders.push(Forwarder::new(self.ring.id));
        } else if self.forwarders.len() == 1 && random.once_in(50) {
            counts.second_forwarders += 1;
            self.forwarders.push(Forwarder::new(self.ring.id));
        }
        for forwarder in &mut self.forwarders {
            if forwarder.pause > 0 {
                forwarder.pause -= 1;
                continue;
            }
            if random.once_in(60) {
                forwarder.pause = random.below(80);
            }
            forwarder.step(&self.ring, broker, fault, Some(random), counts);
        }
    }

    /// Ends the program; the ring of the next one replaces its ring. A forwarder that runs has the old ring mapped, and
    /// sends it to its end before it goes on with the new one.
    fn start_program_again(&mut self, counts: &mut Counts) {
        counts.new_rings += 1;
        self.replaced.push((self.ring.id, self.ring.handed_out));
        self.ring = Ring { id: (self.number, self.ring.id.1 + 1), handed_out: 0, capacity: self.ring.capacity };
        // The model has no forwarder that is still busy with the old ring: it dies with the program.
        self.forwarders = vec![Forwarder::new(self.ring.id)];
    }

    /// Sends what is left, without disturbance.
    pub fn finish(&mut self, broker: &mut Broker, fault: Option<Fault>, _: &mut Random, counts: &mut Counts) {
        let mut forwarder = self.forwarders.pop().unwrap_or_else(|| Forwarder::new(self.ring.id));
        forwarder.is_over = true;
        for _ in 0..1_000 {
            forwarder.step(&self.ring, broker, fault, None, counts);
        }
    }

    /// Returns the rings, with the seqnos that each has handed out.
    pub fn handed_out(&self) -> impl Iterator<Item = (RingId, u64)> {
        self.replaced.iter().copied().chain([(self.ring.id, self.ring.handed_out)])
    }

    pub fn is_replaced(&self, ring: RingId) -> bool {
        ring != self.ring.id
    }
}

impl Forwarder {
    fn new(ring: RingId) -> Self {
        Self {
            ring,
            next: None,
            last_sequence: 0,
            sent: None,
            pause: 0,
            batch: None,
            life: 0,
            is_over: false,
            has_ended: false,
        }
    }

    /// Takes a step. Without `random`, nothing is lost on the way.
    fn step(
        &mut self,
        ring: &Ring,
        broker: &mut Broker,
        fault: Option<Fault>,
        random: Option<&mut Random>,
        counts: &mut Counts,
    ) {
        if self.next.is_none() {
            // A failed look is tried again in the next step.
            let _ = self.look(broker, 1);
            return;
        }
        let next = self.next.unwrap_or(1);
        if self.life != broker.life && fault != Some(Fault::NumberIsEnough) {
            // A broker that was started again may have given the number of the last batch to another one.
            if self.look(broker, next).is_ok() && self.next != Some(next) {
                counts.restarts += 1;
                self.batch = None;
            }
            return;
        }
        if self.batch.is_none() {
            self.batch = copy(ring, next, counts).or_else(|| self.end_of(next));
        }
        let Some(batch) = self.batch.clone() else { return };
        let expected = (fault != Some(Fault::NothingExpected)).then_some(self.last_sequence);
        let mut may_lose = random;
        let mut is_lost = |times| may_lose.as_deref_mut().is_some_and(|random| random.once_in(times));
        let mut answer = if is_lost(100) { Answer::None } else { broker.publish(&batch, expected) };
        if answer != Answer::None && is_lost(50) {
            counts.lost_answers += 1;
            answer = Answer::None;
        }
        self.take(answer, &batch, broker, fault, counts);
    }

    /// Returns the batch without seqnos that says that the program has ended.
    fn end_of(&self, next: u64) -> Option<Batch> {
        let is_due = self.is_over && !self.has_ended;
        is_due.then_some(Batch { ring: self.ring, first: next, last: next - 1, gap: 0 })
    }

    /// Takes the answer to a batch, as `Sender::send` does.
    fn take(&mut self, answer: Answer, batch: &Batch, broker: &Broker, fault: Option<Fault>, counts: &mut Counts) {
        match answer {
            Answer::Stored { sequence, is_duplicate } if !is_duplicate || fault == Some(Fault::DuplicateIsSuccess) => {
                counts.batches += 1;
                (self.last_sequence, self.next, self.batch) = (sequence, Some(batch.last + 1), None);
                self.has_ended = batch.is_end();
                self.sent = Some((sequence, broker.stamp_of(sequence)));
                return;
            }
            Answer::Stored { .. } | Answer::WrongLast => counts.refused += 1,
            Answer::None => {}
        }
        let before = self.next.unwrap_or(1);
        if self.look(broker, before).is_err() {
            return;
        }
        // What the broker has refused is there already, or another batch is.
        if batch.is_end() && self.next == Some(before) && answer != Answer::None {
            (self.batch, self.has_ended) = (None, true);
            return;
        }
        match self.next {
            Some(next) if next == batch.last + 1 => self.batch = None,
            // It is not there: it is sent again.
            Some(next) if next == before => {}
            _ => {
                counts.restarts += 1;
                self.batch = None;
            }
        }
    }

    /// Asks for the last batch of the subject. If there is none of this ring, `known` stays.
    fn look(&mut self, broker: &Broker, known: u64) -> Result<(), ()> {
        let last = broker.last_of(self.ring.0)?;
        self.life = broker.life;
        match last {
            None => (self.last_sequence, self.next) = (0, Some(self.after_loss(broker, known))),
            Some((sequence, last)) if last.ring == self.ring => {
                (self.last_sequence, self.next) = (sequence, Some(last.last + 1));
                self.sent = Some((sequence, broker.stamp_of(sequence)));
            }
            // Another ring had this subject before, or has it now.
            Some((sequence, _)) => (self.last_sequence, self.next) = (sequence, Some(self.after_loss(broker, known))),
        }
        Ok(())
    }
}

impl Forwarder {
    /// Returns the next seqno if the stream ends with no batch of this ring: `known`, if it has forgotten them or has
    /// others after them; the first one, if the broker has lost them.
    fn after_loss(&self, broker: &Broker, known: u64) -> u64 {
        let is_lost = |(sequence, stamp)| sequence >= broker.first_sequence() && broker.stamp_of(sequence) != stamp;
        if self.sent.is_some_and(is_lost) { 1 } else { known }
    }
}

/// Copies the next seqnos of a ring. Those that were overwritten are a gap.
fn copy(ring: &Ring, next: u64, counts: &mut Counts) -> Option<Batch> {
    if next > ring.handed_out {
        return None;
    }
    let oldest = ring.handed_out.saturating_sub(ring.capacity) + 1;
    let gap = oldest.saturating_sub(next);
    counts.overwritten += gap;
    let last = ring.handed_out.min(next + gap + BATCH_MAX - 1);
    Some(Batch { ring: ring.id, first: next, last, gap })
}
