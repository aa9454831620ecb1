//! Several rings as one stream, by time. `docs/ORDERING.md`, section 15, argues the order.

use super::cursor::{Cursor, Gap, Next, PayloadRead};
use crate::clock::Clock;
use crate::layout::Descriptor;
use std::time::{Duration, Instant};

/// How long after its time stamp an event may become visible, ordinarily: the time from stamp to commit, with a preemption.
pub const DEFAULT_SLACK: Duration = Duration::from_millis(2);
/// How long an event is waited for whose number is handed out and which is not committed: some turns of other threads on its
/// writer's processor.
const COMMIT_PATIENCE: Duration = Duration::from_millis(20);
/// By how much the clocks of reader and writer differ, at most, while nobody sets the time.
const CLOCK_ERROR_NANOS: u64 = 20_000;

/// Merges the events of several cursors in the order of their time stamps.
///
/// An event is handed out when no other ring can still bring an earlier one: when each ring has shown its next event, or has
/// ended, or the event is older than the slack and the other rings were silent meanwhile. A ring in which an event is just being
/// recorded is not silent: it is waited for, up to 20 ms. An event that its writer commits even later comes late, and with it those
/// behind it in its ring; none is lost. Within one ring the order of seqnos is kept where time stamps are equal; where a ring's
/// stamps run against its seqnos (threads racing by nanoseconds), the seqno order of the ring wins.
pub struct Merger {
    inputs: Vec<Input>,
    slack_nanos: u64,
}

struct Input {
    cursor: Cursor,
    head: Option<Head>,
    /// The payload handed out last; its memory is used again.
    spare: Vec<u8>,
    /// It was asked and had nothing at this time: it brings nothing stamped before this less the slack.
    silent_until_nanos: u64,
    /// An event that was found not committed yet, and when that was first so.
    uncommitted: Option<(u64, Instant)>,
}

/// What a look has found.
enum Looked {
    /// The next event, which is the head now.
    Event,
    Gap(Gap),
}

/// What a ring without a next event can still bring.
enum Silence {
    /// An event that is just being recorded.
    Uncommitted,
    /// Nothing stamped before now less the slack.
    Sure,
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
        // Before the looks: a ring found silent then cannot bring an event stamped earlier than this less the slack.
        let now = Clock::global().now_epoch_nanos();
        self.next_until(now, u64::MAX)
    }

    /// As [`Self::next`], where rings may be added later: `now_epoch_nanos` is the time of [`Clock::global`], taken before the caller
    /// looked for rings and added them. Nothing stamped later is given, lest a ring that is found next time bring something earlier.
    pub fn next_at(&mut self, now_epoch_nanos: u64) -> MergedItem<'_> {
        self.next_until(now_epoch_nanos, now_epoch_nanos.saturating_sub(CLOCK_ERROR_NANOS))
    }

    fn next_until(&mut self, now: u64, latest: u64) -> MergedItem<'_> {
        // When the oldest event that is known is due: what was silent until then need not be looked at again.
        let due = self.oldest().map(|(_, stamp)| stamp.saturating_add(self.slack_nanos));
        let mut all_shown = true;
        for (input, state) in self.inputs.iter_mut().enumerate() {
            if state.head.is_some() || due.is_some_and(|due| due <= state.silent_until_nanos) {
                continue;
            }
            match state.look() {
                Some(Looked::Gap(gap)) => return MergedItem::Gap { input, gap },
                Some(Looked::Event) => {}
                None if state.has_ended() => state.silent_until_nanos = u64::MAX,
                None => all_shown = false,
            }
        }
        let Some((oldest, stamp)) = self.oldest() else { return MergedItem::NotReady };
        let due = stamp.saturating_add(self.slack_nanos);
        // A stamp from the future is damage or another machine's clock: nothing to wait for. The future begins after this moment: `now`
        // may be long ago if the thread was preempted.
        let is_later = |now: u64| stamp > now.saturating_add(self.slack_nanos);
        let is_foreign = is_later(now) && is_later(Clock::global().now_epoch_nanos());
        if due > now && !is_foreign && (!all_shown || stamp > latest) {
            return MergedItem::NotReady;
        }
        if all_shown {
            return self.take(oldest);
        }
        // The looks above did not ask the headers, whose lines are the writers' busiest; before a ring is taken for silent it is
        // asked, for a number that was given up may hide what was recorded behind it.
        let mut all_silent = true;
        for (input, state) in self.inputs.iter_mut().enumerate() {
            if state.head.is_some() || due <= state.silent_until_nanos {
                continue;
            }
            match state.look_closely() {
                Ok(Looked::Gap(gap)) => return MergedItem::Gap { input, gap },
                Ok(Looked::Event) => {}
                Err(Silence::Sure) => state.silent_until_nanos = now,
                Err(Silence::Uncommitted) => all_silent = false,
            }
        }
        // Perhaps another one by now, an older one.
        match self.oldest() {
            Some((input, _)) if all_silent => self.take(input),
            _ => MergedItem::NotReady,
        }
    }

    /// The oldest of the heads: whose, and its stamp.
    fn oldest(&self) -> Option<(usize, u64)> {
        let stamps = self.inputs.iter().enumerate();
        let stamps =
            stamps.filter_map(|(input, state)| Some((input, state.head.as_ref()?.descriptor.record_epoch_nanos)));
        stamps.min_by_key(|(_, stamp)| *stamp)
    }

    fn take(&mut self, input: usize) -> MergedItem<'_> {
        let state = &mut self.inputs[input];
        let Some(head) = state.head.take() else { return MergedItem::NotReady };
        // What comes behind it may be older than that: within a ring the order of seqnos goes first.
        state.silent_until_nanos = 0;
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
        Self { cursor, head: None, spare: Vec::new(), silent_until_nanos: 0, uncommitted: None }
    }

    /// Looks for the next event, which becomes the head.
    fn look(&mut self) -> Option<Looked> {
        match self.cursor.next() {
            Next::Event(descriptor) => {
                self.head = Some(self.fetch(descriptor));
                Some(Looked::Event)
            }
            Next::Gap(gap) => Some(Looked::Gap(gap)),
            Next::NotReady => None,
        }
    }

    /// As [`Self::look`], asking the header; if there is nothing, what that means.
    fn look_closely(&mut self) -> Result<Looked, Silence> {
        self.cursor.look_closely();
        if let Some(looked) = self.look() {
            return Ok(looked);
        }
        if !self.cursor.awaits_commit() {
            return Err(Silence::Sure);
        }
        let seqno = self.cursor.next_seqno();
        let since = match self.uncommitted {
            Some((known, since)) if known == seqno => since,
            _ => Instant::now(),
        };
        self.uncommitted = Some((seqno, since));
        // A writer that stalls for longer must not hold up the others' events.
        Err(if since.elapsed() < COMMIT_PATIENCE { Silence::Uncommitted } else { Silence::Sure })
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
        self.cursor.is_known_to_be_finished()
    }
}

impl std::fmt::Debug for Merger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merger").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}
