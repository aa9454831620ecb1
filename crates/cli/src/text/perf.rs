//! Threads and fields of perf rings, as all verbs show them.

use eventring::schema::perf::{FieldValue, PerfEvent};
use eventring::schema::{EventType as _, Value};
use eventring::tracing::Thread;
use std::borrow::Cow;

/// Returns true if the event says nothing that the program did: it describes a thread or a call site, to which other
/// events refer, or it tells how long a thread ran or what it allocated.
pub(crate) fn is_description(event_type: u16) -> bool {
    const KINDS: [PerfEvent; 3] = [PerfEvent::ThreadStarted, PerfEvent::ThreadEnded, PerfEvent::CallSite];
    is_of_thread(event_type) || KINDS.map(PerfEvent::code).contains(&event_type)
}

/// Returns true if the event tells only how long a thread ran, that it did not, or what it allocated.
pub(crate) fn is_of_thread(event_type: u16) -> bool {
    [PerfEvent::ThreadSwitched, PerfEvent::ThreadTime, PerfEvent::Allocated].map(PerfEvent::code).contains(&event_type)
}

/// Returns the thread's name, or its id.
pub(crate) fn thread_label(thread: &Thread) -> String {
    match (&thread.name, thread.os_thread_id) {
        (Some(name), _) if !name.is_empty() => name.clone(),
        (_, Some(tid)) => format!("tid {tid}"),
        (_, None) => format!("thread {}", thread.id),
    }
}

/// Returns a field's value.
pub(crate) fn field_value(value: &FieldValue) -> Value<'_> {
    match value {
        FieldValue::I64(number) => Value::Int(*number),
        FieldValue::U64(number) => Value::Uint(*number),
        FieldValue::I128(number) => Value::Int128(*number),
        FieldValue::U128(number) => Value::Uint128(*number),
        FieldValue::F64(number) => Value::F64(*number),
        FieldValue::Bool(bool) => Value::Bool(*bool),
        FieldValue::Str(string) | FieldValue::Error(string) | FieldValue::Debug(string) => {
            Value::Text(Cow::Borrowed(string))
        }
        FieldValue::Bytes(bytes) => Value::Bytes(bytes),
        other => Value::Text(Cow::Owned(other.to_string())),
    }
}
