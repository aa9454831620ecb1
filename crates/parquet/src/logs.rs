//! The table `logs`: a row for each log record.

use super::columns::{Column, amount};
use super::field_types::TypedField;
use super::fields::{FieldColumns, append_text, message_of};
use super::sites::{SiteColumns, ThreadColumns};
use super::table::RowColumns;
use super::tables::TIME;
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use eventring::tracing::{CallSite, Fields, RawRecord, SpanId, Thread};
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a log record takes without its fields.
const RECORD_BYTES: u64 = 84;

#[derive(Default)]
pub(super) struct LogColumns {
    process: UInt32Builder,
    time: Int64Builder,
    thread: ThreadColumns,
    span: UInt64Builder,
    site: SiteColumns,
    message: StringBuilder,
    instructions: Int64Builder,
    fields: FieldColumns,
}

impl LogColumns {
    pub(super) fn new(types: &[TypedField]) -> Self {
        Self { fields: FieldColumns::new(types), ..Self::default() }
    }

    /// Appends a log record. Returns an estimate of the bytes that it takes.
    pub(super) fn push(
        &mut self,
        process: u32,
        record: &RawRecord<'_>,
        thread: &Arc<Thread>,
        (site, fields): (&Arc<CallSite>, &Fields),
    ) -> io::Result<u64> {
        self.process.append_value(process);
        self.time.append_value(amount(record.epoch_nanos()));
        let mut bytes = RECORD_BYTES + self.thread.push(Some(thread));
        self.span.append_option(record.span().map(SpanId::get));
        bytes += self.site.push(Some(site));
        let before = self.message.values_slice().len();
        match message_of(fields) {
            Some(message) => append_text(&mut self.message, &message.value),
            None => self.message.append_null(),
        }
        bytes += (self.message.values_slice().len() - before) as u64;
        self.instructions.append_option(record.instructions().map(amount));
        Ok(bytes + self.fields.push(fields)?)
    }
}

impl RowColumns for LogColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        vec![
            ("process", &mut self.process),
            (TIME, &mut self.time),
            ("", &mut self.thread),
            ("span", &mut self.span),
            ("", &mut self.site),
            ("message", &mut self.message),
            ("instructions", &mut self.instructions),
            ("", &mut self.fields),
        ]
    }
}
