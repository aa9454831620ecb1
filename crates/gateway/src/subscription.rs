//! The messages of a subscription, made one by one as the client accepts them.

use crate::notification::{Gap, Notification, StateChange};
use crate::params::{Kind, Params, Place};
use crate::render::{self, Header, Number};
use eventring_exec::{Block, CommitState, Log, Txn};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// A subscription of a client: a place in the history, and nothing that grows.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u64,
    params: Params,
    /// The place from which on the client was told everything.
    since: u64,
    /// The place of the news that is told next.
    pub(crate) next: u64,
    /// The transaction and the log of it that are told next.
    at: (usize, usize),
    /// A place, and the index of the last log that the client has seen of the block there.
    seen: Option<(u64, u64)>,
}

/// One message of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'n> {
    Gap(&'n Gap),
    Header(&'n Block, Option<CommitState>),
    Log { block: &'n Block, txn: &'n Txn, log: &'n Log, state: Option<CommitState>, is_removed: bool },
}

impl Message<'_> {
    /// Returns about how many bytes it has.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Gap(_) | Self::Header(..) => 0,
            Self::Log { log, .. } => log.data.len().saturating_mul(2),
        }
    }
}

/// What a subscription is told of missing events.
#[derive(Serialize)]
pub(crate) struct Missing<T> {
    gap: T,
}

/// What a subscription is told if it cannot go on where it wants to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotRemembered {
    reason: &'static str,
    resume_from: Number,
    /// The number of the first block that is remembered.
    oldest: Option<Number>,
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Gap(gap) => Missing { gap }.serialize(serializer),
            Self::Header(block, state) => Header::new(block, state).serialize(serializer),
            Self::Log { block, txn, log, state, is_removed } => {
                render::Log::new(block, txn, log, state, is_removed).serialize(serializer)
            }
        }
    }
}

impl Subscription {
    /// Makes a subscription that tells what is told from this place on.
    pub(crate) fn new(id: u64, params: Params, next: u64) -> Self {
        Self { id, params, since: next, next, at: (0, 0), seen: None }
    }

    pub(crate) fn wanted_len(&self) -> usize {
        self.params.wanted_len()
    }

    /// Goes on after the last thing that the client has seen, if it has said so. If that is not remembered, begins with
    /// the first thing that is, and returns what to say about it.
    pub(crate) fn resume(
        &mut self,
        first: u64,
        history: &[Arc<Notification>],
    ) -> Result<Option<Missing<NotRemembered>>, String> {
        let Some(place) = self.params.resume_from.take() else { return Ok(None) };
        // What the client has seen before that is not known, so whatever was told is taken back.
        self.since = 0;
        let of_block: Vec<(u64, &StateChange)> = (first..)
            .zip(history)
            .filter_map(|(at, news)| match &**news {
                Notification::State(told) if place.is_of(told) => Some((at, told)),
                _ => None,
            })
            .collect();
        let is_seen = |told: &StateChange| match place.state {
            Some(state) => told.update.state == state,
            None => told.update.state != CommitState::Abandoned,
        };
        let seen = of_block.iter().find(|(_, told)| is_seen(told) && self.tells(told));
        if let Some((at, told)) = seen {
            let Some(index) = place.index else {
                self.next = at + 1;
                return Ok(None);
            };
            let logs = told.update.block.iter().flat_map(|block| &block.transactions).map(|txn| txn.logs.len() as u64);
            let logs: u64 = logs.sum();
            if index >= logs {
                return Err(format!(
                    "resume_from.index: block {} has {logs} logs, and none with {index}",
                    place.number
                ));
            }
            (self.next, self.seen) = (*at, Some((*at, index)));
            return Ok(None);
        }
        // The block is known, and has not come as far as this subscription wants. So all that it tells is new.
        if let (Some((at, _)), None) = (of_block.first(), place.state) {
            self.next = at + 1;
            return Ok(None);
        }
        self.next = first;
        let oldest = history.iter().find_map(|news| match &**news {
            Notification::State(told) => Some(Number(told.update.tag.block_number)),
            Notification::Gap(_) => None,
        });
        let reason = "the block of resume_from is not remembered: what follows it may be missing";
        Ok(Some(Missing { gap: NotRemembered { reason, resume_from: Number(place.number), oldest } }))
    }

    /// Goes past news, some of which may have been told.
    pub(crate) fn pass(&mut self, news: u64) {
        (self.next, self.at) = (self.next + news, (0, 0));
    }

    /// Returns the next message of the news at `next`; `None` after the last one.
    pub(crate) fn message<'n>(&mut self, news: &'n Notification) -> Option<Message<'n>> {
        let told = match news {
            Notification::State(told) => told,
            Notification::Gap(gap) => return self.is_first().then_some(Message::Gap(gap)),
        };
        let update = &told.update;
        let block = update.block.as_deref().filter(|_| self.tells(told))?;
        let state = (!self.params.kind.is_once()).then_some(update.state);
        if !self.params.kind.is_of_logs() {
            return self.is_first().then_some(Message::Header(block, state));
        }
        let seen = self.seen.filter(|(place, _)| *place == self.next).map(|(_, index)| index);
        while let Some(txn) = block.transactions.get(self.at.0) {
            while let Some(log) = txn.logs.get(self.at.1) {
                self.at.1 += 1;
                let is_seen = seen.zip(log.block_index).is_some_and(|(seen, index)| index <= seen);
                if !is_seen && self.params.wants(&log.address, &log.topics) {
                    let is_removed = update.state == CommitState::Abandoned;
                    return Some(Message::Log { block, txn, log, state, is_removed });
                }
            }
            self.at = (self.at.0 + 1, 0);
        }
        None
    }

    /// Returns true once for each place.
    fn is_first(&mut self) -> bool {
        std::mem::replace(&mut self.at, (1, 0)) == (0, 0)
    }

    /// Returns true if this is told: a block that has come as far as is wanted, once or each time, or the end of one
    /// that was told.
    fn tells(&self, told: &StateChange) -> bool {
        let (kind, min_stage, state) = (self.params.kind, self.params.min_stage, told.update.state);
        let Some(block) = &told.update.block else { return false };
        let is_abandoned = state == CommitState::Abandoned;
        let is_whole = kind.is_of_logs() || (block.is_complete && !is_abandoned);
        let earlier = if is_whole { &told.earlier.whole } else { &told.earlier.any };
        if is_abandoned {
            let last = if kind.is_once() { earlier.first(min_stage) } else { earlier.last };
            return kind != Kind::NewHeads && earlier.first(min_stage).and(last).is_some_and(|last| last >= self.since);
        }
        state >= min_stage
            && (block.is_complete || !kind.is_of_logs())
            && !(kind.is_once() && earlier.first(min_stage).is_some())
    }
}

impl Place {
    fn is_of(&self, told: &StateChange) -> bool {
        let tag = told.update.tag;
        let hash = || told.update.block.as_ref()?.end().map(|end| end.eth_block_hash);
        tag.block_number == self.number && self.id.is_none_or(|id| id == tag.id || Some(id) == hash())
    }
}
