//! The blocks of a ring, a file or an archive.
//!
//! | file | idea |
//! |---|---|
//! | `news` | news about blocks, and the event with which reading begins |
//! | `find` | finding the event with which reading begins |
//! | `fill` | blocks that a ring has lost, from an archive |
//! | `archived` | a block of an archive |

mod archived;
mod fill;
mod find;
mod news;

use crate::builder::{BlockBuilder, ChainEvent};
use crate::commit::CommitTracker;
use crate::dialect::UnknownSchema;
use crate::history::BlockArchive;
use crate::problem::Problem;
use crate::source::{ExecEvents, NextEvent};
use crate::values::Block;
use crate::wanted::Wanted;
use eventring::reader::{Reader, Seek};
use eventring_capture::CaptureFile;
use fill::{Fill, Hole};
pub use news::{BlockUpdate, NextUpdate, Start};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time between two looks into the archive for blocks that the ring has lost.
const ARCHIVE_PAUSE: Duration = Duration::from_millis(20);

/// The blocks of a ring of execution events, as they are executed and committed, or those of a capture or an archive.
///
/// As an iterator it waits for the next news, and ends when the ring does.
#[derive(Debug)]
pub struct Blocks {
    events: ExecEvents,
    wanted: Wanted,
    follows_restarts: bool,
    builder: BlockBuilder,
    tracker: CommitTracker,
    updates: VecDeque<BlockUpdate>,
    fill: Option<Fill>,
    /// The last event that is read; `u64::MAX` if there is no such limit.
    until_seqno: u64,
    refused: Option<UnknownSchema>,
    /// When the node's ring had ended, while its next one is awaited.
    ended_since: Option<Instant>,
    has_ended: bool,
}

impl Blocks {
    /// Reads a ring, or a snapshot, from its oldest event on.
    ///
    /// # Errors
    /// The ring has no execution events, or its schema is not known.
    pub fn of_ring(reader: &Reader, wanted: Wanted) -> Result<Self, UnknownSchema> {
        Ok(Self::of_events(ExecEvents::of_ring(reader)?, wanted))
    }

    /// Reads a capture. If it has several rings of execution events, they are read one after the other.
    ///
    /// # Errors
    /// The capture has no ring of execution events, or the schema of one is not known.
    pub fn of_capture(file: &CaptureFile, wanted: Wanted) -> Result<Self, UnknownSchema> {
        Ok(Self::of_events(ExecEvents::of_capture(file)?, wanted))
    }

    /// Reads events from anywhere. The blocks of an archive are final.
    #[must_use]
    pub fn of_events(events: ExecEvents, wanted: Wanted) -> Self {
        Self {
            builder: BlockBuilder::new(events.dialect().clone(), wanted),
            events,
            wanted,
            follows_restarts: false,
            tracker: CommitTracker::new(),
            updates: VecDeque::new(),
            fill: None,
            until_seqno: u64::MAX,
            refused: None,
            ended_since: None,
            has_ended: false,
        }
    }

    /// Goes on with the next ring of the same name when the node is started again. Blocks that it executes once more
    /// are [`BlockUpdate::Reexecuted`].
    #[must_use]
    pub fn follow_restarts(self) -> Self {
        Self { follows_restarts: true, ..self }
    }

    /// Ends after the event with this seqno, for example the last one that a live ring has now.
    #[must_use]
    pub fn until(self, seqno: u64) -> Self {
        Self { until_seqno: seqno, ..self }
    }

    /// Returns why the node's next ring is not read, if that is why no more blocks come: its events are others, or
    /// their schema is not known.
    #[must_use]
    pub fn refused(&self) -> Option<&UnknownSchema> {
        self.refused.as_ref()
    }

    /// Returns since when the node's ring is known to have ended, if its next one is awaited and has not come.
    #[must_use]
    pub fn ended_since(&self) -> Option<Instant> {
        self.ended_since
    }

    /// Takes blocks that the ring does not have from an archive: those before its oldest one ([`Self::seek`]), and
    /// those of which events were lost. A loss is told at once ([`Problem::Gap`]). Then the archive is waited for, at
    /// most `timeout` for each block, while later blocks are kept back; so all come once, in their order. What the
    /// archive does not get in time is [`Problem::Unfilled`].
    #[must_use]
    pub fn with_archive(self, archive: BlockArchive, timeout: Duration) -> Self {
        Self { fill: Some(Fill::new(archive, timeout)), ..self }
    }

