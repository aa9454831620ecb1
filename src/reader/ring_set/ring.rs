//! One ring of a set: its cursor, and the event that it gives next.

use super::super::cursor::{Cursor, Next, Seek};
use super::super::gap::{Gap, ReadStats};
use super::super::handle::Reader;
use super::super::payload::PayloadRead;
use crate::layout::Descriptor;
use std::time::{Duration, Instant};

/// Longest wait of the merge for an event whose number is handed out and which is not committed. The time is enough for
/// a few turns of other threads on the writer's processor.
const COMMIT_PATIENCE: Duration = Duration::from_millis(20);

/// A ring of a [`RingSet`](super::RingSet).
#[derive(Debug)]
pub struct SetRing {
    /// Index of shard 0 in the set, if this is another shard.
    recorder: Option<usize>,
    shard: u32,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Read(Box<Input>),
    /// A shard that could not be opened, and how many numbers it had handed out, if that is known.
    Missed(Option<u64>),
}

/// A ring that is read.
pub(super) struct Input {
    reader: Reader,
    cursor: Cursor,
    /// The next event of a merged ring.
    pub(super) head: Option<Descriptor>,
    /// The payload of `head`, or, while there is no head, of the event that was handed out last. The memory is reused.
    payload: Vec<u8>,
    /// The state of `payload`, without its bytes. `None` if it was not copied yet.
    payload_state: Option<PayloadRead<'static>>,
    /// A time at which the ring had no next event. So the ring brings no event that was stamped before this time less
    /// the slack.
    pub(super) silent_until_nanos: u64,
    /// The seqno of an event that was not committed yet at a close look, and the time of the first such look.
    uncommitted: Option<(u64, Instant)>,
}

/// The result of a look at a ring.
pub(super) enum Looked {
    /// There is a next event, which is the head now.
    Event,
    Gap(Gap),
}

/// The events that a ring without a next event can still bring.
pub(super) enum RingSilence {
    /// An event that is just being recorded.
    Uncommitted,
    /// Nothing stamped before now less the slack.
    Sure,
}

impl SetRing {
    pub(super) fn read(reader: Reader, recorder: Option<usize>, shard: u32, start: Seek) -> Self {
        let mut cursor = reader.cursor();
        cursor.seek(start);
        let content = Content::Read(Box::new(Input {
            reader,
            cursor,
            head: None,
            payload: Vec::new(),
            payload_state: None,
            silent_until_nanos: 0,
            uncommitted: None,
        }));
        Self { recorder, shard, content }
    }

    pub(super) fn missed(recorder: usize, shard: u32, seqnos: Option<u64>) -> Self {
        Self { recorder: Some(recorder), shard, content: Content::Missed(seqnos) }
    }

    /// Returns the opened ring; `None` for a shard that could not be opened.
    #[must_use]
    pub fn reader(&self) -> Option<&Reader> {
        self.input().map(|input| &input.reader)
    }

    /// Returns the ring's cursor. In a set of several rings, it may stand after an event that was not handed
    /// out yet.
    #[must_use]
    pub fn cursor(&self) -> Option<&Cursor> {
        self.input().map(|input| &input.cursor)
    }

    /// Returns the index of the recorder's shard 0 in the set, if this is another shard.
    #[must_use]
    pub fn recorder(&self) -> Option<usize> {
        self.recorder
    }

    /// Returns the index of the shard in its recorder; 0 for shard 0 and for rings that are not sharded.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// Returns how many sequence numbers a shard that could not be opened had handed out, if its writer has left that
    /// number; `None` for rings that were opened.
    #[must_use]
    pub fn missed_seqnos(&self) -> Option<u64> {
        match self.content {
            Content::Missed(seqnos) => seqnos,
            Content::Read(_) => None,
        }
    }

    /// Returns the counts of the ring's sequence numbers up to here: read, overwritten before, lost, given up. If
    /// nobody knows how many events a shard that could not be opened held, it counts as one lost event.
    #[must_use]
    pub fn stats(&self) -> ReadStats {
        match &self.content {
            Content::Read(input) => {
                let stats = input.cursor.stats();
                ReadStats { read: stats.read.saturating_sub(input.head.is_some().into()), ..stats }
            }
            Content::Missed(seqnos) => ReadStats { lost: Gap::of_missed_shard(*seqnos).count, ..ReadStats::default() },
        }
    }

