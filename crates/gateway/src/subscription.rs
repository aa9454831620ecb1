//! What a client wants to know.

use crate::hub::News;
use crate::render;
use eventring::schema::exec::{Address, BlockTag, Bytes32};
use eventring_exec::{Block, CommitState, Log, Txn};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Arc;

/// The number of blocks of which a subscription remembers that it has told them.
const TOLD_MAX: usize = 4096;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    NewHeads,
    Logs,
    /// Each state of each block.
    MonadNewHeads,
    MonadLogs,
}

/// A subscription of a client.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u64,
    kind: Kind,
    addresses: Vec<Address>,
    /// For each place of a topic, those that are wanted; empty for any.
    topics: Vec<Vec<Bytes32>>,
    min_stage: CommitState,
    resume_from: Option<Place>,
    /// The blocks that were told, so that each is told once, and taken back if it is abandoned.
    told: VecDeque<Bytes32>,
}

/// The last thing that a client has seen.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u64,
    id: Option<Bytes32>,
    /// The index of the log in the block.
    index: Option<u64>,
}

impl Subscription {
    /// Reads the parameters of `eth_subscribe`.
    pub(crate) fn new(id: u64, params: &Value) -> Result<Self, String> {
        let kind = match params[0].as_str() {
            Some("newHeads") => Kind::NewHeads,
            Some("logs") => Kind::Logs,
            Some("monadNewHeads") => Kind::MonadNewHeads,
            Some("monadLogs") => Kind::MonadLogs,
            _ => return Err("expected newHeads, logs, monadNewHeads or monadLogs as the first parameter".into()),
        };
        let options = &params[1];
        let addresses = one_or_many(&options["address"], "address")?;
        let topics = match &options["topics"] {
            Value::Null => Vec::new(),
            Value::Array(places) if places.len() <= 4 => {
                places.iter().map(|place| one_or_many(place, "topic")).collect::<Result<_, _>>()?
            }
            _ => return Err("expected at most four topics in an array".into()),
        };
        let min_stage = match &options["min_stage"] {
            Value::Null => CommitState::Proposed,
            stage => stage.as_str().unwrap_or_default().parse().map_err(|why| format!("min_stage: {why}"))?,
        };
        let resume_from = match &options["resume_from"] {
            Value::Null => None,
            place => Some(Place {
                number: number(&place["number"]).ok_or("resume_from: expected a block's number")?,
                id: one_or_many(&place["id"], "id")?.first().copied(),
                index: number(&place["index"]),
            }),
        };
        Ok(Self { id, kind, addresses, topics, min_stage, resume_from, told: VecDeque::new() })
    }

    pub(crate) fn resumes(&self) -> bool {
        self.resume_from.is_some()
    }

    /// Returns what the client has not seen of what was told lately.
    pub(crate) fn resume(&mut self, history: &[Arc<News>]) -> Vec<Value> {
        let Some(place) = self.resume_from.take() else { return Vec::new() };
        let is_it = |tag: BlockTag| tag.block_number == place.number && place.id.is_none_or(|id| id == tag.id);
        let found = history.iter().position(|news| matches!(&**news, News::State(update) if is_it(update.tag)));
        let mut results = Vec::new();
        let Some(at) = found else {
            let oldest = history.iter().find_map(|news| match &**news {
                News::State(update) => Some(update.tag.block_number),
                News::Gap(_) => None,
            });
            let reason = "the block of resume_from is not remembered: what follows it may be missing";
            let oldest = oldest.map(render::number);
            results.push(
                json!({ "gap": { "reason": reason, "resumeFrom": render::number(place.number), "oldest": oldest } }),
            );
            results.extend(history.iter().flat_map(|news| self.results(news)));
            return results;
        };
        for news in &history[at..] {
            let is_of_place = matches!(&**news, News::State(update) if is_it(update.tag));
            for result in self.results(news) {
                // Of the block itself, only later logs are news.
                let index = number(&result["logIndex"]);
                let is_seen = match (self.is_of_logs(), place.index) {
                    (true, Some(seen)) => index.is_none_or(|index| index <= seen),
                    _ => self.is_once(),
                };
                if !is_of_place || !is_seen {
                    results.push(result);
                }
            }
        }
        results
    }

    fn is_of_logs(&self) -> bool {
        matches!(self.kind, Kind::Logs | Kind::MonadLogs)
    }

    /// Returns true if a block is told once, and not again with each state.
    fn is_once(&self) -> bool {
        matches!(self.kind, Kind::NewHeads | Kind::Logs)
    }

    /// Returns what the client is to be told.
    pub(crate) fn results(&mut self, news: &News) -> Vec<Value> {
        let update = match news {
            News::State(update) => update,
            News::Gap(problem) => return vec![json!({ "gap": eventring_exec::json::problem(problem) })],
        };
        let Some(block) = &update.block else { return Vec::new() };
        let was_told = self.told.contains(&block.tag().id);
        if update.state == CommitState::Abandoned {
            return match (self.kind, was_told) {
                (Kind::Logs, true) => self.logs(block, None, true),
                (Kind::MonadLogs, true) => self.logs(block, Some(update.state), true),
                (Kind::MonadNewHeads, true) => vec![render::header(block, Some(update.state))],
                _ => Vec::new(),
            };
        }
        if update.state < self.min_stage || (was_told && self.is_once()) {
            return Vec::new();
        }
        if !was_told {
            self.told.push_back(block.tag().id);
            if self.told.len() > TOLD_MAX {
                self.told.pop_front();
            }
        }
        match self.kind {
            Kind::NewHeads => vec![render::header(block, None)],
            Kind::MonadNewHeads => vec![render::header(block, Some(update.state))],
            Kind::Logs => self.logs(block, None, false),
            Kind::MonadLogs => self.logs(block, Some(update.state), false),
        }
    }

    fn logs(&self, block: &Block, state: Option<CommitState>, removed: bool) -> Vec<Value> {
        let of_txn = |txn: &'_ Txn| -> Vec<Value> {
            let wanted = txn.logs.iter().filter(|log| self.wants(log));
            wanted.map(|log| render::log(block, txn, log, state, removed)).collect()
        };
        block.transactions.iter().flat_map(of_txn).collect()
    }

    fn wants(&self, log: &Log) -> bool {
        let has = |(at, wanted): (usize, &Vec<Bytes32>)| {
            wanted.is_empty() || log.topics.get(at).is_some_and(|topic| wanted.contains(topic))
        };
        (self.addresses.is_empty() || self.addresses.contains(&log.address)) && self.topics.iter().enumerate().all(has)
    }
}

/// Reads one value, or an array of them; none for null.
fn one_or_many<T: FromStr>(value: &Value, what: &str) -> Result<Vec<T>, String> {
    let one = |value: &Value| {
        let parsed = value.as_str().and_then(|text| text.parse().ok());
        parsed.ok_or_else(|| format!("expected {what} as hex with 0x, found {value}"))
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(many) => many.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// Reads a number: a JSON number, or hex with `0x`.
fn number(value: &Value) -> Option<u64> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    value.as_u64().or_else(|| hex(value.as_str()?))
}
