//! A JSON object a line. The first says which rings there were; the last what was counted.

use super::args::{ArgValue, Args, CUT};
use super::payloads;
use super::recording::{Content, Recording};
use super::sink::level_name;
use super::timeline::Timeline;
use crate::capture::{CapturedPayload, RingRole};
use crate::reader::Descriptor;
use crate::schema::decode_event;
use crate::tracing::{Fields, PerfContent, PerfRecord, Slice, Span, SpanId, SpanRebuilder, Thread};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the lines: events as they come, spans when they have been closed, open spans at the end.
pub(super) fn write(recording: &Recording<'_>, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    line(out, &head(recording))?;
    let mut processes: BTreeMap<u32, SpanRebuilder> = BTreeMap::new();
    for entry in recording.entries() {
        let ring = recording.ring(entry.ring);
        match &entry.content {
            Content::Perf { record, .. } => {
                let spans = processes.entry(entry.process).or_default();
                spans.push(record);
                while let Some(span) = spans.take_closed() {
                    line(out, &span_object(entry.process, &span, timeline))?;
                }
                if let Some(object) = record_object(entry.process, record) {
                    line(out, &object)?;
                }
            }
            Content::Other { descriptor, payload } => {
                line(out, &other_object(recording, entry.process, entry.ring, descriptor, payload))?;
            }
            Content::Gap { first_seqno, count, cause } => {
                processes.values_mut().for_each(SpanRebuilder::gap);
                line(
                    out,
                    &json!({
                        "type": "loss", "process": entry.process, "ring": ring.name, "first_seqno": first_seqno,
                        "count": count, "cause": cause.name(),
                    }),
                )?;
            }
        }
    }
    for (process, spans) in processes {
        spans.finish().iter().try_for_each(|span| line(out, &span_object(process, span, timeline)))?;
    }
    let counts = &timeline.counts;
    line(
        out,
        &json!({
            "type": "end", "spans": counts.spans, "open_spans": counts.open_spans,
            "lost_ends": counts.lost_ends, "slices": counts.slices,
            "events": counts.events, "exec_events": counts.exec_events, "counters": counts.counters,
            "markers": counts.markers, "lost": counts.lost,
            "lost_payloads": counts.lost_payloads(), "payload_losses": payloads::to_json(&counts.payload_losses),
        }),
    )
}

fn line(out: &mut dyn Write, object: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}

fn head(recording: &Recording<'_>) -> Value {
    let rings: Vec<Value> = recording
        .capture
        .rings()
        .iter()
        .map(|ring| {
            let shard = match ring.role {
                RingRole::Shard { shard, .. } => Some(shard),
                RingRole::Single => None,
            };
            json!({
                "name": ring.name, "process": ring.process, "pid": ring.pid, "program": ring.program_name,
                "content_type": ring.content_type, "content_name": ring.content_name, "shard": shard,
                "first_seqno": ring.first_seqno,
            })
        })
        .collect();
    json!({ "type": "capture", "version": 1, "started_ns": recording.capture.started_epoch_nanos(), "rings": rings })
}

fn thread_object(thread: &Thread) -> Value {
    json!({ "id": thread.id, "tid": thread.os_thread_id, "name": thread.name })
}

fn span_object(process: u32, span: &Span, timeline: &Timeline) -> Value {
    let times = timeline.get((process, span.id));
    let call_site = span.call_site.as_deref();
    let slices: Vec<Value> = span.slices.iter().map(slice_object).collect();
    // Of an open span, until the end of the recording; if an exit may have been lost, nobody knows.
    let busy = match (span.is_open(), times.is_some_and(|times| times.is_busy_known)) {
        (false, _) => Some(span.busy_nanos()),
        (true, true) => Some(span.busy_nanos_until(timeline.last_nanos)),
        (true, false) => None,
    };
    let is_end_lost = times.is_some_and(|times| times.is_end_lost);
    let follows: Vec<u64> = span.follows_from.iter().map(|id| id.get()).collect();
    let mut object = json!({
        "type": "span",
        "process": process,
        "id": span.id.get(),
        "parent": span.parent.map(SpanId::get),
        "name": span.name(),
        "target": call_site.map(|call_site| call_site.target.as_str()),
        "level": call_site.map(|call_site| level_name(call_site.level)),
        "file": call_site.and_then(|call_site| call_site.file.as_deref()),
        "line": call_site.and_then(|call_site| call_site.line),
        "start_ns": span.created.as_ref().map(|created| created.epoch_nanos),
        "end_ns": span.closed.as_ref().map(|closed| closed.epoch_nanos),
        "duration_ns": span.wall_nanos(),
        "busy_ns": busy,
        "open": span.is_open() && !is_end_lost,
        "end_lost": is_end_lost,
        "last_seen_ns": times.filter(|times| times.is_end_lost).map(|times| times.seen_nanos),
        "may_have_losses": span.may_have_losses || (span.is_open() && busy.is_none()),
        "follows_from": follows,
        "slices": slices,
    });
    insert_fields(&mut object, &span.fields);
    object
}

