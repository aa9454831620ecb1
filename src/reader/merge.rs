//! Several rings as one stream, by time.

use super::cursor::{Cursor, Gap, Next, PayloadRead};
use crate::clock::Clock;
use crate::layout::Descriptor;
use std::time::Duration;

/// How long after its time stamp an event may become visible, ordinarily: the time from stamp to commit, with a preemption.
pub const DEFAULT_SLACK: Duration = Duration::from_millis(2);

/// Merges the events of several cursors in the order of their time stamps.
///
/// An event is handed out when no other ring can still bring an earlier one: when each ring has shown its next event, or has
/// ended, or the event is older than the slack and the other rings were silent meanwhile. An event that its writer commits
/// later than the slack comes late, never lost. Within one ring the order of seqnos is kept where time stamps are equal;
/// where a ring's stamps run against its seqnos (threads racing by nanoseconds), the seqno order of the ring wins.
pub struct Merger {
    inputs: Vec<Input>,
    slack_nanos: u64,
}

struct Input {
    cursor: Cursor,
    head: Option<Head>,
    /// The payload handed out last; its memory is used again.
    spare: Vec<u8>,
}

/// The next event of a ring, payload copied when it was met, lest it expire while it waits.
struct Head {
    descriptor: Descriptor,
    payload: Vec<u8>,
    state: HeadPayload,
}

#[derive(Clone, Copy)]
enum HeadPayload {
    Valid,
    Expired,
    Malformed,
}

/// What [`Merger::next`] gives.
#[derive(Debug)]
pub enum MergedItem<'m> {
    /// The next event of all; `input` is the index of its cursor.
    Event {
        /// Index of the cursor, in the order they were given.
        input: usize,
        /// The event.
        descriptor: Descriptor,
        /// Its payload, copied when the event was met.
        payload: PayloadRead<'m>,
    },
    /// A ring has lost events.
    Gap {
        /// Index of the cursor.
        input: usize,
        /// What is missing.
        gap: Gap,
    },
    /// Nothing can be handed out yet.
    NotReady,
}

impl Merger {
    /// Merges `cursors` from where they stand.
    pub fn new(cursors: impl IntoIterator<Item = Cursor>) -> Self {
        let inputs = cursors.into_iter().map(Input::new).collect();
        Self { inputs, slack_nanos: DEFAULT_SLACK.as_nanos() as u64 }
    }

    /// Sets the slack; see [`Merger`]. Default: 2 ms.
    #[must_use]
    pub fn slack(mut self, slack: Duration) -> Self {
        self.slack_nanos = u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Adds a ring (a new shard); gives its index.
    pub fn add(&mut self, cursor: Cursor) -> usize {
        self.inputs.push(Input::new(cursor));
        self.inputs.len() - 1
    }

    /// The cursors, in the order of their indices.
    pub fn cursors(&self) -> impl Iterator<Item = &Cursor> {
        self.inputs.iter().map(|input| &input.cursor)
    }

    /// Whether everything has been handed out and all rings have ended.
    pub fn has_ended(&self) -> bool {
        self.inputs.iter().all(|input| input.head.is_none() && input.has_ended())
    }

    /// The next item. Never waits.
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows from the merger, and there is always a next look"
    )]
    pub fn next(&mut self) -> MergedItem<'_> {
        // Before the looks below: a ring found silent then cannot bring an event stamped earlier than this less the slack.
        let now = Clock::global().now_epoch_nanos();
        let mut all_shown = true;
        for (input, state) in self.inputs.iter_mut().enumerate() {
            if state.head.is_some() {
                continue;
            }
            match state.cursor.next() {
                Next::Event(descriptor) => state.head = Some(state.fetch(descriptor)),
                Next::Gap(gap) => return MergedItem::Gap { input, gap },
                Next::NotReady => all_shown &= state.has_ended(),
            }
        }
        let oldest = self.inputs.iter().enumerate().filter_map(|(index, input)| Some((index, input.head.as_ref()?)));
        let oldest = oldest.min_by_key(|(_, head)| head.descriptor.record_epoch_nanos);
        let Some((input, head)) = oldest else { return MergedItem::NotReady };
        let stamp = head.descriptor.record_epoch_nanos;
        // A stamp from the future is damage or another machine's clock: nothing to wait for.
        let is_settled = stamp.saturating_add(self.slack_nanos) <= now || stamp > now.saturating_add(self.slack_nanos);
        if !all_shown && !is_settled {
            return MergedItem::NotReady;
        }
        self.take(input)
    }

    fn take(&mut self, input: usize) -> MergedItem<'_> {
        let state = &mut self.inputs[input];
        let Some(head) = state.head.take() else { return MergedItem::NotReady };
        let (descriptor, payload_state) = (head.descriptor, head.state);
        state.spare = head.payload;
        let payload = match payload_state {
            HeadPayload::Valid => PayloadRead::Valid(&state.spare),
            HeadPayload::Expired => PayloadRead::Expired,
            HeadPayload::Malformed => PayloadRead::Malformed,
        };
        MergedItem::Event { input, descriptor, payload }
    }
}

impl Input {
    fn new(cursor: Cursor) -> Self {
        Self { cursor, head: None, spare: Vec::new() }
    }

    fn fetch(&mut self, descriptor: Descriptor) -> Head {
        let mut payload = std::mem::take(&mut self.spare);
        let state = match self.cursor.payload(&descriptor, &mut payload) {
            PayloadRead::Valid(_) => HeadPayload::Valid,
            PayloadRead::Expired => HeadPayload::Expired,
            PayloadRead::Malformed => HeadPayload::Malformed,
        };
        Head { descriptor, payload, state }
    }

    fn has_ended(&self) -> bool {
        self.cursor.lag() == 0 && self.cursor.is_finished()
    }
}

impl std::fmt::Debug for Merger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merger").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}