    /// Begins somewhere else in the ring. Returns false if neither the ring nor its archive has the place; it then
    /// begins where it did before. A file is always read from its beginning, and an archive can begin at a number.
    pub fn seek(&mut self, start: Start) -> bool {
        let from_number = match start {
            Start::Number(number) => Some(number),
            Start::AfterFinalized(number) => Some(number.saturating_add(1)),
            _ => None,
        };
        let Some(follower) = self.events.follower() else {
            return start == Start::Oldest || from_number.is_some_and(|number| self.events.begin_at(number));
        };
        let to = match start {
            Start::Oldest => Some(Seek::Oldest),
            Start::Newest => Some(Seek::Newest),
            wanted => find::find(follower.cursor(), self.builder.dialect(), wanted).map(Seek::Seqno),
        };
        let is_archived = to.is_none()
            && from_number.is_some_and(|number| self.fill.as_ref().is_some_and(|fill| fill.may_begin_at(number)));
        if to.is_some() || is_archived {
            follower.cursor_mut().seek(to.unwrap_or(Seek::Oldest));
            self.builder.next_ring();
            if let (Some(fill), Some(number)) = (&mut self.fill, from_number) {
                fill.begin_at(number, is_archived);
            }
        }
        to.is_some() || is_archived
    }

    /// Returns what was found wrong with the files so far, also with those of the archive beside a ring, a line each.
    #[must_use]
    pub fn file_problems(&self) -> Vec<String> {
        let of_archive = self.fill.as_ref().map(Fill::problems).unwrap_or_default();
        self.events.problems().iter().chain(of_archive).cloned().collect()
    }

    /// Returns true if blocks that the ring has lost are awaited from the archive: news come later even if all events
    /// of the ring were read.
    #[must_use]
    pub fn waits_for_archive(&self) -> bool {
        self.fill.as_ref().is_some_and(Fill::has_hole)
    }

    /// Returns what is known of the commit states.
    #[must_use]
    pub fn commits(&self) -> &CommitTracker {
        &self.tracker
    }

