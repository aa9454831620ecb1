//! The open spans as JSON.

use super::stacks::ThreadStacks;
use crate::args::limit::LimitArgs;
use crate::input::state::add_end;
use crate::watch::perf::{field_value, thread};
use eventring::schema::Value as Decoded;
use eventring::tracing::{SpanId, Thread};
use eventring_live::{LiveFields, LiveState, OpenSpan, RecordedProgram};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};
use std::borrow::Cow;
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
    let objects = old().map(|span| SpanObject { span, stacks });
    limit.write(out, &rest, "spans", objects, |it| format!("{}:{}", it.span.program().pid, it.span.id()))
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

/// An open span, which is written without a tree of values.
struct SpanObject<'a> {
    span: OpenSpan<'a>,
    stacks: &'a ThreadStacks,
}

impl Serialize for SpanObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { span, stacks } = self;
        let in_it = span.threads();
        let stack = |thread: &Thread| -> Option<Value> {
            let frames = stacks.of(span, thread)?.iter();
            Some(frames.map(|frame| json!({ "name": &*frame.name, "kernel": frame.is_kernel })).collect())
        };
        let threads: Vec<Value> = in_it.iter().map(|it| with(to_json(&thread(it)), "stack", stack(it))).collect();
        let program = span.program();
        let mut object = to.serialize_map(None)?;
        object.serialize_entry("id", &span.id().get())?;
        object.serialize_entry("name", &span.name())?;
        object.serialize_entry("target", span.target())?;
        object.serialize_entry("level", &span.level().name())?;
        object.serialize_entry("age_ns", &span.age_nanos())?;
        object.serialize_entry("age_max_ns", &span.age_max_nanos())?;
        object.serialize_entry("thread", &in_it.last().map(|it| to_json(&thread(it))))?;
        object.serialize_entry("threads", &threads)?;
        object.serialize_entry("fields", &Fields(span.fields().known()))?;
        object.serialize_entry("parents", &span.ancestors().map(SpanId::get).collect::<Vec<_>>())?;
        object.serialize_entry("opened_before_window", &span.is_opened_before_window())?;
        object.serialize_entry("may_have_closed", &span.may_have_closed())?;
        object.serialize_entry("pid", &program.pid)?;
        object.serialize_entry("program", &program.name)?;
        if let Some(stack) = in_it.last().and_then(|thread| stack(thread)) {
            object.serialize_entry("stack", &stack)?;
        }
        object.end()
    }
}

/// Returns the object with one more member, if there is a value.
fn with(mut object: Value, name: &str, value: Option<Value>) -> Value {
    if let Some(value) = value {
        object[name] = value;
    }
    object
}

struct Fields<'a>(LiveFields<'a>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, field)| {
            let name = if name.is_empty() { format!("field {}", field.index).into() } else { Cow::Borrowed(name) };
            (name, to_json(&field_value(&field.to_value())))
        }))
    }
}

fn to_json(value: &Decoded<'_>) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
