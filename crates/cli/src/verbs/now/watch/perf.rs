//! The events of perf rings as values.

use crate::text::format::{bytes, counted};
use crate::text::perf::field_value;
use eventring::schema::Value;
use eventring::schema::perf::{Allocated, Cut, ThreadTime, flags};
use eventring::tracing::{CallSite, Fields, FieldsProblem, PerfContent, PerfRecord, SpanId, Thread};
use eventring_capture::numbers::time;
use eventring_export::args::allocated_values;
use std::borrow::Cow;

/// Returns the record as a struct. The struct includes the thread and the span only if `whole` is true. (Lines for
/// people show the thread and the span in columns.)
pub(super) fn value(record: &PerfRecord, whole: bool) -> Value<'_> {
    let mut out = Vec::new();
    if whole {
        out.push(("thread", thread(&record.thread)));
        out.push(("span", span(record.content.span())));
    }
    if let Some(site) = site(&record.content) {
        call_site(&mut out, site);
    }
    match &record.content {
        PerfContent::ThreadStarted if !whole => out.push(("started", thread(&record.thread))),
        PerfContent::ThreadStarted | PerfContent::ThreadEnded => {}
        PerfContent::SpanEnter { .. } | PerfContent::SpanClose { .. } => {}
        PerfContent::CallSite(site) => place(&mut out, site),
        PerfContent::SpanNew { parent, fields, flags, .. } => {
            if flags & flags::SCOPE != 0 {
                out.push(("kind", text("scope")));
            }
            out.push(("parent", span(*parent)));
            push_fields(&mut out, fields, whole);
        }
        PerfContent::SpanRecord { fields, .. } => push_fields(&mut out, fields, whole),
        PerfContent::Event { call_site: site, fields, .. } => {
            if whole {
                // All events of the `log` crate share one call site, so each event's own place in the source is added
                // here.
                place(&mut out, site);
            }
            push_fields(&mut out, fields, whole);
        }
        PerfContent::SpanExit { flags, .. } => {
            if record.content.closes_span() {
                out.push(("kind", text("scope")));
            }
            if flags & flags::ENDED_WITH_PARENT != 0 {
                out.push(("ended", text("with its parent")));
            }
        }
        PerfContent::SpanFollowsFrom { follows, .. } => out.push(("follows", span(Some(*follows)))),
        PerfContent::Counter { value, .. } => out.push(("value", field_value(value))),
        PerfContent::Marker { text: marked, .. } => out.push(("text", marked.as_deref().map_or(NOTHING, text))),
        PerfContent::ThreadSwitched { .. } if !whole => out.push(("message", text("left its processor"))),
        PerfContent::ThreadSwitched { .. } => {}
        PerfContent::ThreadTime { times: Some(times), flags, .. } => {
            let queue_nanos = (flags & flags::NO_QUEUE == 0).then_some(times.queue_nanos);
            match whole {
                true => thread_time(&mut out, times, queue_nanos),
                false => out.push(("message", Value::Text(words(times, queue_nanos, record.epoch_nanos).into()))),
            }
        }
        PerfContent::ThreadTime { times: None, .. } => out.push(("problem", text("overwritten before it was read"))),
        PerfContent::Allocated { allocated: Some(allocated), .. } => match whole {
            true => out.extend(allocated_values(allocated).map(|(name, count)| (name, Value::Uint(count)))),
            false => out.push(("message", Value::Text(allocated_words(allocated).into()))),
        },
        PerfContent::Allocated { allocated: None, .. } => out.push(("problem", text("overwritten before it was read"))),
        PerfContent::NotRecorded { error, .. } => {
            let error = error.as_ref().map_or(NOTHING, |error| Value::Text(Cow::Owned(error.to_string())));
            out.push(("error", error));
        }
        _ => out.push(("problem", text("an unknown event, or a damaged one"))),
    }
    Value::Struct(out)
}

/// A placeholder for an unknown value. JSON has no NaN, so this value is printed as `null`.
const NOTHING: Value<'_> = Value::F64(f64::NAN);

