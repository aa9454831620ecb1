//! Attributes: named values of spans, events, log records and resources.

use eventring::tracing::{CallSite, Thread};
use eventring_export::args::{ArgValue, Args};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use std::collections::HashSet;

/// The key of a field that has an empty name.
const UNNAMED: &str = "unnamed";

/// Attributes in order. No two of them have the same name.
#[derive(Default)]
pub(super) struct Attributes(pub(super) Vec<KeyValue>);

impl Attributes {
    /// Makes attributes of what the program recorded. If several values have the same name, the last one counts.
    pub(super) fn of_args(args: Args) -> Self {
        let mut names = HashSet::new();
        let mut attributes = Vec::with_capacity(args.0.len() + 8);
        for arg in args.0.into_iter().rev() {
            // OTLP has no empty keys.
            let name = if arg.name.is_empty() { UNNAMED.to_owned() } else { arg.name.to_string() };
            if names.contains(&name) {
                continue;
            }
            if let Some(cut) = arg.cut {
                attributes.push(key_value(&format!("eventring.cut.{name}"), value(*cut)));
            }
            attributes.push(key_value(&name, value(arg.value)));
            names.insert(name);
        }
        attributes.reverse();
        Self(attributes)
    }

    /// Adds an attribute, unless the program has recorded a value with this name.
    pub(super) fn push(&mut self, name: &str, value: Value) {
        if !self.0.iter().any(|known| known.key == name) {
            self.0.push(key_value(name, value));
        }
    }

    pub(super) fn push_count(&mut self, name: &str, count: u64) {
        self.push(name, value(ArgValue::Uint(count)));
    }

    pub(super) fn push_text(&mut self, name: &str, text: impl Into<String>) {
        self.push(name, Value::StringValue(text.into()));
    }

    pub(super) fn push_flag(&mut self, name: &str, flag: bool) {
        if flag {
            self.push(name, Value::BoolValue(true));
        }
    }

    /// Adds the facts of `args` about the recording, with a prefix that tells them from what the program recorded.
    pub(super) fn push_facts(&mut self, args: Args) {
        for arg in args.0 {
            self.push(&format!("eventring.{}", &*arg.name), value(arg.value));
        }
    }

    /// Adds the place in the program's source.
    pub(super) fn push_call_site(&mut self, call_site: &CallSite) {
        if let Some(level) = call_site.level.name() {
            self.push_text("eventring.level", level);
        }
        if let Some(module) = &call_site.module {
            self.push_text("code.namespace", module);
        }
        if let Some(file) = &call_site.file {
            self.push_text("code.file.path", file);
        }
        if let Some(line) = call_site.line {
            self.push_count("code.line.number", line.into());
        }
    }

    pub(super) fn push_thread(&mut self, thread: &Thread) {
        if let Some(id) = thread.os_thread_id {
            self.push_count("thread.id", id.into());
        }
        if let Some(name) = &thread.name {
            self.push_text("thread.name", name);
        }
        self.push_count("eventring.thread", thread.id.into());
    }

    /// Removes an attribute that has a text, and returns the text.
    pub(super) fn take_text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|known| known.key == name && text_of(known).is_some())?;
        text_of(&self.0.remove(at)).map(str::to_owned)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|known| known.key == name).and_then(text_of)
    }
}

fn text_of(attribute: &KeyValue) -> Option<&str> {
    match &attribute.value.as_ref()?.value {
        Some(Value::StringValue(text)) => Some(text),
        _ => None,
    }
}

fn key_value(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

/// Returns a value of OTLP, whose integers are signed. Text stands for a greater integer, and for a number that JSON
/// does not have.
pub(super) fn value(value: ArgValue) -> Value {
    match value {
        ArgValue::Int(number) => Value::IntValue(number),
        ArgValue::Uint(number) => match i64::try_from(number) {
            Ok(number) => Value::IntValue(number),
            Err(_) => Value::StringValue(number.to_string()),
        },
        ArgValue::Float(number) if number.is_finite() => Value::DoubleValue(number),
        ArgValue::Float(number) => Value::StringValue(number.to_string()),
        ArgValue::Bool(flag) => Value::BoolValue(flag),
        ArgValue::Text(text) => Value::StringValue(text.into_owned()),
        ArgValue::Unknown => Value::StringValue("unknown".to_owned()),
    }
}
