//! The rings of a recorder: one from the start, more when threads come that would have to share.

use crate::layout::extension::{SHARD_COUNT, SHARD_LAST_SEQNOS};
use crate::reader::shard_path;
use crate::recorder::{Recorder, RecorderBuilder, RecorderError, Shard};
use crate::schema::perf::tables::SHARD_FAILURES_OFFSET;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// See the [module](self).
pub(super) struct Shards {
    rings: Box<[OnceLock<Recorder>]>,
    seats: Mutex<Seats>,
    /// How further shards are made.
    template: RecorderBuilder,
    /// What the header of shard 0 says of it.
    shard0: Shard,
}

struct Seats {
    /// Threads of each shard that exists.
    threads: Vec<u32>,
    /// A thread is making the next shard.
    is_growing: bool,
    /// One could not be made: no more are tried.
    failures: u64,
    last_error: Option<RecorderError>,
    /// Whether the files stay, if that was said after shard 0 was made.
    keep: Option<bool>,
}

/// Where a thread records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub(super) shard: usize,
    /// It shares because another thread was just making a shard: with its next event it asks again.
    pub(super) is_provisional: bool,
}

/// What a new thread is to do.
enum Plan {
    Share(Seat),
    Create(usize),
}

impl Shards {
    /// Shard 0, which is `shard` and says how many there can be.
    pub(super) fn new(shard0: Recorder, template: RecorderBuilder, shard: Shard) -> Self {
        let rings: Box<[OnceLock<Recorder>]> = (0..shard.limit.max(1)).map(|_| OnceLock::new()).collect();
        // The first of at least one, and empty.
        let _ = rings[0].set(shard0);
        let seats = Seats { threads: vec![0], is_growing: false, failures: 0, last_error: None, keep: None };
        Self { rings, seats: Mutex::new(seats), template, shard0: shard }
    }

    /// The shard with that index, if it exists.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&Recorder> {
        self.rings.get(index)?.get()
    }

    /// All that exist, by index.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Recorder> {
        self.rings.iter().map_while(OnceLock::get)
    }

    /// A shard for a new thread: one without a thread, a new one, or the one with the fewest threads. Making a ring takes
    /// milliseconds; only the thread that makes it waits for that.
    pub(super) fn join(&self) -> Seat {
        let plan = self.seats().plan(self.rings.len());
        self.follow(plan)
    }

    /// As [`Self::join`], for a thread that has a provisional seat, which it gives up.
    pub(super) fn join_again(&self, provisional: Seat) -> Seat {
        let mut seats = self.seats();
        if seats.is_growing {
            return provisional;
        }
        seats.leave(provisional.shard);
        let plan = seats.plan(self.rings.len());
        drop(seats);
        self.follow(plan)
    }

    fn follow(&self, plan: Plan) -> Seat {
        let index = match plan {
            Plan::Share(seat) => return seat,
            Plan::Create(index) => index,
        };
        let created = self.create(index);
        let mut seats = self.seats();
        seats.is_growing = false;
        match created {
            Ok(()) => {
                // Who says something else from here on finds the ring.
                if let (Some(keep), Some(ring)) = (seats.keep, self.get(index)) {
                    ring.keep(keep);
                }
                seats.threads.push(1);
                Seat { shard: index, is_provisional: false }
            }
            Err(error) => {
                seats.failures += 1;
                seats.last_error = Some(error);
                if let Some(shard0) = self.get(0) {
                    shard0.publish_context_word(SHARD_FAILURES_OFFSET, seats.failures);
                }
                Seat { shard: seats.share(), is_provisional: false }
            }
        }
    }

    fn create(&self, index: usize) -> Result<(), RecorderError> {
        let Some(shard0) = self.get(0) else { return Ok(()) };
        let template = self.template.clone().shard(Shard { index: index as u64, ..self.shard0 });
        let template = match shard0.path() {
            Some(path) => template.at(shard_path(path, index as u64)),
            None => template.anonymous(),
        };
        let ring = template.build()?;
        // Only one thread at a time comes here, each with the next index.
        let _ = self.rings[index].set(ring);
        // After the shard is whole: readers open it when they see the number. And before its first event gets its time: nobody
        // records in it before its maker has gone on to the lock of the seats, which is also what makes the number visible then. So
        // who has read the time and then sees no new number misses no event from before that time.
        shard0.core.publish_header_word(SHARD_COUNT, index as u64 + 1);
        Ok(())
    }

    /// Says in shard 0 how much each of the others holds: who comes too late to open one then knows what he has missed. To be
    /// called before the files are removed.
    pub(super) fn publish_last_seqnos(&self) {
        let Some(shard0) = self.get(0) else { return };
        for (index, shard) in self.iter().enumerate().skip(1) {
            let last_seqno = shard.stats().last_seqno;
            shard0.core.publish_header_word(SHARD_LAST_SEQNOS + index * 8, last_seqno.saturating_add(1));
        }
    }

    /// Whether the files stay at the end, of all shards.
    pub(super) fn keep(&self, keep: bool) {
        self.seats().keep = Some(keep);
        self.iter().for_each(|shard| shard.keep(keep));
    }

    /// A thread that had joined ends.
    pub(super) fn leave(&self, index: usize) {
        self.seats().leave(index);
    }

    /// How many shards could not be made, and why the last one could not.
    pub(super) fn failures(&self) -> (u64, Option<String>) {
        let seats = self.seats();
        (seats.failures, seats.last_error.as_ref().map(ToString::to_string))
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        // Nothing in here panics while it holds the lock; if it did, the numbers would still be usable.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    fn plan(&mut self, limit: usize) -> Plan {
        let is_free = self.threads.contains(&0);
        if is_free || self.failures > 0 || self.threads.len() >= limit {
            return Plan::Share(Seat { shard: self.share(), is_provisional: false });
        }
        if self.is_growing {
            return Plan::Share(Seat { shard: self.share(), is_provisional: true });
        }
        self.is_growing = true;
        Plan::Create(self.threads.len())
    }

    fn leave(&mut self, index: usize) {
        if let Some(threads) = self.threads.get_mut(index) {
            *threads = threads.saturating_sub(1);
        }
    }

    /// Takes a seat in the shard with the fewest threads.
    fn share(&mut self) -> usize {
        let fewest = self.threads.iter_mut().enumerate().min_by_key(|(_, threads)| **threads);
        let Some((index, threads)) = fewest else { return 0 };
        *threads += 1;
        index
    }
}
