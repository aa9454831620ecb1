//! The shards of a recorder. A recorder begins with one shard. Up to a limit, it makes another shard when a new thread
//! would otherwise have to share one.

use crate::layout::extension::{SHARD_COUNT, SHARD_LAST_SEQNOS};
use crate::reader::shard_path;
use crate::recorder::{Recorder, RecorderBuilder, RecorderError, Shard};
use crate::schema::perf::tables::SHARD_FAILURES_OFFSET;
use crate::sync::locked_section::LockedSection;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The shards of a recorder. See the [module](self).
pub(in crate::tracing::record) struct Shards {
    rings: Box<[OnceLock<Recorder>]>,
    assignments: Mutex<Assignments>,
    /// The settings of further shards.
    template: RecorderBuilder,
    /// The description of the shards in the header of shard 0: the recorder's group number and the limit. Each
    /// further shard gets the same values, with its own index.
    shard0: Shard,
}

/// The assignments of threads to shards.
struct Assignments {
    /// Number of threads of each shard that exists.
    threads: Vec<u32>,
    /// True while a thread makes the next shard. Until the next shard is made, other new threads share the existing
    /// shards.
    is_growing: bool,
    /// Number of shards that could not be made. After the first failure, the recorder makes no more shards.
    failures: u64,
    last_error: Option<RecorderError>,
    /// The last argument of [`Shards::keep`], for shards that are made later. `None` if it was not called: then the
    /// builder's setting applies.
    keep: Option<bool>,
}

/// The shard that a thread records to.
#[derive(Clone, Copy, Debug)]
pub(in crate::tracing::record) struct Assignment {
    pub(in crate::tracing::record) shard: usize,
    /// True if the thread shares this shard only because another thread was making a new one at that time. Then the
    /// thread asks again for a shard of its own with each of its next events, until the new shard is made.
    pub(in crate::tracing::record) is_provisional: bool,
}

/// The way in which a thread gets its shard.
enum ShardPlan {
    /// Use of a shard that exists.
    Use(Assignment),
    /// Creation of the shard with this index.
    Create(usize),
}

impl Shards {
    /// Creates the shards of a recorder, with `shard0` as the first. `shard.limit` is the largest number of shards.
    pub(in crate::tracing::record) fn new(shard0: Recorder, template: RecorderBuilder, shard: Shard) -> Self {
        let rings: Box<[OnceLock<Recorder>]> = (0..shard.limit.max(1)).map(|_| OnceLock::new()).collect();
        // `set` cannot fail: `rings` has at least one cell, and its first cell is empty.
        let _ = rings[0].set(shard0);
        let assignments =
            Assignments { threads: vec![0], is_growing: false, failures: 0, last_error: None, keep: None };
        Self { rings, assignments: Mutex::new(assignments), template, shard0: shard }
    }

    /// Makes all shards that do not exist yet. Call this before any thread gets a shard.
    pub(in crate::tracing::record) fn make_all(&self) -> Result<(), RecorderError> {
        for index in 1..self.rings.len() {
            self.create(index)?;
            self.assignments().threads.push(0);
        }
        Ok(())
    }

    /// Returns the shard with this index, if it exists.
    #[inline(always)]
    pub(in crate::tracing::record) fn get(&self, index: usize) -> Option<&Recorder> {
        self.rings.get(index)?.get()
    }

    /// Returns all shards that exist, by index.
    pub(in crate::tracing::record) fn iter(&self) -> impl Iterator<Item = &Recorder> {
        self.rings.iter().map_while(OnceLock::get)
    }

    /// Assigns a shard to a new thread. If a shard has no threads, the thread gets this shard. If every shard has a
    /// thread, a new shard is made. If no more shards can be made, the thread shares the shard with the fewest
    /// threads. Making a shard takes milliseconds. Only the thread that makes it waits: other threads that arrive
    /// meanwhile share a shard.
    pub(in crate::tracing::record) fn assign(&self) -> Assignment {
        let plan = self.assignments().plan(self.rings.len());
        self.carry_out(plan)
    }

    /// Replaces a thread's `provisional` assignment, like [`Self::assign`]. While a new shard is still being made,
    /// returns `provisional` unchanged.
    pub(in crate::tracing::record) fn reassign(&self, provisional: Assignment) -> Assignment {
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
                // The program may have called `keep` while this ring was being made. That call did not reach the ring,
                // because the ring was not in the list of shards yet. So its argument is passed to the ring here. Later
                // calls of `keep` reach the ring themselves.
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
        // `set` cannot fail: the cell at `index` is empty. Only one thread at a time makes a shard, and each shard
        // gets the next index.
        let _ = self.rings[index].set(ring);
        // The count is published here, after the shard is complete, because a reader opens the shard when it sees the
        // new count.
        //
        // The count is also published before any event of the shard gets its time: this thread publishes the count, and
        // then takes and releases the lock of `assignments`. A thread records to the shard only after this release. A
        // reader first reads the clock and then the count. If the count does not include the shard yet, all events of
        // the shard are later than the clock time that the reader has read.
        shard0.core.publish_header_word(SHARD_COUNT, index as u64 + 1);
        Ok(())
    }

    /// Stores the last seqno of every other shard in the header of shard 0. Call this before the files are removed. A
    /// reader may have opened shard 0, but be too late to open another shard. From the stored seqno it learns how many
    /// events of that shard it has missed.
    pub(in crate::tracing::record) fn publish_last_seqnos(&self) {
        let Some(shard0) = self.get(0) else { return };
        for (index, shard) in self.iter().enumerate().skip(1) {
            let last_seqno = shard.stats().last_seqno;
            shard0.core.publish_header_word(SHARD_LAST_SEQNOS + index * 8, last_seqno.saturating_add(1));
        }
    }

    /// Sets whether the files of all shards stay at the end.
    pub(in crate::tracing::record) fn keep(&self, keep: bool) {
        let _section = LockedSection::enter();
        self.assignments().keep = Some(keep);
        self.iter().for_each(|shard| shard.keep(keep));
    }

    /// Releases the assignment of a thread that ends.
    pub(in crate::tracing::record) fn release(&self, index: usize) {
        let _section = LockedSection::enter();
        self.assignments().release(index);
    }

    /// Returns how many shards could not be made, and the reason of the last failure.
    pub(in crate::tracing::record) fn failures(&self) -> (u64, Option<String>) {
        let _section = LockedSection::enter();
        let assignments = self.assignments();
        (assignments.failures, assignments.last_error.as_ref().map(ToString::to_string))
    }

    /// Locks the assignments. The thread must be inside a locked section.
    fn assignments(&self) -> MutexGuard<'_, Assignments> {
        // A poisoned lock may be used. No code panics while it holds this lock, and the numbers are valid at any time.
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

    /// Adds a thread to the shard with the fewest threads. Returns the index of this shard.
    fn share(&mut self) -> usize {
        let fewest = self.threads.iter_mut().enumerate().min_by_key(|(_, threads)| **threads);
        let Some((index, threads)) = fewest else { return 0 };
        *threads += 1;
        index
    }
}
