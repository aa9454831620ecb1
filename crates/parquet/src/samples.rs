//! The tables `counters`, `markers`, `not_recorded` and `unknown`: a row for each other record of a perf ring. They
//! have the same columns.

use super::fields::append_text;
use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers, texts};
use super::sites::ThreadColumns;
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_schema::{DataType, Field};
use eventring::tracing::{PerfContent, RawRecord, SpanId, Thread};
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a record takes without its text.
const RECORD_BYTES: u64 = 64;

#[derive(Default)]
pub(super) struct SampleColumns {
    process: Numbers,
    time: Amounts,
    thread: ThreadColumns,
    span: Ids,
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
        self.process.push(Some(process));
        self.time.push(Some(record.epoch_nanos()));
        let described = self.thread.push(Some(thread));
        self.span.push(content.span().map(SpanId::get));
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
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![numbers("process"), amounts("time_ns")];
        fields.extend(ThreadColumns::fields());
        fields.extend([ids("span"), texts("name"), Field::new("value", DataType::Float64, true), texts("text")]);
        fields
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        let mut columns = vec![self.process.finish(), self.time.finish()];
        columns.extend(self.thread.finish()?);
        columns.push(self.span.finish());
        columns.push(Arc::new(self.name.finish()));
        columns.push(Arc::new(self.value.finish()));
        columns.push(Arc::new(self.text.finish()));
        Ok(columns)
    }
}
