//! The blocks of a ring or a file.

use crate::{Block, BlockBuilder, CommitTracker, Dialect, Found, Problem, UnknownSchema, Update, Wanted};
use eventring::reader::{Cursor, Followed, Follower, Gap, Next, PayloadRead, Reader, Seek, WaitStrategy};
use eventring::schema::exec::{Bytes32, ExecEvent};
use eventring_capture::{CaptureEvents, CaptureFile, CapturedContent, CapturedPayload};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// News about blocks.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum BlockUpdate {
    /// A block was executed, or consensus has decided about one.
    Changed(Update),
    /// A block was executed that had been executed before, and of which everything is known: the node was started again.
    Reexecuted(Arc<Block>),
    /// Something is wrong outside of any block.
    Problem(Problem),
}

/// Where to begin in a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Start {
    /// The oldest event in the ring.
    Oldest,
    /// The block that is executed next.
    Newest,
    /// The last execution of a block with this number.
    Number(u64),
    /// The last execution of the block with this id.
    Id(Bytes32),
    /// After the block with this number, which the caller knows to be final: at the first news of consensus after its
    /// BLOCK_START.
    AfterFinalized(u64),
}

/// The result of [`Blocks::next_timeout`].
#[derive(Clone, PartialEq, Debug)]
pub enum NextUpdate {
    /// News.
    Update(BlockUpdate),
    /// Nothing came within the timeout.
    TimedOut,
    /// The ring has ended, or the file: no more news will come.
    Ended,
}

/// The blocks of a ring of execution events, as they are executed and committed, or those of a capture.
///
/// As an iterator it waits for the next news, and ends when the ring does.
#[derive(Debug)]
pub struct Blocks {
    source: Source,
    wanted: Wanted,
    follows_restarts: bool,
    builder: BlockBuilder,
    tracker: CommitTracker,
    updates: VecDeque<BlockUpdate>,
    buffer: Vec<u8>,
    has_ended: bool,
}

#[derive(Debug)]
enum Source {
    Ring(Box<Follower>),
    Capture { events: Box<CaptureEvents>, ring: u32 },
}

impl Blocks {
    /// Reads a ring, or a snapshot, from its oldest event on.
    ///
    /// # Errors
    /// The ring has no execution events, or its schema is not known.
    pub fn of_ring(reader: &Reader, wanted: Wanted) -> Result<Self, UnknownSchema> {
        let builder = BlockBuilder::for_ring(reader, wanted)?;
        let mut cursor = reader.cursor();
        cursor.seek(Seek::Oldest);
        let follower = Follower::new(cursor, WaitStrategy::default());
        Ok(Self::new(Source::Ring(Box::new(follower)), wanted, builder))
    }

    /// Reads a capture. If it has several rings of execution events, the first one is read.
    ///
    /// # Errors
    /// The capture has no ring of execution events, or the schema of the first one is not known.
    pub fn of_capture(file: &CaptureFile, wanted: Wanted) -> Result<Self, UnknownSchema> {
        let (ring, found) = (0..)
            .zip(file.rings())
            .find(|(_, ring)| ring.is_exec())
            .or_else(|| (0..).zip(file.rings()).next())
            .map_or((0, None), |(at, ring)| (at, Some(ring)));
        let (content_type, hash) = found.map_or((0, [0; 32]), |ring| (ring.content_type, ring.schema_hash));
        let builder = BlockBuilder::new(Dialect::of(content_type, hash)?, wanted);
        Ok(Self::new(Source::Capture { events: Box::new(file.events()), ring }, wanted, builder))
    }

    fn new(source: Source, wanted: Wanted, builder: BlockBuilder) -> Self {
        Self {
            source,
            wanted,
            follows_restarts: false,
            builder,
            tracker: CommitTracker::new(),
            updates: VecDeque::new(),
            buffer: Vec::new(),
            has_ended: false,
        }
    }

    /// Goes on with the next ring of the same name when the node is started again. Blocks that it executes once more are
    /// [`BlockUpdate::Reexecuted`].
    #[must_use]
    pub fn follow_restarts(self) -> Self {
        Self { follows_restarts: true, ..self }
    }

