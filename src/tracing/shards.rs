//! The shards of a recorder. A recorder begins with one shard, and makes another shard when a new thread would have to
//! share.

use crate::layout::extension::{SHARD_COUNT, SHARD_LAST_SEQNOS};
use crate::reader::shard_path;
use crate::recorder::{Recorder, RecorderBuilder, RecorderError, Shard};
use crate::schema::perf::tables::SHARD_FAILURES_OFFSET;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The shards of a recorder. See the [module](self).
pub(super) struct Shards {
    rings: Box<[OnceLock<Recorder>]>,
    assignments: Mutex<Assignments>,
    /// The settings of further shards.
    template: RecorderBuilder,
    /// The values in the header of shard 0 that describe the shards. Each further shard gets the same values with its
    /// own index.
    shard0: Shard,
}

/// The assignments of threads to shards.
struct Assignments {
    /// Number of threads of each shard that exists.
    threads: Vec<u32>,
    /// True while a thread makes the next shard. Other threads then share shards for the time being.
    is_growing: bool,
    /// Number of shards that could not be made. After the first failure the recorder does not try to make more shards.
    failures: u64,
    last_error: Option<RecorderError>,
    /// The choice whether the files stay, if the program has made this choice after shard 0 was made.
    keep: Option<bool>,
}

/// The shard that a thread records to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assignment {
    pub(super) shard: usize,
    /// True if the thread shares the shard only because another thread was making a new shard. With its next event the
    /// thread asks for a shard again.
    pub(super) is_provisional: bool,
}

/// The way in which a thread gets its shard.
enum ShardPlan {
    /// Use of a shard that exists.
    Use(Assignment),
    /// Creation of the shard with this index.
    Create(usize),
}

impl Shards {
    /// Creates the shards with `shard0` as the first shard. `shard` has the limit of their number.
    pub(super) fn new(shard0: Recorder, template: RecorderBuilder, shard: Shard) -> Self {
        let rings: Box<[OnceLock<Recorder>]> = (0..shard.limit.max(1)).map(|_| OnceLock::new()).collect();
        // `rings` has at least one cell, and its first cell is empty, so `set` does not fail.
        let _ = rings[0].set(shard0);
        let assignments =
            Assignments { threads: vec![0], is_growing: false, failures: 0, last_error: None, keep: None };
        Self { rings, assignments: Mutex::new(assignments), template, shard0: shard }
    }

    /// Returns the shard with this index, if it exists.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&Recorder> {
        self.rings.get(index)?.get()
    }

    /// Returns all shards that exist, by index.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Recorder> {
        self.rings.iter().map_while(OnceLock::get)
    }

    /// Assigns a shard to a new thread: a shard without threads, otherwise a new shard, otherwise the shard with the
    /// fewest threads. Only the thread that makes a new shard waits until it is made, which takes milliseconds. Other
    /// threads share a shard meanwhile.
    pub(super) fn assign(&self) -> Assignment {
        let plan = self.assignments().plan(self.rings.len());
        self.carry_out(plan)
    }

    /// Assigns a shard like [`Self::assign`] to a thread that gives up its `provisional` assignment.
    pub(super) fn reassign(&self, provisional: Assignment) -> Assignment {
        let mut assignments = self.assignments();
        if assignments.is_growing {
            return provisional;
        }
        assignments.release(provisional.shard);
        let plan = assignments.plan(self.rings.len());
        drop(assignments);
        self.carry_out(plan)
    }

    fn carry_out(&self, plan: ShardPlan) -> Assignment {
        let index = match plan {
            ShardPlan::Use(assignment) => return assignment,
            ShardPlan::Create(index) => index,
        };
        let created = self.create(index);
        let mut assignments = self.assignments();
        assignments.is_growing = false;
        match created {
            Ok(()) => {
                // If the program called `keep` while the ring was being made, the ring was not yet in the list of
                // shards. So the choice is passed on here. Later calls of `keep` find the ring in the list.
                if let (Some(keep), Some(ring)) = (assignments.keep, self.get(index)) {
                    ring.keep(keep);
                }
                assignments.threads.push(1);
                Assignment { shard: index, is_provisional: false }
            }
            Err(error) => {
                assignments.failures += 1;
                assignments.last_error = Some(error);
                if let Some(shard0) = self.get(0) {
                    shard0.publish_context_word(SHARD_FAILURES_OFFSET, assignments.failures);
                }
                Assignment { shard: assignments.share(), is_provisional: false }
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
        // This cell is empty, so `set` does not fail: only one thread at a time makes a shard, and each shard gets the
        // next index.
        let _ = self.rings[index].set(ring);
        // The count is published after the shard is complete, because readers open the shard when they see the count.
        //
        // The count is published before the shard's first event gets its time. A thread records to the shard only after
        // the thread that made the shard has taken the lock of the assignments, and that lock also makes the count
        // visible. So if a reader reads the clock and then sees no new count, a new shard has no event from before that
        // time.
        shard0.core.publish_header_word(SHARD_COUNT, index as u64 + 1);
        Ok(())
    }

    /// Publishes in shard 0 the last seqno of every other shard. A reader that has opened shard 0, but comes too late
    /// to open another shard, then knows how many events it has missed. Call this before the files are removed.
    pub(super) fn publish_last_seqnos(&self) {
        let Some(shard0) = self.get(0) else { return };
        for (index, shard) in self.iter().enumerate().skip(1) {
            let last_seqno = shard.stats().last_seqno;
            shard0.core.publish_header_word(SHARD_LAST_SEQNOS + index * 8, last_seqno.saturating_add(1));
        }
    }

    /// Sets whether the files of all shards stay at the end.
    pub(super) fn keep(&self, keep: bool) {
        self.assignments().keep = Some(keep);
        self.iter().for_each(|shard| shard.keep(keep));
    }

    /// Releases the assignment of a thread that ends.
    pub(super) fn release(&self, index: usize) {
        self.assignments().release(index);
    }

    /// Returns the number of shards that could not be made, and the reason of the last failure.
    pub(super) fn failures(&self) -> (u64, Option<String>) {
        let assignments = self.assignments();
        (assignments.failures, assignments.last_error.as_ref().map(ToString::to_string))
    }

    fn assignments(&self) -> MutexGuard<'_, Assignments> {
        // A poisoned lock can be used: no code panics while it holds the lock, and even after a panic the numbers would
        // be usable.
        self.assignments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Assignments {
    fn plan(&mut self, limit: usize) -> ShardPlan {
        let is_free = self.threads.contains(&0);
        if is_free || self.failures > 0 || self.threads.len() >= limit {
            return ShardPlan::Use(Assignment { shard: self.share(), is_provisional: false });
        }
        if self.is_growing {
            return ShardPlan::Use(Assignment { shard: self.share(), is_provisional: true });
        }
        self.is_growing = true;
        ShardPlan::Create(self.threads.len())
    }

    fn release(&mut self, index: usize) {
        if let Some(threads) = self.threads.get_mut(index) {
            *threads = threads.saturating_sub(1);
        }
    }

    /// Counts a thread in the shard with the fewest threads, and returns that shard's index.
    fn share(&mut self) -> usize {
        let fewest = self.threads.iter_mut().enumerate().min_by_key(|(_, threads)| **threads);
        let Some((index, threads)) = fewest else { return 0 };
        *threads += 1;
        index
    }
}