fn slice_object(slice: &Slice) -> Value {
    json!({
        "thread": thread_object(&slice.thread),
        "start_ns": slice.entered_epoch_nanos,
        "end_ns": slice.exited_epoch_nanos,
    })
}

/// In the shape that `watch` has: values under `fields`, and beside that what is wrong with them.
fn insert_fields(object: &mut Value, fields: &Fields) {
    let mut args = Args::default();
    fields.values.iter().for_each(|field| args.push_field(field));
    object["fields"] = args.values().into();
    let cuts = args.cuts();
    if !cuts.is_empty() {
        object[CUT] = cuts.into();
    }
    let mut problems = Args::default();
    problems.push_problems(fields);
    for (name, value) in problems.values() {
        object[name] = value;
    }
}

/// What is no part of a span.
fn record_object(process: u32, record: &PerfRecord) -> Option<Value> {
    let thread = thread_object(&record.thread);
    let span = record.content.span().map(SpanId::get);
    let nanos = record.epoch_nanos;
    Some(match &record.content {
        PerfContent::Event { call_site, fields, .. } => {
            let mut object = json!({
                "type": "event", "process": process, "time_ns": nanos, "thread": thread, "span": span,
                "name": call_site.name, "target": call_site.target, "level": level_name(call_site.level),
                "file": call_site.file, "line": call_site.line,
            });
            insert_fields(&mut object, fields);
            object
        }
        PerfContent::Counter { call_site, value, .. } => json!({
            "type": "counter", "process": process, "time_ns": nanos, "thread": thread, "span": span,
            "name": call_site.name, "value": ArgValue::from(value).to_json(),
        }),
        PerfContent::Marker { call_site, text, .. } => json!({
            "type": "marker", "process": process, "time_ns": nanos, "thread": thread, "span": span,
            "name": call_site.name, "text": text,
        }),
        PerfContent::NotRecorded { error, .. } => json!({
            "type": "not_recorded", "process": process, "time_ns": nanos, "thread": thread, "span": span,
            "why": error.as_ref().map(|error| format!("{error:?}")),
        }),
        PerfContent::Unknown { event_type, .. } => json!({
            "type": "unknown", "process": process, "time_ns": nanos, "thread": thread, "code": event_type,
        }),
        _ => return None,
    })
}

fn other_object(
    recording: &Recording<'_>,
    process: u32,
    ring: u32,
    descriptor: &Descriptor,
    payload: &CapturedPayload,
) -> Value {
    let described = recording.ring(ring);
    let decoded = match payload {
        CapturedPayload::Valid(bytes) => {
            let json = decode_event(recording.model(ring), descriptor.event_type, bytes).to_json();
            serde_json::from_str(&json).unwrap_or(Value::String(json))
        }
        _ => Value::Null,
    };
    let mut object = json!({
        "type": "exec", "process": process, "ring": described.name, "seqno": descriptor.seqno,
        "time_ns": descriptor.record_epoch_nanos, "name": recording.event_name(ring, descriptor.event_type),
        "code": descriptor.event_type, "payload": decoded,
    });
    let words = recording.words(ring);
    let named = words.iter_own().filter(|(_, word)| object.get(&*word.key()).is_none());
    let named: Vec<_> = named.map(|(index, word)| (word.key(), word.value(descriptor.content_ext[index]))).collect();
    // Where each word has a key, the array would repeat them.
    if named.len() + usize::from(words.has_span()) < descriptor.content_ext.len() {
        object["content_ext"] = json!(descriptor.content_ext);
    }
    for (key, value) in named {
        object[&*key] = json!(value);
    }
    object["span"] = json!(recording.span(ring, descriptor).map(SpanId::get));
    object
}
