//! Reading blocks that a ring has lost from an archive.

use super::news::BlockUpdate;
use crate::builder::ChainEvent;
use crate::history::BlockArchive;
use crate::problem::Problem;
use crate::values::Block;
use crate::wanted::Wanted;
use eventring::schema::exec::BlockTag;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest number of things that are kept back while the archive is waited for.
const HELD_MAX: usize = 1024;
/// The largest number of damaged files that are named.
const PROBLEMS_MAX: usize = 256;
/// The largest number of earlier blocks of which the archive is asked whether they are final.
const SETTLED_MAX: u64 = 1024;

/// The archive beside a ring, and what is awaited from it.
#[derive(Debug)]
pub(super) struct Fill {
    archive: BlockArchive,
    timeout: Duration,
    /// The highest number of a block that was passed on.
    last_number: Option<u64>,
    /// The highest number that is known to be final.
    last_final: Option<u64>,
    gap: Option<Gap>,
    held: VecDeque<ChainEvent>,
    /// The messages about damaged files of the archive, each once.
    problems: Vec<String>,
}

/// Blocks of which the ring has lost events.
#[derive(Debug)]
struct Gap {
    /// The number of the first one that has not come.
    next: u64,
    /// The number of the first block after the loss, once it has come.
    end: Option<u64>,
    /// True if reading begins here: then the archive is read as far as it goes.
    is_start: bool,
    /// What the ring has of a block.
    partial: Option<Arc<Block>>,
    since: Instant,
}

/// What comes of the blocks that are awaited.
pub(super) enum Hole {
    /// The archive does not have the next one yet.
    Waits,
    /// The next block. `partial` is another one of its number, of which the ring has a part.
    Block { block: Arc<Block>, partial: Option<Arc<Block>> },
    /// The archive does not have some, and has a later one. `partial` is what the ring has of the first one.
    Skips { unfilled: Problem, partial: Option<Arc<Block>>, before: u64 },
    /// Nothing more is awaited, and what was kept back can go on.
    Ends { unfilled: Option<Problem>, partial: Option<Arc<Block>>, before: u64 },
}

