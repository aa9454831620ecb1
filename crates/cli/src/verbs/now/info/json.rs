//! The report of `info` as JSON.

use crate::input::names::decoder::Decoder;
use crate::input::ring::report::{RingFacts, RingReport, ShardReport};
use crate::input::ring::survey::{Survey, TypeCounts};
use eventring::files::{BLOCK_TABLE_ENTRIES, MAGIC};
use eventring::reader::{ExtensionInfo, Reader};
use eventring::schema::Hex;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What `info --json` prints. Of a perf recorder, `events` is about all shards, and all else about shard 0.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Info<'a> {
    #[serde(flatten)]
    ring: RingRow<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<Vec<ShardRow<'a>>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ShardRow<'a> {
    /// A shard.
    Opened {
        #[serde(flatten)]
        ring: Box<RingRow<'a>>,
        index: u32,
    },
    /// A shard that could not be opened.
    Unreadable { problem: &'a str, index: u32 },
}

/// A ring.
#[derive(Serialize, JsonSchema)]
struct RingRow<'a> {
    #[serde(flatten)]
    ring: RingFacts,
    magic: Cow<'static, str>,
    schema_hash: String,
    domains: Vec<&'a str>,
    descriptor_capacity: u64,
    payload_buf_size: u64,
    context_area_size: u64,
    last_seqno: u64,
    next_payload_byte: u64,
    buffer_window_start: u64,
    events: Events<'a>,
    block_table: Option<BlockTable>,
    /// Null in files of other writers.
    extension: Option<Extension>,
}

#[derive(Serialize, JsonSchema)]
struct Events<'a> {
    #[serde(flatten)]
    counts: &'a Survey,
    first_ts_ns: Option<u64>,
    last_ts_ns: Option<u64>,
    /// The events of each type, by its code.
    by_type: BTreeMap<u16, OfType<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct OfType<'a> {
    name: Option<&'a str>,
    #[serde(flatten)]
    counts: &'a TypeCounts,
}

#[derive(Serialize, JsonSchema)]
struct BlockTable {
    used: usize,
    capacity: u64,
    last: Option<LastBlock>,
}

#[derive(Serialize, JsonSchema)]
struct LastBlock {
    number: u64,
    id: String,
    start_seqno: Option<u64>,
    start_ts_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Extension {
    version: String,
    created_ts_ns: u64,
    /// Null if it is no snapshot.
    snapshot_ts_ns: Option<u64>,
    shards: Option<Shards>,
    /// The bytes that were free, if the ring is smaller because of them.
    reduced_free_bytes: Option<u64>,
    clock: Clock,
    counters: Counters,
}

#[derive(Serialize, JsonSchema)]
struct Shards {
    index: u64,
    count: u64,
    limit: u64,
    /// Those that the recorder needed and could not make.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_made: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Clock {
    /// `realtime`, `tick_counter`, `unknown`.
    kind: &'static str,
    ticks_per_second: u64,
}

#[derive(Serialize, JsonSchema)]
struct Counters {
    refused_claims: u64,
    #[serde(rename = "lapped_claims")]
    overrun_claims: u64,
    skipped_chunks: u64,
    record_errors: u64,
    table_overflows: u64,
    foreign_events: u64,
    snapshot_lost: u64,
}

impl<'a> Info<'a> {
    pub(super) fn new(decoder: &'a Decoder, all: &'a RingReport) -> Self {
        let mut ring = RingRow::new(&all.reader, decoder, &all.total, all.facts());
        let is_sharded = !all.shards.is_empty();
        if let Some(shards) = ring.extension.as_mut().and_then(|extension| extension.shards.as_mut()) {
            shards.not_made = is_sharded.then_some(all.not_made);
        }
        let shards = is_sharded.then(|| all.shards.iter().map(|shard| ShardRow::new(shard, decoder)).collect());
        Self { ring, shards }
    }
}

impl<'a> ShardRow<'a> {
    fn new(shard: &'a ShardReport, decoder: &'a Decoder) -> Self {
        let index = shard.index;
        match &shard.content {
            Ok((reader, survey)) => {
                let row = RingRow::new(reader, decoder, survey, RingFacts::from_reader(reader, survey));
                Self::Opened { ring: Box::new(row), index }
            }
            Err(problem) => Self::Unreadable { problem, index },
        }
    }
}

impl<'a> RingRow<'a> {
    fn new(reader: &'a Reader, decoder: &'a Decoder, survey: &'a Survey, ring: RingFacts) -> Self {
        let info = reader.info();
        let of_type = |(code, counts): (&u16, &'a TypeCounts)| (*code, OfType { name: decoder.name(*code), counts });
        Self {
            ring,
            magic: String::from_utf8_lossy(&MAGIC),
            schema_hash: Hex(&info.schema_hash).to_string(),
            domains: decoder.domains().collect(),
            descriptor_capacity: info.geometry.descriptor_capacity(),
            payload_buf_size: info.geometry.payload_buf_bytes(),
            context_area_size: info.geometry.context_area_bytes(),
            last_seqno: info.last_seqno,
            next_payload_byte: info.next_payload_byte,
            buffer_window_start: info.buffer_window_start,
            events: Events {
                counts: survey,
                first_ts_ns: survey.times.map(|times| times.0),
                last_ts_ns: survey.times.map(|times| times.1),
                by_type: survey.by_type.iter().map(of_type).collect(),
            },
            block_table: reader.blocks().map(|blocks| BlockTable {
                used: blocks.len(),
                capacity: BLOCK_TABLE_ENTRIES,
                last: blocks.last().map(|block| LastBlock {
                    number: block.number(),
                    id: Hex(&block.id()).to_string(),
                    start_seqno: block.start_seqno(),
                    start_ts_ns: block.start_epoch_nanos(),
                }),
            }),
            extension: info.extension.as_ref().map(Extension::new),
        }
    }
}

impl Extension {
    fn new(info: &ExtensionInfo) -> Self {
        Self {
            version: format!("{}.{}", info.version >> 16, info.version & 0xffff),
            created_ts_ns: info.created_epoch_nanos,
            snapshot_ts_ns: Some(info.snapshot_epoch_nanos).filter(|nanos| *nanos > 0),
            shards: (info.shard_limit > 0).then_some(Shards {
                index: info.shard_index,
                count: info.shard_count,
                limit: info.shard_limit,
                not_made: None,
            }),
            reduced_free_bytes: Some(info.reduced_free_bytes).filter(|bytes| *bytes > 0),
            clock: Clock {
                kind: match info.clock.kind {
                    1 => "realtime",
                    2 => "tick_counter",
                    _ => "unknown",
                },
                ticks_per_second: info.clock.ticks_per_second,
            },
            counters: Counters {
                refused_claims: info.refused_claims,
                overrun_claims: info.overrun_claims,
                skipped_chunks: info.skipped_chunks,
                record_errors: info.record_errors,
                table_overflows: info.table_overflows,
                foreign_events: info.foreign_events,
                snapshot_lost: info.snapshot_lost,
            },
        }
    }
}
