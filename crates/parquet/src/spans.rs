//! The table `spans`: a row for each span.

use super::field_types::TypedField;
use super::fields::FieldColumns;
use super::numbers::{Amounts, Flags, Ids, Numbers, amounts, flags, ids, numbers};
use super::sites::{SiteColumns, ThreadColumns};
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_schema::{DataType, Field};
use eventring::tracing::{Span, SpanId};
use std::io;
use std::sync::Arc;

/// The column with the time by which spans are sorted.
pub(super) const TIME: &str = "start_ns";
/// An estimate of the bytes that a span takes without its fields.
const SPAN_BYTES: u64 = 128;

pub(super) struct SpanColumns {
    process: Numbers,
    id: Ids,
    parent: Ids,
    site: SiteColumns,
    thread: ThreadColumns,
    start: Amounts,
    end: Amounts,
    duration: Amounts,
    busy: Amounts,
    instructions: Amounts,
    self_instructions: Amounts,
    open: Flags,
    end_lost: Flags,
    last_seen: Amounts,
    may_have_losses: Flags,
    follows_from: ListBuilder<UInt64Builder>,
    fields: FieldColumns,
}

impl SpanColumns {
    pub(super) fn new(types: &[TypedField]) -> Self {
        Self {
            process: Numbers::default(),
            id: Ids::default(),
            parent: Ids::default(),
            site: SiteColumns::default(),
            thread: ThreadColumns::default(),
            start: Amounts::default(),
            end: Amounts::default(),
            duration: Amounts::default(),
            busy: Amounts::default(),
            instructions: Amounts::default(),
            self_instructions: Amounts::default(),
            open: Flags::default(),
            end_lost: Flags::default(),
            last_seen: Amounts::default(),
            may_have_losses: Flags::default(),
            follows_from: ListBuilder::new(UInt64Builder::new()),
            fields: FieldColumns::new(types),
        }
    }

    /// Appends a span. Returns an estimate of the bytes that it takes.
    pub(super) fn push(&mut self, process: u32, span: &Span) -> io::Result<u64> {
        let busy = span.known_busy_nanos();
        self.process.push(Some(process));
        self.id.push(Some(span.id.get()));
        self.parent.push(span.parent.map(SpanId::get));
        let described = self.site.push(span.call_site.as_ref())
            + self.thread.push(span.created.as_ref().map(|created| &created.thread));
        self.start.push(span.created.as_ref().map(|created| created.epoch_nanos));
        self.end.push(span.closed.as_ref().map(|closed| closed.epoch_nanos));
        self.duration.push(span.wall_nanos());
        self.busy.push(busy);
        self.instructions.push(span.instructions.map(|counts| counts.all));
        self.self_instructions.push(span.instructions.map(|counts| counts.own));
        self.open.push(span.is_open() && !span.is_end_lost);
        self.end_lost.push(span.is_end_lost);
        self.last_seen.push(span.is_end_lost.then_some(span.last_seen_epoch_nanos));
        self.may_have_losses.push(span.may_have_losses || busy.is_none());
        self.follows_from.append_value(span.follows_from.iter().map(|id| Some(id.get())));
        let more = 8 * span.follows_from.len() as u64;
        Ok(SPAN_BYTES + described + more + self.fields.push(&span.fields)?)
    }
}

impl RowColumns for SpanColumns {
    fn fields(&self) -> Vec<Field> {
        let mut fields = vec![numbers("process"), ids("id"), ids("parent")];
        fields.extend(SiteColumns::fields());
        fields.extend(ThreadColumns::fields());
        fields
            .extend(["start_ns", "end_ns", "duration_ns", "busy_ns", "instructions", "self_instructions"].map(amounts));
        fields.extend([flags("open"), flags("end_lost"), amounts("last_seen_ns"), flags("may_have_losses")]);
        fields.push(Field::new("follows_from", DataType::List(Arc::new(ids("item"))), true));
        fields.extend(self.fields.fields());
        fields
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        let mut columns = vec![self.process.finish(), self.id.finish(), self.parent.finish()];
        columns.extend(self.site.finish()?);
        columns.extend(self.thread.finish()?);
        let times = [&mut self.start, &mut self.end, &mut self.duration, &mut self.busy];
        columns.extend(times.map(Amounts::finish));
        columns.extend([&mut self.instructions, &mut self.self_instructions].map(Amounts::finish));
        columns.extend([self.open.finish(), self.end_lost.finish(), self.last_seen.finish()]);
        columns.push(self.may_have_losses.finish());
        columns.push(Arc::new(self.follows_from.finish()));
        columns.extend(self.fields.finish()?);
        Ok(columns)
    }
}
