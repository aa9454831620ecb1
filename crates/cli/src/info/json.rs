//! The report of `info` as JSON.

use super::shards::{ShardContent, ShardedSurvey, SurveyedShard};
use super::survey::Survey;
use crate::input::decoder::Decoder;
use crate::input::history::History;
use crate::input::state::{add_end, json_name, writer};
use crate::text::format::content_name;
use eventring::files::{BLOCK_TABLE_ENTRIES, MAGIC};
use eventring::reader::{ExtensionInfo, Reader, RingState};
use serde_json::{Map, Value, json};

/// Returns the report about a ring as one JSON object. `docs/CLI.md` lists the fields.
pub(super) fn object(reader: &Reader, decoder: &Decoder, all: &ShardedSurvey) -> Value {
    let mut object = of_ring(reader, decoder, &all.total, all.history(reader));
    if !all.shards.is_empty() {
        object["extension"]["shards"]["not_made"] = json!(all.not_made);
        object["shards"] = all.shards.iter().map(|shard| of_shard(shard, decoder)).collect();
    }
    object
}

/// Returns the JSON object of one shard. It has the fields of a ring's object, and the shard's index.
fn of_shard(shard: &SurveyedShard, decoder: &Decoder) -> Value {
    let mut object = match &shard.content {
        ShardContent::Opened { reader, survey } => {
            let history = History::read(reader, reader.state() == RingState::Live);
            of_ring(reader, decoder, survey, history)
        }
        ShardContent::Unreadable(why) => json!({ "problem": why }),
    };
    object["index"] = json!(shard.index);
    object
}

fn of_ring(reader: &Reader, decoder: &Decoder, survey: &Survey, history: History) -> Value {
    let info = reader.info();
    let by_type: Map<String, Value> = survey
        .by_type
        .iter()
        .map(|(code, counts)| {
            let shown = json!({
                "name": decoder.name(*code), "count": counts.count, "payload_bytes": counts.payload_bytes,
            });
            (code.to_string(), shown)
        })
        .collect();
    let mut object = json!({
        "file": reader.path().map(|path| path.to_string_lossy()), "state": json_name(reader.state()),
        "magic": String::from_utf8_lossy(&MAGIC),
        "content_type": {
            "code": info.content_type, "name": content_name(&info),
        },
        "schema_hash": eventring::schema::Hex(&info.schema_hash).to_string(),
        "domains": decoder.domains().collect::<Vec<_>>(),
        "descriptor_capacity": info.geometry.descriptor_capacity(),
        "payload_buf_size": info.geometry.payload_buf_bytes(),
        "context_area_size": info.geometry.context_area_bytes(), "last_seqno": info.last_seqno,
        "next_payload_byte": info.next_payload_byte, "buffer_window_start": info.buffer_window_start,
        "writer": writer(reader).map(|(pid, alive)| json!({
            "pid": pid, "alive": alive,
            "program": info.extension.as_ref().map(|extension| &extension.writer.program_name),
        })),
        "events": {
            "oldest_seqno": survey.oldest_seqno, "newest_seqno": survey.newest_seqno, "count": survey.count,
            "lost": survey.lost, "overwritten_before": survey.overwritten_before,
            "being_written": survey.being_written, "expired_payloads": survey.expired_payloads,
            "malformed_payloads": survey.malformed_payloads, "first_ts_ns": survey.times.map(|times| times.0),
            "last_ts_ns": survey.times.map(|times| times.1), "by_type": by_type,
        },
        "events_per_s": history.per_second, "fill": history.fill, "history_seconds": history.seconds,
        "history_seconds_when_full": history.seconds_when_full,
        "block_table": reader.blocks().map(|blocks| json!({
            "used": blocks.len(), "capacity": BLOCK_TABLE_ENTRIES,
            "last": blocks.last().map(|block| json!({
                "number": block.number(), "id": eventring::schema::Hex(&block.id()).to_string(),
                "start_seqno": block.start_seqno(), "start_ts_ns": block.start_epoch_nanos(),
            })),
        })),
        "extension": info.extension.as_ref().map(extension),
    });
    add_end(&mut object, survey.end(reader));
    object
}

fn extension(info: &ExtensionInfo) -> Value {
    json!({
        "version": format!("{}.{}", info.version >> 16, info.version & 0xffff),
        "created_ts_ns": info.created_epoch_nanos,
        "snapshot_ts_ns": (info.snapshot_epoch_nanos > 0).then_some(info.snapshot_epoch_nanos),
        "shards": (info.shard_limit > 0).then(|| json!({
            "index": info.shard_index, "count": info.shard_count, "limit": info.shard_limit,
        })),
        "reduced_free_bytes": (info.reduced_free_bytes > 0).then_some(info.reduced_free_bytes),
        "clock": {
            "kind": match info.clock.kind { 1 => "realtime", 2 => "tick_counter", _ => "unknown" },
            "ticks_per_second": info.clock.ticks_per_second,
        },
        "counters": {
            "refused_claims": info.refused_claims, "lapped_claims": info.lapped_claims,
            "skipped_chunks": info.skipped_chunks, "record_errors": info.record_errors,
            "table_overflows": info.table_overflows, "foreign_events": info.foreign_events,
            "snapshot_lost": info.snapshot_lost,
        },
    })
}
