//! The tables `counters`, `markers`, `not_recorded` and `unknown`: a row for each other record of a perf ring. They
//! have the same columns.

use super::columns::{Column, amount};
use super::fields::append_text;
use super::sites::ThreadColumns;
use super::table::RowColumns;
use super::tables::TIME;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use eventring::tracing::{PerfContent, RawRecord, SpanId, Thread};
use std::sync::Arc;

/// An estimate of the bytes that a record takes without its text.
const RECORD_BYTES: u64 = 64;

#[derive(Default)]
pub(super) struct SampleColumns {
    process: UInt32Builder,
    time: Int64Builder,
    thread: ThreadColumns,
    span: UInt64Builder,
    name: StringBuilder,
    value: Float64Builder,
    text: StringBuilder,
}

impl SampleColumns {
    /// Appends a record. Returns an estimate of the bytes that it takes.
    pub(super) fn push(
        &mut self,
        process: u32,
        record: &RawRecord<'_>,
        thread: &Arc<Thread>,
        content: &PerfContent,
    ) -> u64 {
        self.process.append_value(process);
        self.time.append_value(amount(record.epoch_nanos()));
        let described = self.thread.push(Some(thread));
        self.span.append_option(content.span().map(SpanId::get));
        let before = self.text.values_slice().len() + self.name.values_slice().len();
        match content {
            PerfContent::Counter { call_site, value, .. } => {
                self.name.append_value(&call_site.name);
                self.value.append_option(value.as_f64());
                append_text(&mut self.text, value);
            }
            PerfContent::Marker { call_site, text, .. } => {
                self.name.append_value(&call_site.name);
                self.value.append_null();
                self.text.append_option(text.as_deref());
            }
            PerfContent::NotRecorded { error, .. } => {
                self.name.append_null();
                self.value.append_null();
                self.text.append_option(error.as_ref().map(|error| format!("{error:?}")));
            }
            _ => {
                self.name.append_null();
                self.value.append_value(record.descriptor.event_type.into());
                self.text.append_null();
            }
        }
        RECORD_BYTES + described + (self.text.values_slice().len() + self.name.values_slice().len() - before) as u64
    }
}

impl RowColumns for SampleColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        vec![
            ("process", &mut self.process),
            (TIME, &mut self.time),
            ("", &mut self.thread),
            ("span", &mut self.span),
            ("name", &mut self.name),
            ("value", &mut self.value),
            ("text", &mut self.text),
        ]
    }
}
