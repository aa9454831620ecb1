//! The table `logs`: a row for each log record.

use super::field_types::TypedField;
use super::fields::{FieldColumns, append_text, message_of};
use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers, texts};
use super::sites::{SiteColumns, ThreadColumns};
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use arrow_schema::Field;
use eventring::tracing::{CallSite, Fields, RawRecord, SpanId, Thread};
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a log record takes without its fields.
const RECORD_BYTES: u64 = 84;

pub(super) struct LogColumns {
    process: Numbers,
    time: Amounts,
    thread: ThreadColumns,
    span: Ids,
    site: SiteColumns,
    message: StringBuilder,
    instructions: Amounts,
    fields: FieldColumns,
}

impl LogColumns {
    pub(super) fn new(types: &[TypedField]) -> Self {
        Self {
            process: Numbers::default(),
            time: Amounts::default(),
            thread: ThreadColumns::default(),
            span: Ids::default(),
            site: SiteColumns::default(),
            message: StringBuilder::new(),
            instructions: Amounts::default(),
            fields: FieldColumns::new(types),
        }
    }

    /// Appends a log record. Returns an estimate of the bytes that it takes.
    pub(super) fn push(
        &mut self,
        process: u32,
        record: &RawRecord<'_>,
        thread: &Arc<Thread>,
        (site, fields): (&Arc<CallSite>, &Fields),
    ) -> io::Result<u64> {
        self.process.push(Some(process));
        self.time.push(Some(record.epoch_nanos()));
        let mut bytes = RECORD_BYTES + self.thread.push(Some(thread));
        self.span.push(record.span().map(SpanId::get));
        bytes += self.site.push(Some(site));
        let before = self.message.values_slice().len();
        match message_of(fields) {
            Some(message) => append_text(&mut self.message, &message.value),
            None => self.message.append_null(),
        }
        bytes += (self.message.values_slice().len() - before) as u64;
        self.instructions.push(record.instructions());
        Ok(bytes + self.fields.push(fields)?)
    }
}

impl RowColumns for LogColumns {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![numbers("process"), amounts("time_ns")];
        fields.extend(ThreadColumns::fields());
        fields.push(ids("span"));
        fields.extend(SiteColumns::fields());
        fields.extend([texts("message"), amounts("instructions")]);
        fields.extend(self.fields.fields());
        fields
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        let mut columns = vec![self.process.finish(), self.time.finish()];
        columns.extend(self.thread.finish()?);
        columns.push(self.span.finish());
        columns.extend(self.site.finish()?);
        columns.push(Arc::new(self.message.finish()));
        columns.push(self.instructions.finish());
        columns.extend(self.fields.finish()?);
        Ok(columns)
    }
}