    /// Returns the next news. Waits for it at most `timeout`.
    pub fn next_timeout(&mut self, timeout: Duration) -> NextUpdate {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(update) = self.updates.pop_front() {
                return NextUpdate::Update(update);
            }
            self.fill_hole();
            if !self.updates.is_empty() {
                continue;
            }
            let waits_for_archive = self.waits_for_archive();
            if self.has_ended && !waits_for_archive {
                return NextUpdate::Ended;
            }
            let until = if waits_for_archive { deadline.min(Instant::now() + ARCHIVE_PAUSE) } else { deadline };
            if self.has_ended {
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
            } else if self.read(until) {
                self.track();
                continue;
            }
            if Instant::now() >= deadline {
                return NextUpdate::TimedOut;
            }
        }
    }

    /// Reads one event or gap. Returns false if none came.
    fn read(&mut self, deadline: Instant) -> bool {
        let (builder, until_seqno) = (&mut self.builder, self.until_seqno);
        match self.events.next_until(deadline) {
            NextEvent::Event(event, _) if event.seqno > until_seqno => {
                builder.end();
                self.has_ended = true;
            }
            NextEvent::Event(event, payload) => {
                builder.push(&event, || payload.read());
                if event.seqno == until_seqno {
                    builder.end();
                    self.has_ended = true;
                }
            }
            NextEvent::Gap(gap) => builder.push_gap(gap),
            NextEvent::NewRing => builder.next_ring_of(self.events.dialect().clone()),
            NextEvent::TimedOut => return false,
            NextEvent::Ended => return self.next_ring(deadline),
        }
        true
    }

    /// Goes on with the ring that the node has made when it was started again, or ends. Returns false if there is none
    /// yet.
    fn next_ring(&mut self, deadline: Instant) -> bool {
        let follows = self.follows_restarts;
        match if follows { self.events.reopen() } else { None } {
            Some(Ok(())) => {
                self.ended_since = None;
                self.builder.next_ring_of(self.events.dialect().clone());
                return true;
            }
            Some(Err(refused)) => self.refused = Some(refused),
            None => {}
        }
        self.builder.end();
        self.track();
        if !follows || self.refused.is_some() || self.events.follower().is_none() {
            self.has_ended = true;
            return true;
        }
        self.ended_since.get_or_insert_with(Instant::now);
        // There is nothing to be woken by: the ring that is awaited does not exist.
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(100)));
        !self.updates.is_empty() || Instant::now() < deadline
    }

    /// Passes what the builder has found on.
    fn track(&mut self) {
        while let Some(found) = self.builder.pop() {
            self.take(found);
        }
    }

    /// Passes on what was found, unless blocks before it are awaited from the archive.
    fn take(&mut self, found: ChainEvent) {
        let found = match &mut self.fill {
            Some(fill) => fill.take(found, &mut self.updates),
            None => Some(found),
        };
        if let Some(found) = found {
            self.tell(found);
        }
    }

    /// Passes what was found on to the tracker.
    fn tell(&mut self, found: ChainEvent) {
        let is_final = self.events.is_archive();
        let updates = match found {
            // The earlier execution may have been cut off, by the end of the node or by a loss.
            ChainEvent::Block(block)
                if block.is_reexecution
                    && self.tracker.block(block.tag()).is_some_and(|earlier| earlier.is_complete) =>
            {
                return self.updates.push_back(BlockUpdate::Reexecuted(block));
            }
            // The archive had it before the ring was read.
            ChainEvent::Block(block)
                if self.fill.is_some() && self.tracker.block(block.tag()).is_some_and(|known| known.is_complete) =>
            {
                return;
            }
            ChainEvent::Block(block) => {
                let tag = block.tag();
                let mut updates = self.tracker.propose(block);
                if is_final {
                    updates.extend(self.tracker.finalize(tag));
                }
                updates
            }
            ChainEvent::Problem(problem) => return self.updates.push_back(BlockUpdate::Problem(problem)),
            found => self.tracker.take(found),
        };
        self.updates.extend(updates.into_iter().map(BlockUpdate::Changed));
    }

    /// Takes the next block from the archive, if one is awaited from there.
    fn fill_hole(&mut self) {
        let Some(fill) = &mut self.fill else { return };
        let Some(hole) = fill.next(self.wanted) else { return };
        match hole {
            Hole::Waits => {}
            Hole::Block { block, partial } => {
                if let Some(partial) = partial {
                    self.tell(ChainEvent::Block(partial));
                }
                let tag = block.tag();
                self.settle(block.number());
                let is_known = self.tracker.block(tag).is_some_and(|known| known.is_complete);
                if !is_known {
                    self.tell(ChainEvent::Block(block));
                }
                self.tell(ChainEvent::Finalized(tag));
            }
            Hole::Skips { unfilled, partial, before } => self.tell_unfilled(Some(unfilled), partial, before),
            Hole::Ends { unfilled, partial, before } => {
                self.tell_unfilled(unfilled, partial, before);
                let held = self.fill.as_mut().map(Fill::take_held).unwrap_or_default();
                held.into_iter().for_each(|found| self.take(found));
            }
        }
    }

    /// Tells what the archive does not have, and what the ring has of it.
    fn tell_unfilled(&mut self, unfilled: Option<Problem>, partial: Option<Arc<Block>>, before: u64) {
        self.settle(before);
        let partial = partial.map(ChainEvent::Block);
        unfilled.map(ChainEvent::Problem).into_iter().chain(partial).for_each(|found| self.tell(found));
    }

    /// Tells that blocks below this number are final, if the archive says so: the news of consensus may be among what
    /// was lost.
    fn settle(&mut self, before: u64) {
        let Some(fill) = &mut self.fill else { return };
        for tag in fill.finals_before(before) {
            self.tell(ChainEvent::Finalized(tag));
        }
    }
}

impl Iterator for Blocks {
    type Item = BlockUpdate;

    fn next(&mut self) -> Option<BlockUpdate> {
        loop {
            match self.next_timeout(Duration::from_secs(3600)) {
                NextUpdate::Update(update) => return Some(update),
                NextUpdate::TimedOut => {}
                NextUpdate::Ended => return None,
            }
        }
    }
}