    /// Begins somewhere else in the ring. Returns false if the ring does not have the place; it then begins where it did
    /// before. A capture is always read from its beginning.
    pub fn seek(&mut self, start: Start) -> bool {
        let Source::Ring(follower) = &mut self.source else { return start == Start::Oldest };
        let to = match start {
            Start::Oldest => Some(Seek::Oldest),
            Start::Newest => Some(Seek::Newest),
            wanted => find(follower.cursor(), self.builder.dialect(), wanted).map(Seek::Seqno),
        };
        if let Some(to) = to {
            follower.cursor_mut().seek(to);
            self.builder.next_ring();
        }
        to.is_some()
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
            if self.has_ended {
                return NextUpdate::Ended;
            }
            if !self.read(deadline) {
                return NextUpdate::TimedOut;
            }
            self.track();
        }
    }

    /// Reads one event or gap. Returns false if none came.
    fn read(&mut self, deadline: Instant) -> bool {
        let (builder, buffer) = (&mut self.builder, &mut self.buffer);
        match &mut self.source {
            Source::Ring(follower) => match follower.next_timeout(deadline.saturating_duration_since(Instant::now())) {
                Followed::Event(event) => builder.push(&event, || follower.cursor().payload(&event, buffer)),
                Followed::Gap(gap) => builder.push_gap(gap),
                Followed::TimedOut => return false,
                Followed::Ended => return self.next_ring(deadline),
            },
            Source::Capture { events, ring } => match events.next() {
                Some(record) if record.ring != *ring => {}
                Some(record) => match record.content {
                    CapturedContent::Event { descriptor, payload } => builder.push(&descriptor, || match &payload {
                        CapturedPayload::Valid(bytes) => PayloadRead::Valid(bytes),
                        CapturedPayload::Malformed => PayloadRead::Malformed,
                        _ => PayloadRead::Expired,
                    }),
                    CapturedContent::Gap { first_seqno, count, cause } => {
                        builder.push_gap(Gap { first_seqno, count, cause });
                    }
                },
                None => {
                    builder.end();
                    self.has_ended = true;
                }
            },
        }
        true
    }

    /// Goes on with the ring that the node has made when it was started again, or ends. Returns false if there is none
    /// yet.
    fn next_ring(&mut self, deadline: Instant) -> bool {
        let Source::Ring(follower) = &mut self.source else { return true };
        let next = if self.follows_restarts { follower.cursor().reader().reopen().ok().flatten() } else { None };
        if let Some(reader) = next
            && let Ok(builder) = BlockBuilder::for_ring(&reader, self.wanted)
        {
            let mut cursor = reader.cursor();
            cursor.seek(Seek::Oldest);
            **follower = Follower::new(cursor, WaitStrategy::default());
            self.builder.next_ring_of(builder.dialect());
            return true;
        }
        self.builder.end();
        self.track();
        if !self.follows_restarts {
            self.has_ended = true;
            return true;
        }
        // There is nothing to be woken by: the ring that is awaited does not exist.
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(100)));
        !self.updates.is_empty() || Instant::now() < deadline
    }

    /// Passes what the builder has found on to the tracker.
    fn track(&mut self) {
        while let Some(found) = self.builder.pop() {
            let updates = match found {
                // The earlier execution may have been cut off, by the end of the node or by a loss.
                Found::Block(block)
                    if block.is_reexecution
                        && self.tracker.block(block.tag()).is_some_and(|earlier| earlier.is_complete) =>
                {
                    self.updates.push_back(BlockUpdate::Reexecuted(block));
                    continue;
                }
                Found::Block(block) => self.tracker.propose(block),
                Found::Voted(qc) => self.tracker.vote(qc.block_tag),
                Found::Finalized(tag) => self.tracker.finalize(tag),
                Found::Verified(number) => self.tracker.verify(number),
                Found::Problem(problem) => {
                    self.updates.push_back(BlockUpdate::Problem(problem));
                    continue;
                }
            };
            self.updates.extend(updates.into_iter().map(BlockUpdate::Changed));
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

/// Returns the seqno of the place, if the ring has it. Reads what the ring has, but few payloads.
fn find(cursor: &Cursor, dialect: Dialect, wanted: Start) -> Option<u64> {
    let mut cursor = cursor.clone();
    cursor.seek(Seek::Oldest);
    let end = cursor.next_seqno().saturating_add(cursor.lag());
    let (mut buffer, mut scratch) = (Vec::new(), Vec::new());
    let (mut found, mut is_after) = (None, false);
    while cursor.next_seqno() < end {
        let Next::Event(event) = cursor.next() else {
            if cursor.lag() == 0 {
                break;
            }
            cursor.pass_unready(end - 1);
            continue;
        };
        let kind = dialect.meaning(event.event_type);
        let is_consensus =
            matches!(kind, Some(ExecEvent::BlockQc | ExecEvent::BlockFinalized | ExecEvent::BlockVerified));
        if is_after && is_consensus {
            (found, is_after) = (Some(event.seqno), false);
        }
        if kind != Some(ExecEvent::BlockStart) {
            continue;
        }
        let PayloadRead::Valid(bytes) = cursor.payload(&event, &mut buffer) else { continue };
        let Ok(start) = dialect.block_start(bytes, &mut scratch) else { continue };
        match wanted {
            Start::Number(number) if start.block_tag.block_number == number => found = Some(event.seqno),
            Start::Id(id) if start.block_tag.id == id => found = Some(event.seqno),
            Start::AfterFinalized(number) => is_after |= start.block_tag.block_number == number,
            _ => {}
        }
    }
    found
}