    fn input(&self) -> Option<&Input> {
        match &self.content {
            Content::Read(input) => Some(input),
            Content::Missed(_) => None,
        }
    }

    #[inline]
    pub(super) fn input_mut(&mut self) -> Option<&mut Input> {
        match &mut self.content {
            Content::Read(input) => Some(input),
            Content::Missed(_) => None,
        }
    }

    /// Returns the stamp of the next event, if it was seen.
    #[inline]
    pub(super) fn head_stamp(&self) -> Option<u64> {
        Some(self.input()?.head.as_ref()?.record_epoch_nanos)
    }

    /// Returns the next event or gap without merging; its payload is copied when it is asked for.
    #[inline]
    pub(super) fn next_unmerged(&mut self) -> Option<Next> {
        let input = self.input_mut()?;
        input.payload_state = None;
        match input.head.take() {
            // The head was fetched while the set had other rings.
            Some(head) => Some(Next::Event(head)),
            None => Some(input.cursor.next()),
        }
    }

    /// Returns the payload of `event`, which was handed out last.
    #[inline]
    pub(super) fn payload(&mut self, event: &Descriptor) -> PayloadRead<'_> {
        // If there is a head, its payload has replaced the payload of `event`.
        let Some(input) = self.input_mut().filter(|input| input.head.is_none()) else { return PayloadRead::Expired };
        match input.payload_state {
            None => input.cursor.payload(event, &mut input.payload),
            Some(PayloadRead::Valid(_)) => PayloadRead::Valid(&input.payload),
            Some(state) => state,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.input().is_none_or(|input| input.head.is_none() && input.has_ended())
    }

    pub(super) fn look_closely(&mut self) {
        if let Some(input) = self.input_mut() {
            input.cursor.look_closely();
        }
    }

    pub(super) fn seek(&mut self, to: Seek) {
        let Some(input) = self.input_mut() else { return };
        if input.head.take().is_some() {
            input.cursor.step_back();
        }
        input.silent_until_nanos = 0;
        input.cursor.seek(to);
    }

    /// Replaces the index of shard 0 by its new index.
    pub(super) fn move_recorder(&mut self, new_indices: &[Option<usize>]) {
        self.recorder = self.recorder.and_then(|recorder| new_indices.get(recorder).copied().flatten());
    }
}

impl Input {
    /// Looks for the next event, which becomes the head. Its payload is copied now, so that it cannot expire while the
    /// event waits for its turn.
    #[inline]
    pub(super) fn look(&mut self) -> Option<Looked> {
        match self.cursor.next() {
            Next::Event(descriptor) => {
                let payload = self.cursor.payload(&descriptor, &mut self.payload);
                self.payload_state = Some(match payload {
                    PayloadRead::Valid(_) => PayloadRead::Valid(&[]),
                    PayloadRead::Expired => PayloadRead::Expired,
                    PayloadRead::Malformed => PayloadRead::Malformed,
                });
                self.head = Some(descriptor);
                Some(Looked::Event)
            }
            Next::Gap(gap) => Some(Looked::Gap(gap)),
            Next::NotReady => None,
        }
    }

    /// Looks like [`Self::look`], and asks the header. If there is no next event, returns the kind of [`Silence`].
    pub(super) fn look_closely(&mut self) -> Result<Looked, RingSilence> {
        self.cursor.look_closely();
        if let Some(looked) = self.look() {
            return Ok(looked);
        }
        if !self.cursor.awaits_commit() {
            return Err(RingSilence::Sure);
        }
        let seqno = self.cursor.next_seqno();
        let since = match self.uncommitted {
            Some((known, since)) if known == seqno => since,
            _ => Instant::now(),
        };
        self.uncommitted = Some((seqno, since));
        // A writer that stalls for longer must not hold up the events of other rings.
        Err(if since.elapsed() < COMMIT_PATIENCE { RingSilence::Uncommitted } else { RingSilence::Sure })
    }

    /// Takes the next event to hand it out.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Descriptor> {
        // The ring's next event may be older than this event, because within a ring the order of seqnos comes before
        // the order of times.
        self.silent_until_nanos = 0;
        self.head.take()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.cursor.is_known_to_be_finished()
    }
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("reader", &self.reader).field("cursor", &self.cursor).finish_non_exhaustive()
    }
}
