//! The parameters of `eth_subscribe`.

use eventring::schema::exec::{Address, Bytes32};
use eventring_exec::CommitState;
use serde_json::{Map, Value};
use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    NewHeads,
    Logs,
    /// Each state of each block.
    MonadNewHeads,
    MonadLogs,
}

impl Kind {
    pub(crate) fn is_of_logs(self) -> bool {
        matches!(self, Self::Logs | Self::MonadLogs)
    }

    /// Returns true if a block is told once, and not again with each state.
    pub(crate) fn is_once(self) -> bool {
        matches!(self, Self::NewHeads | Self::Logs)
    }
}

/// What a client wants to know.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) kind: Kind,
    /// In order.
    addresses: Vec<[u8; 20]>,
    /// For each place of a topic, those that are wanted, in order; empty for any.
    topics: Vec<Vec<[u8; 32]>>,
    pub(crate) min_stage: CommitState,
    pub(crate) resume_from: Option<Place>,
}

/// The last thing that a client has seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) number: u64,
    /// The block's id, or its hash.
    pub(crate) id: Option<Bytes32>,
    /// The index of the log in the block.
    pub(crate) index: Option<u64>,
    pub(crate) state: Option<CommitState>,
}

impl Params {
    pub(crate) fn read(params: &Value) -> Result<Self, String> {
        let params = params.as_array().ok_or("expected an array of parameters: a subscription and its options")?;
        let kind = match params.first().and_then(Value::as_str) {
            Some("newHeads") => Kind::NewHeads,
            Some("logs") => Kind::Logs,
            Some("monadNewHeads") => Kind::MonadNewHeads,
            Some("monadLogs") => Kind::MonadLogs,
            _ => return Err("expected newHeads, logs, monadNewHeads or monadLogs as the first parameter".into()),
        };
        let known: &[&str] = match kind.is_of_logs() {
            true => &["address", "topics", "min_stage", "resume_from"],
            false => &["min_stage", "resume_from"],
        };
        let none = Map::new();
        let options = match params.get(1) {
            None | Some(Value::Null) => &none,
            Some(options) => object(options, "the second parameter", known)?,
        };
        if let Some(third) = params.get(2) {
            return Err(format!("expected at most two parameters, found a third one: {third}"));
        }
        let option = |name: &str| options.get(name).unwrap_or(&Value::Null);
        let mut addresses: Vec<[u8; 20]> =
            one_or_many(option("address"), "address")?.into_iter().map(|Address(address)| address).collect();
        addresses.sort_unstable();
        let topics = match option("topics") {
            Value::Null => Vec::new(),
            Value::Array(places) if places.len() <= 4 => {
                places.iter().map(topics_of_place).collect::<Result<_, _>>()?
            }
            _ => return Err("topics: expected at most four topics in an array".into()),
        };
        let min_stage = match option("min_stage") {
            Value::Null => CommitState::Proposed,
            stage => match stage.as_str().unwrap_or_default().parse() {
                Ok(CommitState::Abandoned) | Err(_) => {
                    return Err(format!("min_stage: expected proposed, voted, finalized or verified, found {stage}"));
                }
                Ok(stage) => stage,
            },
        };
        let resume_from = match option("resume_from") {
            Value::Null => None,
            place => Some(Place::read(place, kind)?),
        };
        Ok(Self { kind, addresses, topics, min_stage, resume_from })
    }

    /// Returns the number of addresses and topics that are compared.
    pub(crate) fn wanted_len(&self) -> usize {
        self.addresses.len() + self.topics.iter().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn wants(&self, address: &Address, topics: &[Bytes32]) -> bool {
        let has = |(at, wanted): (usize, &Vec<[u8; 32]>)| {
            wanted.is_empty() || topics.get(at).is_some_and(|topic| wanted.binary_search(&topic.0).is_ok())
        };
        (self.addresses.is_empty() || self.addresses.binary_search(&address.0).is_ok())
            && self.topics.iter().enumerate().all(has)
    }
}

impl Place {
    fn read(place: &Value, kind: Kind) -> Result<Self, String> {
        let known: &[&str] = match kind {
            Kind::NewHeads => &["number", "id"],
            Kind::Logs => &["number", "id", "index"],
            Kind::MonadNewHeads => &["number", "id", "commitState"],
            Kind::MonadLogs => &["number", "id", "index", "commitState"],
        };
        let place = object(place, "resume_from", known)?;
        let field = |name: &str| place.get(name).unwrap_or(&Value::Null);
        let number_of = |name: &str, what: &str| match field(name) {
            Value::Null => Ok(None),
            value => number(value).map(Some).ok_or(format!("resume_from.{name}: expected {what}, found {value}")),
        };
        let id = match field("id") {
            Value::Null => None,
            id => Some(one(id, "resume_from.id")?),
        };
        let state = match field("commitState") {
            Value::Null => None,
            state => match state.as_str().unwrap_or_default().parse() {
                Ok(state) => Some(state),
                Err(why) => return Err(format!("resume_from.commitState: {why}, found {state}")),
            },
        };
        Ok(Self {
            number: number_of("number", "a block's number")?.ok_or("resume_from: expected a block's `number`")?,
            id,
            index: number_of("index", "the logIndex of a log")?,
            state,
        })
    }
}

/// Returns the fields of an object that has no others than these.
fn object<'v>(value: &'v Value, what: &str, known: &[&str]) -> Result<&'v Map<String, Value>, String> {
    let names = known.join(", ");
    let object = value.as_object().ok_or_else(|| format!("{what}: expected an object with {names}, found {value}"))?;
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("{what}: there is no `{unknown}` here; there are {names}")),
        None => Ok(object),
    }
}

fn topics_of_place(place: &Value) -> Result<Vec<[u8; 32]>, String> {
    let mut topics: Vec<[u8; 32]> = one_or_many(place, "topic")?.into_iter().map(|Bytes32(topic)| topic).collect();
    topics.sort_unstable();
    Ok(topics)
}

fn one<T: FromStr>(value: &Value, what: &str) -> Result<T, String> {
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("{what}: expected hex with 0x, found {value}"))
}

/// Reads one value, or an array of them; none for null.
fn one_or_many<T: FromStr>(value: &Value, what: &str) -> Result<Vec<T>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(many) => many.iter().map(|value| one(value, what)).collect(),
        value => Ok(vec![one(value, what)?]),
    }
}

/// Reads a number: a JSON number, or hex with `0x`.
fn number(value: &Value) -> Option<u64> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    value.as_u64().or_else(|| hex(value.as_str()?))
}
