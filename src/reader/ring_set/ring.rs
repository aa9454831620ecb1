//! One ring of a ring set: its cursor, and its next event.

use super::super::gap::{Gap, ReadStats};
use super::super::handle::Reader;
use crate::layout::Descriptor;
use crate::reader::cursors::cursor::{Cursor, Next, Seek};
use crate::reader::cursors::payload::PayloadRead;
use std::time::{Duration, Instant};

/// The longest time for which the merge waits for an event that is being recorded. If its writer was preempted, the
/// operating system usually gives the processor back to the writer within this time.
const COMMIT_TIMEOUT: Duration = Duration::from_millis(20);

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
    /// A shard that could not be opened. The value is how many seqnos the shard had handed out, or `None` if this is
    /// unknown.
    Missed(Option<u64>),
}

/// A ring that is read.
pub(super) struct Input {
    reader: Reader,
    cursor: Cursor,
    /// The ring's next event, after it was read and before it is handed out. Only a set of several rings uses this
    /// field.
    pub(super) head: Option<Descriptor>,
    /// The payload of `head`. While there is no head, the payload of the event that was handed out last. The memory is
    /// reused.
    payload: Vec<u8>,
    /// The result of the last copy to `payload`, without the bytes themselves. `None` if nothing was copied yet.
    payload_state: Option<PayloadRead<'static>>,
    /// The last time at which the reader found no next event in this ring. No event that the ring still brings has a
    /// stamp before this time less the slack.
    pub(super) silent_until_nanos: u64,
    /// An event that [`Self::probe`] found uncommitted.
    uncommitted: Option<Uncommitted>,
}

/// An event that a writer has not committed yet.
#[derive(Clone, Copy)]
struct Uncommitted {
    seqno: u64,
    /// The time at which this was found first.
    since: Instant,
}

/// An item that [`Input::look`] found.
pub(super) enum Looked {
    /// There is a next event, which is the head now.
    Event,
    Gap(Gap),
}

/// The answer for a ring without a next event: which events the ring can still bring.
pub(super) enum RingSilence {
    /// An event that is just being recorded.
    Uncommitted,
    /// Only events that are younger than the slack. If an older event is still being recorded after
    /// [`COMMIT_TIMEOUT`], [`Input::probe`] gives this answer, too, and the older event may come late.
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

    /// Returns the reader of the ring, or `None` for a shard that could not be opened.
    #[must_use]
    pub fn reader(&self) -> Option<&Reader> {
        self.input().map(|input| &input.reader)
    }

    /// Returns the ring's cursor, or `None` for a shard that could not be opened. In a set of several rings, the
    /// cursor may already have passed an event that the set has not handed out yet.
    #[must_use]
    pub fn cursor(&self) -> Option<&Cursor> {
        self.input().map(|input| &input.cursor)
    }

    /// Returns the index of shard 0 of this ring's recorder, in the set. Returns `None` if this ring is itself shard
    /// 0, or if it is not sharded.
    #[must_use]
    pub fn recorder(&self) -> Option<usize> {
        self.recorder
    }

    /// Returns the index of this shard in its recorder. Returns 0 for shard 0 and for rings that are not sharded.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// Returns how many sequence numbers this shard has handed out, if the shard could not be opened. Returns `None` if
    /// the ring was opened, and also if the writer has not left the number in shard 0.
    #[must_use]
    pub fn missed_seqnos(&self) -> Option<u64> {
        match self.content {
            Content::Missed(seqnos) => seqnos,
            Content::Read(_) => None,
        }
    }

    /// Returns how many of the ring's sequence numbers were read, overwritten before reading began, lost, and skipped
    /// so far. A shard that could not be opened counts as one lost event if nobody knows how many events it held.
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

    /// Returns the next event or gap, for a set of one ring. Does not copy the event's payload; [`Self::payload`]
    /// copies it.
    #[inline]
    pub(super) fn next_unmerged(&mut self) -> Option<Next> {
        let input = self.input_mut()?;
        input.payload_state = None;
        match input.head.take() {
            // The set had several rings before. This event was read at that time, and is the ring's next event.
            Some(head) => Some(Next::Event(head)),
            None => Some(input.cursor.next()),
        }
    }

    /// Returns the payload of `event`, which was handed out last.
    #[inline]
    pub(super) fn payload(&mut self, event: &Descriptor) -> PayloadRead<'_> {
        // If there is a head, the head's payload has already replaced the payload of `event`.
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

    pub(super) fn probe(&mut self) {
        if let Some(input) = self.input_mut() {
            input.cursor.probe();
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
    /// Reads the next event or gap, if there is one. If it is an event, makes it the head and copies its payload at
    /// once. So the payload cannot expire while the event is held back.
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

    /// Does the same as [`Self::look`] if there is a next event. If there is none, loads the ring's header, and
    /// returns which events the ring can still bring.
    pub(super) fn probe(&mut self) -> Result<Looked, RingSilence> {
        self.cursor.probe();
        if let Some(looked) = self.look() {
            return Ok(looked);
        }
        if !self.cursor.awaits_commit() {
            return Err(RingSilence::Sure);
        }
        let seqno = self.cursor.next_seqno();
        let since = match self.uncommitted {
            Some(known) if known.seqno == seqno => known.since,
            _ => Instant::now(),
        };
        self.uncommitted = Some(Uncommitted { seqno, since });
        // The merge waits for the uncommitted event for [`COMMIT_TIMEOUT`]. After that the ring counts as silent,
        // because a writer that stalls must not delay the events of other rings any longer.
        Err(if since.elapsed() < COMMIT_TIMEOUT { RingSilence::Uncommitted } else { RingSilence::Sure })
    }

    /// Takes the next event to hand it out.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Descriptor> {
        // The event after the head may have an earlier stamp than the head. So the ring does not count as silent until
        // it has been read again.
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