impl Fill {
    pub(super) fn new(archive: BlockArchive, timeout: Duration) -> Self {
        let (gap, held, problems) = (None, VecDeque::new(), Vec::new());
        Self { archive, timeout, last_number: None, last_final: None, gap, held, problems }
    }

    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(super) fn has_hole(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns true if the archive has this block, or the one before it, after which the ring may go on.
    pub(super) fn may_begin_at(&self, number: u64) -> bool {
        self.archive.has(number) || self.archive.has(number.saturating_sub(1))
    }

    /// Begins with this number; in the archive, if the ring does not have it.
    pub(super) fn begin_at(&mut self, number: u64, is_archived: bool) {
        self.last_number = number.checked_sub(1);
        self.last_final = self.last_number;
        self.held.clear();
        self.gap = is_archived.then(|| Gap::new(number, true, None));
    }

    /// Takes what was found. Returns it if nothing before it is awaited.
    pub(super) fn take(&mut self, found: ChainEvent, updates: &mut VecDeque<BlockUpdate>) -> Option<ChainEvent> {
        if let Some(gap) = &mut self.gap {
            if let ChainEvent::Block(block) = &found {
                gap.end.get_or_insert(block.number());
            }
            self.held.push_back(found);
            return None;
        }
        let (next, partial, problem) = match &found {
            ChainEvent::Problem(problem) if problem.is_loss() => match self.last_number {
                Some(last) => (last.saturating_add(1), None, *problem),
                // No block has come, so it is not known which ones are missing.
                None => return Some(found),
            },
            ChainEvent::Block(block) if !block.is_complete => {
                match block.problems.iter().find(|problem| problem.is_loss()) {
                    Some(problem) => (block.number(), Some(block.clone()), *problem),
                    None => return self.passed(found),
                }
            }
            _ => return self.passed(found),
        };
        updates.push_back(BlockUpdate::Problem(problem));
        self.gap = Some(Gap::new(next, false, partial));
        None
    }

    fn passed(&mut self, found: ChainEvent) -> Option<ChainEvent> {
        match &found {
            ChainEvent::Block(block) => self.last_number = self.last_number.max(Some(block.number())),
            ChainEvent::Finalized(tag) => self.last_final = self.last_final.max(Some(tag.block_number)),
            _ => {}
        }
        Some(found)
    }

    /// Returns what comes of the next block that is awaited; `None` if none is, or if more events must come before it
    /// is known what is.
    pub(super) fn next(&mut self, wanted: Wanted) -> Option<Hole> {
        let gap = self.gap.as_mut()?;
        let is_certain = gap.partial.is_some() || gap.end.is_some_and(|end| gap.next < end);
        if !is_certain && (gap.end.is_some() || (!gap.is_start && gap.since.elapsed() > self.timeout)) {
            return Some(self.end(None));
        }
        if !is_certain && !gap.is_start {
            return None;
        }
        match self.archive.block(gap.next, wanted) {
            Ok(Some(block)) if block.is_complete => {
                let partial = gap.partial.take().filter(|partial| partial.tag() != block.tag());
                gap.next = gap.next.saturating_add(1);
                gap.since = Instant::now();
                self.last_number = self.last_number.max(Some(block.number()));
                return Some(Hole::Block { block, partial });
            }
            Ok(_) => {}
            // A file that is damaged is as good as none.
            Err(error) => {
                let problem = error.to_string();
                if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
        if !is_certain {
            return Some(Hole::Waits);
        }
        if gap.since.elapsed() <= self.timeout && self.held.len() < HELD_MAX {
            return Some(Hole::Waits);
        }
        let (first_number, end) = (gap.next, gap.end.unwrap_or_default());
        if let Some(next) = self.archive.next_number(first_number.saturating_add(1), end) {
            (gap.next, gap.since) = (next, Instant::now());
            self.last_number = self.last_number.max(Some(next - 1));
            let unfilled = Problem::Unfilled { first_number, last_number: next - 1 };
            return Some(Hole::Skips { unfilled, partial: gap.partial.take(), before: first_number });
        }
        let last_number = end.saturating_sub(1).max(first_number);
        Some(self.end(Some(Problem::Unfilled { first_number, last_number })))
    }

    fn end(&mut self, unfilled: Option<Problem>) -> Hole {
        let gap = self.gap.take();
        let before = gap.as_ref().map_or(0, |gap| gap.end.unwrap_or(gap.next));
        let partial = gap.and_then(|gap| gap.partial);
        // Neither is taken for a loss once more.
        let told = match unfilled {
            Some(Problem::Unfilled { last_number, .. }) => Some(last_number),
            _ => partial.as_ref().map(|partial| partial.number()),
        };
        self.last_number = self.last_number.max(told);
        Hole::Ends { unfilled, partial, before }
    }

    pub(super) fn take_held(&mut self) -> VecDeque<ChainEvent> {
        std::mem::take(&mut self.held)
    }

    /// Returns the blocks below this number that the archive says are final, and of which consensus has not said so.
    pub(super) fn finals_before(&mut self, number: u64) -> Vec<BlockTag> {
        let Some(first) = self.last_final.map(|last| last.saturating_add(1)) else { return Vec::new() };
        let first = first.max(number.saturating_sub(SETTLED_MAX));
        let mut tags = Vec::new();
        for number in first..number {
            let Ok(Some(block)) = self.archive.block(number, Wanted::HEADERS) else { continue };
            tags.push(block.tag());
            self.last_final = Some(number);
        }
        tags
    }
}

impl Gap {
    fn new(next: u64, is_start: bool, partial: Option<Arc<Block>>) -> Self {
        Self { next, end: None, is_start, partial, since: Instant::now() }
    }
}