/// Returns what a thread did in a period, for people. The last event of the period is at `epoch_nanos`.
fn words(times: &ThreadTime, queue_nanos: Option<u64>, epoch_nanos: u64) -> String {
    let period = time(epoch_nanos.saturating_sub(times.since_epoch_nanos));
    let queue = queue_nanos.map_or(String::new(), |nanos| format!(", queue {}", time(nanos)));
    let count = |count: u32, one, several| (count > 0).then(|| counted(count.into(), one, several));
    let counts = [
        count(times.voluntary_switches, "voluntary switch", "voluntary switches"),
        count(times.involuntary_switches, "involuntary switch", "involuntary switches"),
        count(times.minor_faults, "minor fault", "minor faults"),
        count(times.major_faults, "major fault", "major faults"),
    ];
    let ran = format!("ran {} of {period}{queue}", time(times.cpu_nanos));
    std::iter::once(ran).chain(counts.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

fn thread_time<'r>(out: &mut Vec<(&'r str, Value<'r>)>, times: &ThreadTime, queue_nanos: Option<u64>) {
    out.extend([
        ("since_ns", Value::Uint(times.since_epoch_nanos)),
        ("cpu_ns", Value::Uint(times.cpu_nanos)),
        ("queue_ns", queue_nanos.map_or(NOTHING, Value::Uint)),
    ]);
    let counts = [
        ("slices", times.slices),
        ("merged", times.merged),
        ("voluntary_switches", times.voluntary_switches),
        ("involuntary_switches", times.involuntary_switches),
        ("minor_faults", times.minor_faults),
        ("major_faults", times.major_faults),
    ];
    out.extend(counts.map(|(name, count)| (name, Value::Uint(count.into()))));
}

/// Returns what a thread has allocated and freed, for people.
fn allocated_words(allocated: &Allocated) -> String {
    format!(
        "{} of {}, {} of {}",
        counted(allocated.allocations, "allocation", "allocations"),
        bytes(allocated.bytes),
        counted(allocated.frees, "free", "frees"),
        bytes(allocated.freed_bytes),
    )
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

fn span(id: Option<SpanId>) -> Value<'static> {
    id.map_or(NOTHING, |id| Value::Uint(id.get()))
}

fn thread(thread: &Thread) -> Value<'_> {
    Value::Struct(vec![
        ("id", Value::Uint(thread.id.into())),
        ("tid", thread.os_thread_id.map_or(NOTHING, |tid| Value::Uint(tid.into()))),
        ("name", thread.name.as_deref().map_or(NOTHING, text)),
    ])
}

fn call_site<'r>(out: &mut Vec<(&'r str, Value<'r>)>, site: &'r CallSite) {
    out.push(("name", text(&site.name)));
    out.push(("target", text(&site.target)));
    out.push(("level", site.level.name().map_or(NOTHING, text)));
}

fn place<'r>(out: &mut Vec<(&'r str, Value<'r>)>, site: &'r CallSite) {
    out.push(("file", site.file.as_deref().map_or(NOTHING, text)));
    out.push(("line", site.line.map_or(NOTHING, |line| Value::Uint(line.into()))));
}

/// Returns the call site of a record, if it has one.
pub(super) fn site(content: &PerfContent) -> Option<&CallSite> {
    match content {
        PerfContent::CallSite(site)
        | PerfContent::SpanNew { call_site: site, .. }
        | PerfContent::SpanRecord { call_site: site, .. }
        | PerfContent::SpanEnter { call_site: site, .. }
        | PerfContent::SpanExit { call_site: site, .. }
        | PerfContent::SpanClose { call_site: site, .. }
        | PerfContent::Event { call_site: site, .. }
        | PerfContent::Counter { call_site: site, .. }
        | PerfContent::Marker { call_site: site, .. } => Some(site),
        _ => None,
    }
}

fn push_fields<'r>(out: &mut Vec<(&'r str, Value<'r>)>, fields: &'r Fields, whole: bool) {
    let values = fields.values.iter().map(|field| (&*field.name, field_value(&field.value))).collect();
    out.push(("fields", Value::Struct(values)));
    let cut: Vec<_> = fields.values.iter().filter_map(|field| Some((&*field.name, cut(field.cut?, whole)))).collect();
    if !cut.is_empty() {
        // The struct `cut` has an entry for each field that the recorder cut. The values themselves are in `fields`.
        out.push(("cut", Value::Struct(cut)));
    }
    if fields.missing > 0 {
        out.push(("missing_fields", Value::Uint(fields.missing.into())));
    }
    match fields.problem {
        None => {}
        Some(FieldsProblem::Expired) => out.push(("problem", text("overwritten before they were read"))),
        Some(_) => out.push(("problem", text("damaged"))),
    }
}

/// Returns the entry of a field in the struct `cut`. It is the number of bytes that the value had before the recorder
/// cut it, or the reason why the value could not be formatted. If neither is known, the entry is `null`, and for people
/// `?`.
fn cut(cut: Cut, whole: bool) -> Value<'static> {
    match cut {
        Cut::Limit { original_bytes: Some(bytes) } => Value::Uint(bytes.into()),
        Cut::Failed => text("failed"),
        Cut::Panicked => text("panicked"),
        _ if whole => NOTHING,
        _ => text("?"),
    }
}
