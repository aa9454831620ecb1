//! JSON objects, one a line. The first object describes the rings, the last one has the counts.

use super::args::{Args, CUT};
use super::payloads;
use super::recording::{CaptureRecording, EntryContent};
use super::timeline::Timeline;
use crate::capture::{CapturedPayload, RingRole};
use crate::reader::Descriptor;
use crate::schema::decode_event;
use crate::tracing::{Fields, PerfContent, PerfRecord, Span, SpanId, SpanReplay, SpanSlice, Thread};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the lines. Events come in their order. A span is written when it is closed; the spans that are still open
/// come at the end.
pub(super) fn write(recording: &CaptureRecording<'_>, timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    line(out, &head(recording))?;
    let mut replays: BTreeMap<u32, SpanReplay> = BTreeMap::new();
    for entry in recording.entries() {
        let process = entry.process;
        let replay = replays.entry(process).or_default();
        match &entry.content {
            EntryContent::Perf { recorder, record } => {
                replay.push(*recorder, record);
                while let Some(span) = replay.take_closed() {
                    line(out, &span_object(process, &span, timeline.last_nanos))?;
                }
                if let Some(object) = record_object(process, record) {
                    line(out, &object)?;
                }
            }
            EntryContent::Typed { descriptor, payload } => {
                if let Some(span) = recording.span(entry.ring, descriptor) {
                    replay.push_typed_event(span, descriptor.record_epoch_nanos);
                }
                line(out, &typed_object(recording, process, entry.ring, descriptor, payload))?;
            }
            EntryContent::Gap { first_seqno, count, cause } => {
                let shard = recording.losing_shard(entry.ring, *cause);
                for (of_process, replay) in &mut replays {
                    replay.gap(shard.filter(|_| *of_process == process));
                }
                line(
                    out,
                    &json!({
                        "type": "loss", "process": process, "ring": recording.ring(entry.ring).name,
                        "first_seqno": first_seqno, "count": count, "cause": cause.name(),
                    }),
                )?;
            }
        }
    }
    for (process, replay) in replays {
        let spans = replay.finish(timeline.last_nanos);
        spans.iter().try_for_each(|span| line(out, &span_object(process, span, timeline.last_nanos)))?;
    }
    let counts = &timeline.counts;
    line(
        out,
        &json!({
            "type": "end", "spans": counts.spans, "open_spans": counts.open_spans,
            "lost_ends": counts.lost_ends, "slices": counts.slices,
            "events": counts.events, "typed_events": counts.typed_events, "counters": counts.counters,
            "markers": counts.markers, "lost": counts.lost,
            "lost_payloads": counts.lost_payloads(), "payload_losses": payloads::to_json(&counts.payload_losses),
        }),
    )
}

fn line(out: &mut dyn Write, object: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}

fn head(recording: &CaptureRecording<'_>) -> Value {
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

fn span_object(process: u32, span: &Span, last_nanos: u64) -> Value {
    let call_site = span.call_site.as_deref();
    let slices: Vec<Value> = span.slices.iter().map(slice_object).collect();
    // An open span counts as busy until the end of the recording if a thread is in it. If an exit may have been lost,
    // the busy time is not known.
    let busy = match (span.is_open(), span.is_busy_known) {
        (false, _) => Some(span.busy_nanos()),
        (true, true) => Some(span.busy_nanos_until(last_nanos)),
        (true, false) => None,
    };
    let follows: Vec<u64> = span.follows_from.iter().map(|id| id.get()).collect();
    let mut object = json!({
        "type": "span",
        "process": process,
        "id": span.id.get(),
        "parent": span.parent.map(SpanId::get),
        "name": span.name(),
        "target": call_site.map(|call_site| call_site.target.as_str()),
        "level": call_site.map(|call_site| call_site.level.name().unwrap_or_default()),
        "file": call_site.and_then(|call_site| call_site.file.as_deref()),
        "line": call_site.and_then(|call_site| call_site.line),
        "start_ns": span.created.as_ref().map(|created| created.epoch_nanos),
        "end_ns": span.closed.as_ref().map(|closed| closed.epoch_nanos),
        "duration_ns": span.wall_nanos(),
        "busy_ns": busy,
        "open": span.is_open() && !span.is_end_lost,
        "end_lost": span.is_end_lost,
        "last_seen_ns": span.is_end_lost.then_some(span.last_seen_epoch_nanos),
        "may_have_losses": span.may_have_losses || (span.is_open() && busy.is_none()),
        "follows_from": follows,
        "slices": slices,
    });
    insert_fields(&mut object, &span.fields);
    object
}

fn slice_object(slice: &SpanSlice) -> Value {
    json!({
        "thread": thread_object(&slice.thread),
        "start_ns": slice.entered_epoch_nanos,
        "end_ns": slice.exited_epoch_nanos,
    })
}

/// Inserts the values of the fields under `fields`, and the problems of incomplete values under `cut`. `eventring
/// watch` uses the same form.
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

/// Returns the object of a record that is not about spans.
fn record_object(process: u32, record: &PerfRecord) -> Option<Value> {
    let thread = thread_object(&record.thread);
    let span = record.content.span().map(SpanId::get);
    let nanos = record.epoch_nanos;
    Some(match &record.content {
        PerfContent::Event { call_site, fields, .. } => {
            let mut object = json!({
                "type": "event", "process": process, "time_ns": nanos, "thread": thread, "span": span,
                "name": call_site.name, "target": call_site.target, "level": call_site.level.name().unwrap_or_default(),
                "file": call_site.file, "line": call_site.line,
            });
            insert_fields(&mut object, fields);
            object
        }
        PerfContent::Counter { call_site, value, .. } => json!({
            "type": "counter", "process": process, "time_ns": nanos, "thread": thread, "span": span,
            "name": call_site.name, "value": value,
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

fn typed_object(
    recording: &CaptureRecording<'_>,
    process: u32,
    ring: u32,
    descriptor: &Descriptor,
    payload: &CapturedPayload,
) -> Value {
    let described = recording.ring(ring);
    let decoded = match payload {
        CapturedPayload::Valid(bytes) => json!(decode_event(recording.model(ring), descriptor.event_type, bytes)),
        _ => Value::Null,
    };
    let mut object = json!({
        "type": "typed_event", "process": process, "ring": described.name, "seqno": descriptor.seqno,
        "time_ns": descriptor.record_epoch_nanos, "name": recording.event_name(ring, descriptor.event_type),
        "code": descriptor.event_type, "payload": decoded,
    });
    let words = recording.words(ring);
    let named = words.iter_own().filter(|(_, word)| !word.is_reserved());
    let named: Vec<_> = named.map(|(index, word)| (word.key(), word.value(descriptor.content_ext[index]))).collect();
    // If every extension word has a name, the object has each word under its name. Then the object has no
    // `content_ext`, which would only repeat the words.
    if named.len() + usize::from(words.has_span()) < descriptor.content_ext.len() {
        object["content_ext"] = json!(descriptor.content_ext);
    }
    for (key, value) in named {
        object[&*key] = json!(value);
    }
    object["span"] = json!(recording.span(ring, descriptor).map(SpanId::get));
    object
}
