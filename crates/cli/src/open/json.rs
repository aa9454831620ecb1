//! The open spans as JSON.

use super::stacks::ThreadStacks;
use crate::args::limit::{self, LimitArgs};
use crate::input::state::add_end;
use crate::watch::perf::{field_value, thread};
use eventring::schema::Value as Decoded;
use eventring::tracing::Thread;
use eventring_live::{LiveFields, LiveState, OpenSpan, RecordedProgram};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Prints one object on a line. The spans are written one at a time, because there may be a million.
pub(super) fn print(
    out: &mut impl Write,
    limit: &LimitArgs,
    state: LiveState<'_>,
    min_age_nanos: u64,
    stacks: &ThreadStacks,
) -> anyhow::Result<()> {
    let spans = state.open_spans().list();
    let old = || spans.iter().filter(|span| super::may_be_of_age(span, min_age_nanos));
    let perhaps = old().filter(OpenSpan::may_have_closed).count();
    let rest = json!({
        "programs": programs(state), "may_have_closed": perhaps, "not_tracked": state.not_tracked(),
        "at_ns": state.now_epoch_nanos(), "known_since_ns": state.known_since_epoch_nanos(), "lost": state.lost(),
    });
    limit.write(out, &rest, "spans", old().map(|span| object(&span, stacks)), limit::id)
}

/// Returns the programs, and what is known of their ends.
pub(crate) fn programs(state: LiveState<'_>) -> Value {
    let program = |(index, program): (usize, &RecordedProgram)| {
        let end = state.end_of(index);
        let how = end.map(|end| if end.has_died { "died" } else { "ended" });
        let mut object = json!({ "pid": program.pid, "program": program.name, "state": how });
        add_end(&mut object, end);
        object
    };
    state.programs().iter().enumerate().map(program).collect()
}

fn object(span: &OpenSpan<'_>, stacks: &ThreadStacks) -> Value {
    let in_it = span.threads();
    let stack = |thread: &Thread| -> Option<Value> {
        let frames = stacks.of(span, thread)?.iter();
        Some(frames.map(|frame| json!({ "name": &*frame.name, "kernel": frame.is_kernel })).collect())
    };
    let threads: Vec<Value> = in_it.iter().map(|it| with(to_json(&thread(it)), "stack", stack(it))).collect();
    let last = in_it.last().map(|it| to_json(&thread(it)));
    let parents: Vec<u64> = span.ancestors().map(eventring::tracing::SpanId::get).collect();
    let program = span.program();
    let object = json!({
        "id": span.id().get(), "name": span.name(), "target": span.target(), "level": span.level().name(),
        "age_ns": span.age_nanos(), "age_max_ns": span.age_max_nanos(), "thread": last, "threads": threads,
        "fields": fields(span.fields().known()), "parents": parents,
        "opened_before_window": span.is_opened_before_window(), "may_have_closed": span.may_have_closed(),
        "pid": program.pid, "program": program.name,
    });
    with(object, "stack", in_it.last().and_then(|thread| stack(thread)))
}

/// Returns the object with one more member, if there is a value.
fn with(mut object: Value, name: &str, value: Option<Value>) -> Value {
    if let Some(value) = value {
        object[name] = value;
    }
    object
}

fn fields(fields: LiveFields<'_>) -> Map<String, Value> {
    let value = |(name, field): (&str, eventring::schema::perf::RawField<'_>)| {
        let name = if name.is_empty() { format!("field {}", field.index) } else { name.to_owned() };
        (name, to_json(&field_value(&field.to_value())))
    };
    fields.iter().map(value).collect()
}

fn to_json(value: &Decoded<'_>) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
